"""Test of the modules M1 to M2 of flash_attention_bwd: the kernel against its golden.

Every output leaf is compared. Runs as a script or under pytest, wherever torch_npu is: a device, or the host shim
(`python -m pypto_op.backends.hostshim modules/test_flash_attention_bwd_module12.py`). Made by `pypto-op tests new`.
"""

import os
import sys

# === detailed_tensor_compare path bootstrap ===
_test_dir = os.path.dirname(os.path.abspath(__file__))
_folder = _test_dir
_found = []
for _ in range(8):
    _found = [
        _path
        for _path in (
            os.path.join(_folder, ".agents", "skills", "pypto-op-verify", "scripts"),
            os.path.join(_folder, "skills", "pypto-op-verify", "scripts"),
        )
        if os.path.isfile(os.path.join(_path, "detailed_tensor_compare.py"))
    ]
    if _found or _folder == os.path.dirname(_folder):
        break
    _folder = os.path.dirname(_folder)
for _path in (os.path.join(os.path.dirname(_test_dir), "eval"), os.path.dirname(_test_dir), _test_dir, *_found):
    if _path not in sys.path:
        sys.path.insert(0, _path)
# === end bootstrap ===

import torch
import torch_npu  # noqa: F401  (registers the npu device)

try:
    from detailed_tensor_compare import detailed_tensor_compare
except ModuleNotFoundError:  # outside the bundle the installed package has the same function
    from pypto_op.compare import detailed_tensor_compare

from flash_attention_bwd_module12_golden import flash_attention_bwd_module12_golden
from flash_attention_bwd_module12_impl import flash_attention_bwd_module12_wrapper
from test_inputs import make_inputs

WRAPPER_INPUTS = ("q", "k", "v", "out", "lse", "dout", "causal")
GOLDEN_INPUTS = ("q", "k", "v", "out", "lse", "dout", "causal")
OUTPUTS = ("dq", "dk", "dv")
KNOBS = [{}, {'causal': True}]  # what the small cases set scalars to; {} leaves the defaults

# dtype: (atol, rtol), as in SPEC.md.
POLICY = {
    "float32": (1e-05, 5e-05),
    "float16": (0.001, 0.004),
    "bfloat16": (0.008, 0.02),
}


def _set_device():
    torch.npu.set_device(int(os.environ.get("TILE_FWK_DEVICE_ID", "0")))


def _leaves(returned):
    """Return the outputs as a flat tuple."""
    if not isinstance(returned, (tuple, list)):
        return (returned,)
    return tuple(leaf for item in returned for leaf in _leaves(item))


def _check(case_id, level, shape, dtype, knobs=None):
    """Run one case and compare each output leaf; raise AssertionError when one of them is off."""
    torch.manual_seed(42)
    case = {"id": case_id, "level": level, "shape": shape, "dtype": {"default": dtype}, "seed": 42, **(knobs or {})}
    # Made twice, so that a wrapper that writes into its inputs cannot reach the golden's.
    made, again = make_inputs(case), make_inputs(case)
    actual = _leaves(flash_attention_bwd_module12_wrapper(*(made[name] for name in WRAPPER_INPUTS)))
    expected = _leaves(flash_attention_bwd_module12_golden(*(again[name] for name in GOLDEN_INPUTS)))
    assert len(actual) == len(expected) == len(OUTPUTS), (
        f"{case_id}: {len(actual)} outputs, the golden has {len(expected)}, the contract {len(OUTPUTS)}"
    )
    bad = []
    for name, leaf, reference in zip(OUTPUTS, actual, expected, strict=True):
        # An output that is float32 whatever the inputs are has float32's tolerance.
        policy = POLICY.get(str(reference.dtype).removeprefix("torch."), POLICY[dtype])
        result = detailed_tensor_compare(leaf, reference, tensor_name=name, atol=policy[0], rtol=policy[1])
        if not result["all_close"]:
            bad.append(f"{name} differs, max diff {result['max_diff']}")
    assert not bad, f"{case_id}, {dtype}: {'; '.join(bad)}"


def test_module12_l0():
    """Small shapes: one tile, a ragged one, each dtype, each value of the scalars."""
    _set_device()
    for dtype in POLICY:
        for knobs in KNOBS:
            _check("M12_l0_1", 0, {"BH": 3, "S": 1, "D": 16}, dtype, knobs)
    for dtype in POLICY:
        for knobs in KNOBS:
            _check("M12_l0_2", 0, {"BH": 1, "S": 129, "D": 16}, dtype, knobs)


def test_module12_l1():
    """The P0 shapes of SPEC.md, each dtype."""
    _set_device()
    for dtype in POLICY:
        _check("M12_l1_1", 1, {"BH": 2, "S": 384, "D": 64}, dtype)
    for dtype in POLICY:
        _check("M12_l1_2", 1, {"BH": 1, "S": 391, "D": 128}, dtype)


if __name__ == "__main__":
    try:
        test_module12_l0()
        test_module12_l1()
    except AssertionError as error:
        sys.exit(f"module12: FAIL: {error}")
    print("module12: l0 and l1 agree with the golden")
# pypto-op generated: ce88f21f66573012d2154425c21448884b88d62104962dbe4b6e2cf872bfa854
