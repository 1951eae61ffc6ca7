"""End-to-end test of rmsnorm: the kernel against its golden.

Every output leaf is compared, by the rule and the tolerance that the judge has for the case (SPEC.md, or the case's own).
Runs as a script or under pytest, wherever torch_npu is: a device, or the host shim
(`pypto-op script test_rmsnorm.py`). Made by `pypto-op tests new`; do not edit it, the gates want these bytes.
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

from rmsnorm_golden import rmsnorm_golden
from rmsnorm_impl import rmsnorm_wrapper
from test_inputs import make_inputs

OP_DIR = _test_dir
PHASE = None
WRAPPER_INPUTS = ("x", "weight", "eps")
GOLDEN_INPUTS = ("x", "weight", "eps")
OUTPUTS = ("out",)

# Small shapes: one tile, a ragged one, each dtype, each value of the scalars; with their tolerances, from the suite.
L0 = [
    {'id': 'L3_one_token', 'level': 'L3', 'precision': True, 'shape': {'T': 1, 'H': 16}, 'dtype': {'default': 'float32'}, 'atol': 1e-06, 'rtol': 1e-05, 'seed': 42},
    {'id': 'L3_zeros', 'level': 'L3', 'precision': True, 'shape': {'T': 18, 'H': 32}, 'dtype': {'default': 'float32'}, 'atol': 1e-06, 'rtol': 1e-05, 'seed': 42, 'draw_zone': 'zeros'},
    {'id': 'L3_large_eps_fp16', 'level': 'L3', 'precision': True, 'shape': {'T': 19, 'H': 64}, 'dtype': {'default': 'float16'}, 'atol': 0.0001, 'rtol': 0.002, 'seed': 42, 'eps': 0.5},
    {'id': 'L3_prime_fp16', 'level': 'L3', 'precision': True, 'shape': {'T': 37, 'H': 80}, 'dtype': {'default': 'float16'}, 'atol': 0.0001, 'rtol': 0.002, 'seed': 42, 'draw_zone': 'row_scaled'},
    {'id': 'L3_large_eps_bf16', 'level': 'L3', 'precision': True, 'shape': {'T': 19, 'H': 64}, 'dtype': {'default': 'bfloat16'}, 'atol': 0.001, 'rtol': 0.016, 'seed': 42, 'eps': 0.5},
    {'id': 'L3_two_tiles_minus_1_bf16', 'level': 'L3', 'precision': True, 'shape': {'T': 31, 'H': 96}, 'dtype': {'default': 'bfloat16'}, 'atol': 0.001, 'rtol': 0.016, 'seed': 42, 'draw_zone': 'row_scaled'},
    {'id': 'L3_less_eps', 'level': 'L3', 'precision': True, 'shape': {'T': 19, 'H': 64}, 'dtype': {'default': 'float32'}, 'atol': 1e-06, 'rtol': 1e-05, 'seed': 42, 'eps': 1e-09, 'draw_zone': 'tiny'},
]

# The P0 shapes of SPEC.md, each dtype.
L1 = [
    {'id': 'P0_1_float32', 'level': 'L2', 'shape': {'T': 64, 'H': 1024}, 'dtype': {'default': 'float32'}, 'precision': True, 'seed': 42},
    {'id': 'L4_p0_fp16', 'level': 'L4', 'precision': True, 'shape': {'T': 64, 'H': 1024}, 'dtype': {'default': 'float16'}, 'atol': 0.0001, 'rtol': 0.002, 'seed': 42},
    {'id': 'P0_1_bfloat16', 'level': 'L2', 'shape': {'T': 64, 'H': 1024}, 'dtype': {'default': 'bfloat16'}, 'precision': True, 'seed': 42},
    {'id': 'P0_2_float32', 'level': 'L2', 'shape': {'T': 33, 'H': 2048}, 'dtype': {'default': 'float32'}, 'precision': True, 'seed': 42},
    {'id': 'P0_2_float16', 'level': 'L2', 'shape': {'T': 33, 'H': 2048}, 'dtype': {'default': 'float16'}, 'precision': True, 'seed': 42},
    {'id': 'L2_second_p0_bf16', 'level': 'L2', 'precision': True, 'shape': {'T': 33, 'H': 2048}, 'dtype': {'default': 'bfloat16'}, 'atol': 0.001, 'rtol': 0.016, 'seed': 42},
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
    actual = _leaves(rmsnorm_wrapper(*(made[name] for name in WRAPPER_INPUTS)))
    expected = _leaves(rmsnorm_golden(*(again[name] for name in GOLDEN_INPUTS)))
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


def test_rmsnorm_l0():
    """Small shapes."""
    _set_device()
    for case in L0:
        _check(case)


def test_rmsnorm_l1():
    """The P0 shapes."""
    _set_device()
    for case in L1:
        _check(case)


if __name__ == "__main__":
    try:
        test_rmsnorm_l0()
        test_rmsnorm_l1()
    except AssertionError as error:
        sys.exit(f"rmsnorm: FAIL: {error}")
    print("rmsnorm: l0 and l1 agree with the golden")
# pypto-op generated: 9fc8a14a2e1ad439f1a5a186560fa5b53e3085f6c5b8b86f97ff71ee12f80d48
