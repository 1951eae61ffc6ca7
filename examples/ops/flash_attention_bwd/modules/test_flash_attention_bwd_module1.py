"""Test of the modules M1 to M1 of flash_attention_bwd: the kernel against its golden.

Every output leaf is compared, by the rule and the tolerance that the judge has for the case (SPEC.md, or the case's own).
Runs as a script or under pytest, wherever torch_npu is: a device, or the host shim
(`pypto-op script modules/test_flash_attention_bwd_module1.py`). Made by `pypto-op tests new`; do not edit it, the gates want these bytes.
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
from pypto_op.judge.rules import rules

from flash_attention_bwd_module1_golden import flash_attention_bwd_module1_golden
from flash_attention_bwd_module1_impl import flash_attention_bwd_module1_wrapper
from test_inputs import make_inputs

OP_DIR = os.path.dirname(_test_dir)
PHASE = 1
WRAPPER_INPUTS = ("q", "k", "v", "out", "lse", "dout", "causal")
GOLDEN_INPUTS = ("q", "k", "v", "out", "lse", "dout", "causal")
OUTPUTS = ("ds", "dv")

# Small shapes: one tile, a ragged one, each dtype, each value of the scalars; with their tolerances, from the suite.
L0 = [
    {'id': 'L3_one_position', 'level': 'L3', 'precision': True, 'shape': {'BH': 3, 'S': 1, 'D': 16}, 'dtype': {'default': 'float32'}, 'seed': 42, 'causal': True},
    {'id': 'L3_tile_minus_1', 'level': 'L3', 'precision': True, 'shape': {'BH': 2, 'S': 127, 'D': 16}, 'dtype': {'default': 'float32'}, 'seed': 42, 'causal': False},
    {'id': 'L3_tile_plus_1_fp16', 'level': 'L3', 'precision': True, 'shape': {'BH': 1, 'S': 129, 'D': 16}, 'dtype': {'default': 'float16'}, 'seed': 42, 'causal': False},
    {'id': 'L2_two_tiles_fp16', 'level': 'L2', 'precision': True, 'shape': {'BH': 1, 'S': 256, 'D': 32}, 'dtype': {'default': 'float16'}, 'seed': 42, 'causal': False},
    {'id': 'L2_two_tiles_causal_bf16', 'level': 'L2', 'precision': True, 'shape': {'BH': 1, 'S': 256, 'D': 32}, 'dtype': {'default': 'bfloat16'}, 'seed': 42, 'causal': True},
    {'id': 'L3_two_tiles_plus_1_bf16', 'level': 'L3', 'precision': True, 'shape': {'BH': 1, 'S': 257, 'D': 32}, 'dtype': {'default': 'bfloat16'}, 'seed': 42, 'causal': False},
]

# The P0 shapes of SPEC.md, each dtype.
L1 = [
    {'id': 'P0_1_float32', 'level': 'L2', 'shape': {'BH': 2, 'S': 384, 'D': 64}, 'dtype': {'default': 'float32'}, 'precision': True, 'seed': 42},
    {'id': 'L4_p0_causal_fp16', 'level': 'L4', 'precision': True, 'shape': {'BH': 2, 'S': 384, 'D': 64}, 'dtype': {'default': 'float16'}, 'seed': 42, 'causal': True},
    {'id': 'P0_1_bfloat16', 'level': 'L2', 'shape': {'BH': 2, 'S': 384, 'D': 64}, 'dtype': {'default': 'bfloat16'}, 'precision': True, 'seed': 42},
    {'id': 'P0_2_float32', 'level': 'L2', 'shape': {'BH': 1, 'S': 391, 'D': 128}, 'dtype': {'default': 'float32'}, 'precision': True, 'seed': 42},
    {'id': 'L2_second_p0_fp16', 'level': 'L2', 'precision': True, 'shape': {'BH': 1, 'S': 391, 'D': 128}, 'dtype': {'default': 'float16'}, 'seed': 42, 'causal': True},
    {'id': 'P0_2_bfloat16', 'level': 'L2', 'shape': {'BH': 1, 'S': 391, 'D': 128}, 'dtype': {'default': 'bfloat16'}, 'precision': True, 'seed': 42},
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
    actual = _leaves(flash_attention_bwd_module1_wrapper(*(made[name] for name in WRAPPER_INPUTS)))
    expected = _leaves(flash_attention_bwd_module1_golden(*(again[name] for name in GOLDEN_INPUTS)))
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


def test_module1_l0():
    """Small shapes."""
    _set_device()
    for case in L0:
        _check(case)


def test_module1_l1():
    """The P0 shapes."""
    _set_device()
    for case in L1:
        _check(case)


if __name__ == "__main__":
    try:
        test_module1_l0()
        test_module1_l1()
    except AssertionError as error:
        sys.exit(f"module1: FAIL: {error}")
    print("module1: l0 and l1 agree with the golden")
# pypto-op generated: 913c12f355d61ada0b80535d2e3f12bf6066cec6fe44ef7f0a57ae3fb0cff154
