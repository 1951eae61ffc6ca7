"""Mutants are made from the text alone: every operator finds its place, and none touches what is no kernel."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from pypto_op.errors import ContractError
from pypto_op.mutation.mutants import in_turns, make_mutants
from pypto_op.mutation.operators.registry import OPERATORS, select
from pypto_op.mutation.program import Program

from .specimen import SOURCE


@pytest.fixture(scope="module")
def program() -> Program:
    return Program(SOURCE, "specimen_wrapper")


@pytest.fixture(scope="module")
def mutants(program):
    return make_mutants(program, select(None))


def planted(program, operator: str) -> list[str]:
    """Return the lines that one operator writes."""
    made = make_mutants(program, select([operator]))
    return [line[1:].strip() for mutant in made for line in mutant.diff.splitlines() if line.startswith("+")]


def test_there_are_operators_for_every_fault_that_the_design_names():
    assert len(OPERATORS) >= 15
    assert all(operator.fault for operator in OPERATORS.values())


@pytest.mark.parametrize("operator", OPERATORS)
def test_every_operator_finds_its_place(program, operator):
    assert planted(program, operator)


@pytest.mark.parametrize(
    ("operator", "line"),
    [
        ("loop_bound", 'for i in pypto.loop(((count + TILE - 1) // TILE) - 1, name="I", idx_name="i"):'),
        ("loop_start", 'for j in pypto.loop(0 + 1, count, 1, name="J", idx_name="j"):'),
        ("loop_edge", "if pypto.cond(pypto.is_loop_end(j)):"),
        ("dropped_tail", 'for i in pypto.loop(count // TILE, name="I", idx_name="i"):'),
        ("view_offset", "tile = pypto.view(q, [TILE, 64], [0, 0], valid_shape=[rows, 64])"),
        ("wrong_tail", "rows = TILE"),
        ("valid_shape", "tile = pypto.view(q, [TILE, 64], [i * TILE, 0])"),
        ("transpose_flag", "return pypto.matmul(scores, values, pypto.DT_FP32, b_trans=False)"),
        ("axis", "best = pypto.maximum(pypto.amax(scores, 0, True), LOWEST)"),
        ("missing_term", "scores = weigh(widen(tile, pypto.DT_FP32), v)"),
        ("operand_order", "weights = pypto.exp(best - scores) / 2.0"),
        ("wrong_function", "best = pypto.maximum(pypto.amin(scores, -1, True), LOWEST)"),
        ("missing_function", "weights = scores - best / 2.0"),
        ("missing_bound", "best = pypto.amax(scores, -1, True)"),
        ("constant", "LOWEST = -1.0"),
        ("comparison", "scores = pypto.where(pypto.gt(scores, start), scores, LOWEST)"),
        ("missing_mask", "scores = scores"),
        ("nan_swallowed", "best = pypto.where(pypto.eq(best, best), best, 0.0)"),
        ("stale_state", "pass"),
        ("initial_value", "start = pypto.full([TILE, 1], 0.0 + 1.0, pypto.DT_FP32)"),
        ("swapped_outputs", "return aux, out"),
        ("swapped_arguments", "kernel(q, v, aux, out, float(scale))"),
        ("scaled_argument", "kernel(q, v, out, aux, float(scale) * 1.01)"),
        ("accumulator_dtype", 'total = pypto.tensor([TILE, 1], pypto.DT_BF16, "total")'),
        ("missing_cast", "return tile if dtype == pypto.DT_FP32 else tile"),
        ("output_dtype", "out = torch.empty(q.shape, dtype=torch.bfloat16, device=q.device)"),
    ],
)
def test_an_operator_plants_the_fault_that_it_is_named_after(program, operator, line):
    assert line in planted(program, operator)


@pytest.mark.slow
def test_every_mutant_is_python_and_differs_at_the_line_that_it_names(mutants):
    before = SOURCE.splitlines()
    assert len({mutant.source for mutant in mutants}) == len(mutants)
    for mutant in mutants:
        ast.parse(mutant.source)
        after = mutant.source.splitlines()
        first = next(i for i, (one, two) in enumerate(zip(before, after, strict=False), 1) if one != two)
        assert abs(first - mutant.line) <= 1, mutant.diff


@pytest.mark.slow
def test_checks_documentation_and_scheduling_stay_as_they_are(mutants):
    for kept in (
        "    if q.dim() != 2:",
        "    if scale < 0.0:",
        '    """A docstring with 1.5 in it."""',
        "    pypto.set_cube_tile_shapes([128, 128], [128, 128], [128, 128])",
        "    check(q)",
        "@pypto.frontend.jit",
        "TILE = 16",
    ):
        assert all(kept in mutant.source.splitlines() for mutant in mutants), kept


@pytest.mark.slow
def test_a_sample_is_the_same_for_a_seed_and_holds_rare_operators(mutants):
    one, again = (in_turns(mutants, 3)[:40] for _ in range(2))
    assert one == again
    assert len(one) == 40
    assert {mutant.operator for mutant in one} == {mutant.operator for mutant in mutants}
    assert one != in_turns(mutants, 4)[:40]


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("def f(:\n", "not valid Python"),
        ("def specimen_wrapper(x):\n    return x\n", "no @pypto.frontend.jit"),
        ("import pypto\n\n@pypto.frontend.jit\ndef kernel(x):\n    pass\n", "no function specimen_wrapper"),
    ],
)
def test_a_file_without_a_kernel_is_refused_in_one_line(source, problem):
    with pytest.raises(ContractError, match=problem) as error:
        Program(source, "specimen_wrapper", Path("custom/specimen/specimen_impl.py"))
    assert error.value.one_line().startswith("custom/specimen/specimen_impl.py: ")


def test_an_unknown_operator_is_refused_with_the_known_ones():
    with pytest.raises(ContractError, match="no mutation operator 'loop_bond'") as error:
        select(["loop_bond"])
    assert "loop_bound" in error.value.one_line()
