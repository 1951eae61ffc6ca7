"""What is timed: one case stands behind one name, wherever it is timed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.judge.judging import REPOSITORY

from pypto_op.backends.base import Limits
from pypto_op.errors import ContractError
from pypto_op.judge.cases.contract import load_contract
from pypto_op.judge.cases.subject import resolve
from pypto_op.perf.bound import bound_of
from pypto_op.tuning import shapes
from pypto_op.tuning.clock import Clock
from pypto_op.tuning.tune import require_possible
from pypto_op.tuning.work import counted
from pypto_op.vocabulary import Mode
from pypto_op.workspace import OpWorkspace

EXAMPLES = REPOSITORY / "examples" / "ops"


@pytest.mark.parametrize("name", sorted(path.name for path in EXAMPLES.iterdir() if path.is_dir()))
def test_a_case_of_the_search_is_the_case_of_the_gate(name: str) -> None:
    """flash_attention has its P0 shape with causal=True: what the search makes faster, the gate and `regress` must time."""
    contract = load_contract(OpWorkspace.at(EXAMPLES / name))
    gate = {case["id"]: case for case in shapes.p0_cases(contract, every_dtype=True)}
    searched = shapes.p0_cases(contract)
    assert searched and all(gate[case["id"]] == case for case in searched)


def test_other_shapes_are_ordinary_ones_of_the_suite() -> None:
    others = shapes.other_cases(load_contract(OpWorkspace.at(EXAMPLES / "rmsnorm")))
    assert {case["id"] for case in others} == {
        "L2_two_tiles_fp32", "L2_two_tiles_fp16", "L2_two_tiles_bf16", "L4_long_bf16", "L4_wide",
    }  # fmt: skip


@pytest.mark.sim
def test_a_target_below_what_the_cube_units_allow_is_refused(tmp_path: Path) -> None:
    """The products of the largest P0 shape take longer than its data, even at the 16-bit rate."""
    ws = OpWorkspace.at(Path(shutil.copytree(EXAMPLES / "matmul_bias_gelu", tmp_path / "matmul_bias_gelu")))
    spec = ws.spec.read_text(encoding="utf-8")
    assert "{M: 256, K: 512, N: 256}" in spec
    ws.spec.write_text(spec.replace("{M: 256, K: 512, N: 256}", "{M: 1024, K: 1024, N: 1024}"), encoding="utf-8")
    contract = load_contract(ws)
    subject = resolve(ws, contract.total_modules)
    with Clock(contract, subject, Mode.SIM, Limits(), few=False) as clock:
        moving = bound_of(clock.work()).least_us
        bound = bound_of(counted(contract, subject, clock.cases[0], clock.work())).least_us
        assert moving < bound
        with pytest.raises(ContractError, match="no kernel reaches .* to multiply the matrices"):
            require_possible((moving + bound) / 2, contract, subject, clock)
        require_possible(bound * 1.01, contract, subject, clock)
