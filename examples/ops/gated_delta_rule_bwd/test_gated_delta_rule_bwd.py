"""End-to-end test of gated_delta_rule_bwd: the kernel against the golden, every output leaf.

Runs as a script or under pytest, wherever torch_npu is (a device, or the host shim that `pypto-op` provides).
"""

import os
import sys

# === detailed_tensor_compare path bootstrap ===
_op_dir = os.path.dirname(os.path.abspath(__file__))
_folder = _op_dir
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
for _path in (os.path.join(_op_dir, "eval"), _op_dir, *_found):
    if _path not in sys.path:
        sys.path.insert(0, _path)
# === end bootstrap ===

import torch
import torch_npu  # noqa: F401  (registers the npu device)

try:
    from detailed_tensor_compare import detailed_tensor_compare
except (
    ModuleNotFoundError
):  # the operator lies outside the bundle; the installed package has the same function
    from pypto_op.compare import detailed_tensor_compare

from gated_delta_rule_bwd_golden import gated_delta_rule_bwd_golden
from gated_delta_rule_bwd_impl import gated_delta_rule_bwd_wrapper
from test_inputs import PRIMARY_INPUT_ORDER, make_inputs

# dtype: (atol, rtol), as in SPEC.md. fp32, fp16, bf16.
TOLERANCE = {
    "float32": (2e-5, 5e-5),
    "float16": (2e-4, 2e-3),
    "bfloat16": (2e-3, 1.6e-2),
}


def _set_device():
    torch.npu.set_device(int(os.environ.get("TILE_FWK_DEVICE_ID", "0")))


def _check(case_id, level, shape, dtype, **knobs):
    """Run one case and compare each output leaf; raise AssertionError when one of them is off."""
    torch.manual_seed(42)
    case = {"id": case_id, "level": level, "shape": shape, "dtype": {"default": dtype}, "seed": 42, **knobs}
    made = make_inputs(case)
    inputs = [made[name] for name in PRIMARY_INPUT_ORDER]
    actual = gated_delta_rule_bwd_wrapper(*inputs)
    expected = gated_delta_rule_bwd_golden(*inputs)
    actual = actual if isinstance(actual, tuple) else (actual,)
    expected = expected if isinstance(expected, tuple) else (expected,)
    assert len(actual) == len(expected), f"{case_id}: {len(actual)} outputs, expected {len(expected)}"
    for name, leaf, reference in zip(("dq", "dk", "dv", "dg", "dbeta"), actual, expected):
        atol, rtol = TOLERANCE[str(reference.dtype).removeprefix("torch.")]  # dg and dbeta are always float32
        result = detailed_tensor_compare(leaf, reference, tensor_name=name, atol=atol, rtol=rtol)
        assert result["all_close"], f"{case_id}: {name} differs, max diff {result['max_diff']:.3g}"


def test_gated_delta_rule_bwd_l0():
    """Smallest shapes around one tile, each dtype."""
    _set_device()
    for dtype in TOLERANCE:
        _check("l0_one_token", 0, {"BH": 2, "T": 1, "K": 16, "V": 16}, dtype)
        _check("l0_ragged", 0, {"BH": 1, "T": 65, "K": 16, "V": 32}, dtype)


def test_gated_delta_rule_bwd_l1():
    """The P0 shapes of SPEC.md, each dtype."""
    _set_device()
    for dtype in TOLERANCE:
        for heads, tokens, keys, values in ((1, 128, 128, 128), (1, 131, 64, 64)):
            shape = {"BH": heads, "T": tokens, "K": keys, "V": values}
            _check(f"l1_{heads}_{tokens}_{keys}_{values}", 1, shape, dtype)


if __name__ == "__main__":
    test_gated_delta_rule_bwd_l0()
    test_gated_delta_rule_bwd_l1()
    print("gated_delta_rule_bwd: l0 and l1 agree with the golden")
