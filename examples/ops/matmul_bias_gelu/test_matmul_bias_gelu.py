"""End-to-end test of matmul_bias_gelu: the kernel against its golden.

Every output leaf is compared, by the rule and the tolerance that the judge has for the case (SPEC.md, or the case's own).
Runs as a script or under pytest, wherever torch_npu is: a device, or the host shim
(`pypto-op script test_matmul_bias_gelu.py`). Made by `pypto-op tests new`; do not edit it, the gates want these bytes.
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
for _path in (os.path.join(_test_dir, "eval"), _test_dir, *_found):
    if _path not in sys.path:
        sys.path.insert(0, _path)
# === end bootstrap ===

import torch
import torch_npu  # noqa: F401  (registers the npu device)

try:
    from detailed_tensor_compare import detailed_tensor_compare
except ModuleNotFoundError:  # outside the bundle the installed package has the same function
    from pypto_op.compare import detailed_tensor_compare
from pypto_op.judge.rules import rules

from matmul_bias_gelu_golden import matmul_bias_gelu_golden
from matmul_bias_gelu_impl import matmul_bias_gelu_wrapper
from test_inputs import make_inputs

OP_DIR = _test_dir
PHASE = None
WRAPPER_INPUTS = ("x", "w", "bias")
GOLDEN_INPUTS = ("x", "w", "bias")
OUTPUTS = ("out",)

# Small shapes: one tile, a ragged one, each dtype, each value of the scalars; with their tolerances, from the suite.
L0 = [
    {'id': 'L3_one_token', 'level': 'L3', 'precision': True, 'shape': {'M': 1, 'K': 16, 'N': 16}, 'dtype': {'default': 'float32'}, 'seed': 42},
    {'id': 'L3_bias_alone', 'level': 'L3', 'precision': True, 'shape': {'M': 130, 'K': 32, 'N': 272}, 'dtype': {'default': 'float32'}, 'seed': 42, 'draw_zone': 'bias_alone'},
    {'id': 'L3_tile_minus_1_fp16', 'level': 'L3', 'precision': True, 'shape': {'M': 127, 'K': 112, 'N': 112}, 'dtype': {'default': 'float16'}, 'seed': 42},
    {'id': 'L2_two_by_two_fp16', 'level': 'L2', 'precision': True, 'shape': {'M': 256, 'K': 128, 'N': 256}, 'dtype': {'default': 'float16'}, 'seed': 42},
    {'id': 'L3_two_tiles_minus_1_bf16', 'level': 'L3', 'precision': True, 'shape': {'M': 255, 'K': 112, 'N': 240}, 'dtype': {'default': 'bfloat16'}, 'seed': 42},
    {'id': 'L2_two_by_two_bf16', 'level': 'L2', 'precision': True, 'shape': {'M': 256, 'K': 128, 'N': 256}, 'dtype': {'default': 'bfloat16'}, 'seed': 42},
]

# The P0 shapes of SPEC.md, each dtype.
L1 = [
    {'id': 'P0_1_float32', 'level': 'L2', 'shape': {'M': 256, 'K': 512, 'N': 256}, 'dtype': {'default': 'float32'}, 'precision': True, 'seed': 42},
    {'id': 'L4_p0_fp16', 'level': 'L4', 'precision': True, 'shape': {'M': 256, 'K': 512, 'N': 256}, 'dtype': {'default': 'float16'}, 'seed': 42},
    {'id': 'P0_1_bfloat16', 'level': 'L2', 'shape': {'M': 256, 'K': 512, 'N': 256}, 'dtype': {'default': 'bfloat16'}, 'precision': True, 'seed': 42},
    {'id': 'L2_second_p0_fp32', 'level': 'L2', 'precision': True, 'shape': {'M': 131, 'K': 256, 'N': 1040}, 'dtype': {'default': 'float32'}, 'seed': 42},
    {'id': 'P0_2_float16', 'level': 'L2', 'shape': {'M': 131, 'K': 256, 'N': 1040}, 'dtype': {'default': 'float16'}, 'precision': True, 'seed': 42},
    {'id': 'P0_2_bfloat16', 'level': 'L2', 'shape': {'M': 131, 'K': 256, 'N': 1040}, 'dtype': {'default': 'bfloat16'}, 'precision': True, 'seed': 42},
]


def _set_device():
    torch.npu.set_device(int(os.environ.get("TILE_FWK_DEVICE_ID", "0")))


def _leaves(returned):
    """Return the outputs as a flat tuple."""
    if not isinstance(returned, (tuple, list)):
        return (returned,)
    return tuple(leaf for item in returned for leaf in _leaves(item))


def _check(case):
    """Run one case and compare each output leaf; raise AssertionError when one of them is off."""
    torch.manual_seed(42)
    # Made three times, so that a wrapper that writes into its inputs cannot reach the golden's or the twins'.
    made, again, apart = make_inputs(dict(case)), make_inputs(dict(case)), make_inputs(dict(case))
    actual = _leaves(matmul_bias_gelu_wrapper(*(made[name] for name in WRAPPER_INPUTS)))
    expected = _leaves(matmul_bias_gelu_golden(*(again[name] for name in GOLDEN_INPUTS)))
    assert len(actual) == len(expected) == len(OUTPUTS), (
        f"{case['id']}: {len(actual)} outputs, the golden has {len(expected)}, the contract {len(OUTPUTS)}"
    )
    bad = []
    for rule in rules(OP_DIR, case, [apart[name] for name in GOLDEN_INPUTS], expected, actual, phase=PHASE):
        for name, leaf, reference, twins in zip(OUTPUTS, actual, rule.expected, rule.twins, strict=True):
            result = detailed_tensor_compare(leaf, reference, tensor_name=name, policy=rule.policy, twins=twins)
            if not result["all_close"]:
                bad.append(f"{name} differs, max diff {result['max_diff']} ({result['message']})")
            elif result["constant_output"]:
                bad.append(f"{name} differs: it is constant, where the reference varies")
    assert not bad, f"{case['id']}: {'; '.join(bad)}"


def test_matmul_bias_gelu_l0():
    """Small shapes."""
    _set_device()
    for case in L0:
        _check(case)


def test_matmul_bias_gelu_l1():
    """The P0 shapes."""
    _set_device()
    for case in L1:
        _check(case)


if __name__ == "__main__":
    try:
        test_matmul_bias_gelu_l0()
        test_matmul_bias_gelu_l1()
    except AssertionError as error:
        sys.exit(f"matmul_bias_gelu: FAIL: {error}")
    print("matmul_bias_gelu: l0 and l1 agree with the golden")
# pypto-op generated: efa74497a64ef662abe89c51a9b6fe7f8732510c4046aa2b62aa6ede3f82d785
