"""Test of the modules M1 to M1 of gated_delta_rule_bwd: the kernel against its golden.

Every output leaf is compared. Runs as a script or under pytest, wherever torch_npu is: a device, or the host shim
(`python -m pypto_op.backends.hostshim modules/test_gated_delta_rule_bwd_module1.py`). Made by `pypto-op tests new`.
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

from gated_delta_rule_bwd_module1_golden import gated_delta_rule_bwd_module1_golden
from gated_delta_rule_bwd_module1_impl import gated_delta_rule_bwd_module1_wrapper
from test_inputs import make_inputs

WRAPPER_INPUTS = ("k", "v", "g", "beta")
GOLDEN_INPUTS = ("k", "v", "g", "beta")
OUTPUTS = ("states", "u")
KNOBS = [{}]  # what the small cases set scalars to; {} leaves the defaults

# dtype: (atol, rtol), as in SPEC.md.
POLICY = {
    "float32": (2e-05, 5e-05),
    "float16": (0.0002, 0.002),
    "bfloat16": (0.002, 0.016),
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
    actual = _leaves(gated_delta_rule_bwd_module1_wrapper(*(made[name] for name in WRAPPER_INPUTS)))
    expected = _leaves(gated_delta_rule_bwd_module1_golden(*(again[name] for name in GOLDEN_INPUTS)))
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


def test_module1_l0():
    """Small shapes: one tile, a ragged one, each dtype, each value of the scalars."""
    _set_device()
    for dtype in POLICY:
        for knobs in KNOBS:
            _check("M1_l0_1", 0, {"BH": 3, "T": 1, "K": 16, "V": 16}, dtype, knobs)
    for dtype in POLICY:
        for knobs in KNOBS:
            _check("M1_l0_2", 0, {"BH": 1, "T": 63, "K": 16, "V": 16}, dtype, knobs)


def test_module1_l1():
    """The P0 shapes of SPEC.md, each dtype."""
    _set_device()
    for dtype in POLICY:
        _check("M1_l1_1", 1, {"BH": 1, "T": 128, "K": 128, "V": 128}, dtype)
    for dtype in POLICY:
        _check("M1_l1_2", 1, {"BH": 1, "T": 131, "K": 64, "V": 64}, dtype)


if __name__ == "__main__":
    try:
        test_module1_l0()
        test_module1_l1()
    except AssertionError as error:
        sys.exit(f"module1: FAIL: {error}")
    print("module1: l0 and l1 agree with the golden")
# pypto-op generated: 5c6cdb146333d15d593bf0c29aaa558bdc6577d2332e3b490ad8eafdedd31954
