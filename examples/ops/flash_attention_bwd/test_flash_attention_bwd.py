"""End-to-end test of flash_attention_bwd: the kernel against the golden, every output leaf.

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

from flash_attention_bwd_golden import flash_attention_bwd_golden
from flash_attention_bwd_impl import flash_attention_bwd_wrapper
from test_inputs import PRIMARY_INPUT_ORDER, make_inputs

# dtype: (atol, rtol), as in SPEC.md. fp32, fp16, bf16.
TOLERANCE = {
    "float32": (1e-5, 5e-5),
    "float16": (1e-3, 4e-3),
    "bfloat16": (8e-3, 2e-2),
}


def _set_device():
    torch.npu.set_device(int(os.environ.get("TILE_FWK_DEVICE_ID", "0")))


def _check(case_id, level, shape, dtype, **knobs):
    """Run one case and compare each output leaf; raise AssertionError when one of them is off."""
    torch.manual_seed(42)
    case = {"id": case_id, "level": level, "shape": shape, "dtype": {"default": dtype}, "seed": 42, **knobs}
    made = make_inputs(case)
    inputs = [made[name] for name in PRIMARY_INPUT_ORDER]
    actual = flash_attention_bwd_wrapper(*inputs)
    expected = flash_attention_bwd_golden(*inputs)
    actual = actual if isinstance(actual, tuple) else (actual,)
    expected = expected if isinstance(expected, tuple) else (expected,)
    assert len(actual) == len(expected), f"{case_id}: {len(actual)} outputs, expected {len(expected)}"
    atol, rtol = TOLERANCE[dtype]
    for name, leaf, reference in zip(("dq", "dk", "dv"), actual, expected):
        result = detailed_tensor_compare(leaf, reference, tensor_name=name, atol=atol, rtol=rtol)
        assert result["all_close"], f"{case_id}: {name} differs, max diff {result['max_diff']:.3g}"


def test_flash_attention_bwd_l0():
    """Smallest shapes around one tile, each dtype."""
    _set_device()
    for dtype in TOLERANCE:
        _check("l0_one_position", 0, {"BH": 2, "S": 1, "D": 16}, dtype, causal=True)
        _check("l0_ragged", 0, {"BH": 1, "S": 129, "D": 16}, dtype, causal=False)


def test_flash_attention_bwd_l1():
    """The P0 shapes of SPEC.md, each dtype."""
    _set_device()
    for dtype in TOLERANCE:
        for heads, length, head_dim in ((2, 384, 64), (1, 391, 128)):
            shape = {"BH": heads, "S": length, "D": head_dim}
            _check(f"l1_{heads}_{length}_{head_dim}", 1, shape, dtype, causal=True)


if __name__ == "__main__":
    test_flash_attention_bwd_l0()
    test_flash_attention_bwd_l1()
    print("flash_attention_bwd: l0 and l1 agree with the golden")
