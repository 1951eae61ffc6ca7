"""A kernel's free choices: found in its text, written by libcst, and held against the chip's limits."""

from __future__ import annotations

import difflib
import random

import pytest
from tests.judge.judging import REPOSITORY

from pypto_op.tuning.choice import Kind
from pypto_op.tuning.kernel import Kernel
from pypto_op.tuning.proposer import Proposer
from pypto_op.tuning.thumb import follow, rules

EXAMPLES = REPOSITORY / "examples" / "ops"
NAMES = sorted(path.name for path in EXAMPLES.iterdir() if path.is_dir())


def kernel(name: str) -> Kernel:
    return Kernel((EXAMPLES / name / f"{name}_impl.py").read_text(encoding="utf-8"), f"{name}_wrapper")


def lines(made: Kernel, assignment: dict[str, str]) -> list[str]:
    """Lines that a candidate adds, without their indentation."""
    diff = difflib.ndiff(made.source.splitlines(), made.write(assignment).splitlines())
    return [line[2:].strip() for line in diff if line.startswith("+ ")]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_any_assignment_of_an_example_is_python_and_keeps_comments(name: str) -> None:
    made, dice = kernel(name), random.Random(3)
    comments = sum("#" in line for line in made.source.splitlines())
    for _ in range(8):
        assignment = {key: dice.choice(choice.options) for key, choice in made.choices.items()}
        text = made.write(assignment)
        compile(text, name, "exec")
        assert sum("#" in line for line in text.splitlines()) == comments


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.slow
def test_what_the_kernel_says_is_within_the_limits_and_changes_nothing(name: str) -> None:
    made = kernel(name)
    now = {key: choice.now for key, choice in made.choices.items()}
    assert made.essence(now) == {} and made.write(now) == made.source and made.faults(now) == []


@pytest.mark.slow
def test_kinds_of_the_examples() -> None:
    found = {choice.kind for name in NAMES for choice in kernel(name).choices.values()}
    assert found >= {Kind.VECTOR_TILE, Kind.CUBE_TILE, Kind.ROWS, Kind.UNROLL, Kind.PASS_OPTION, Kind.LOOP_ORDER, Kind.HOIST}


JIT = '@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.NPU})'


def with_jit(words: str) -> Kernel:
    source = kernel("rmsnorm").source
    assert JIT in source
    return Kernel(source.replace(JIT, f"@pypto.frontend.jit({words})"), "rmsnorm_wrapper")


@pytest.mark.parametrize(
    "words", ["pass_options=OPTIONS", 'pass_options={**OPTIONS, "vec_nbuffer_setting": {-1: 2}}', "**OPTIONS"]
)
def test_pass_options_that_are_not_spelled_out_stay(words: str) -> None:
    """A candidate that wrote its own would lose what OPTIONS holds, and say that the kernel had said nothing."""
    made = with_jit(words)
    assert not [key for key, choice in made.choices.items() if choice.kind is Kind.PASS_OPTION]
    assert f"@pypto.frontend.jit({words})" in made.write({"rows T_TILE": "8"})


@pytest.mark.slow
def test_debug_options_leave_and_all_else_keeps_its_lines() -> None:
    made = with_jit('\n        run=1,\n        debug_options={},\n        pass_options={"a": 1},\n    ')
    assert lines(made, {"rows T_TILE": "8"}) == ["T_TILE = 8"]
    setting = {"vec_nbuffer_setting of rmsnorm_kernel": "{-1: 2}"}
    assert lines(made, setting) == ['pass_options={"a": 1, "vec_nbuffer_setting": {-1: 2}},']
    bare = with_jit("\n        run=1,\n        debug_options={},\n    ")
    assert lines(bare, setting) == ['pass_options={"vec_nbuffer_setting": {-1: 2}},']


def test_rows_and_tiles_of_rmsnorm() -> None:
    made = kernel("rmsnorm")
    assignment = {"rows T_TILE": "4", "vector tile 16, 512 [0]": "4", "vector tile 16, 512 [1]": "2048"}
    assert lines(made, assignment) == ["T_TILE = 4", "pypto.set_vec_tile_shapes(4, 2048)"]


def test_a_literal_that_means_the_rows_follows_them() -> None:
    """pypto.arange takes literals only: index of [S_TILE] must grow with S_TILE."""
    made = kernel("flash_attention_fwd")
    assert "index = pypto.arange(0.0, 64.0, 1.0)  # [S_TILE]" in lines(made, {"rows S_TILE": "64"})


@pytest.mark.slow
def test_an_exponent_that_the_file_states_follows_its_power() -> None:
    made = kernel("gated_delta_rule_bwd")
    assert {"CHUNK = 32", "LEVELS = 5"} <= set(lines(made, {"rows CHUNK": "32"}))


def test_loops_are_exchanged_and_loads_leave_them() -> None:
    made = kernel("matmul_bias_gelu")
    keys = list(made.choices)
    order = next(key for key in keys if made.choices[key].kind is Kind.LOOP_ORDER)
    load = next(key for key in keys if key.startswith("w_tile out of"))
    assert made.choices[load].under == order
    assert made.essence({load: "before"}) == {}, "it counts only once the loops are exchanged"
    text = made.write({order: "exchanged", load: "before"})
    columns, rows, tile = (text.index(word) for word in ('name="COLUMNS"', 'name="ROWS"', "w_tile = pypto.view"))
    assert columns < tile < rows, "the weight's tile stands between the loops"
    inner = text[rows : text.index("x_tile = pypto.view")]
    assert "rows = pypto.min(tokens - i * M_TILE, M_TILE)" in inner, "what hangs on the rows moved inwards"


def test_a_state_that_is_carried_stops_the_exchange() -> None:
    assert not [c for c in kernel("softmax").choices.values() if c.kind is Kind.LOOP_ORDER]


def test_unroll_and_pass_options() -> None:
    made = kernel("softmax")
    unroll = [key for key in made.choices if key.startswith("unroll_list")]
    assert [key.split()[3] for key in unroll] == ["REDUCE", "WRITE"], "innermost loops only"
    merge = next(key for key in made.choices if key.startswith("vec_nbuffer"))
    text = made.write({unroll[0]: "[4, 2, 1]", merge: "{-1: 4}"})
    assert 'idx_name="c", unroll_list=[4, 2, 1])' in text
    assert 'pass_options={"vec_nbuffer_setting": {-1: 4}})' in text


@pytest.mark.slow
def test_one_setting_for_all_functions_or_one_for_each() -> None:
    made = kernel("flash_attention_bwd")
    switch = "vector tile 64, 128, functions"
    own = "vector tile 64, 128 of pypto_product [0]"
    assert made.essence({own: "32"}) == {}
    assert lines(made, {switch: "apart", own: "32"}) == ["pypto.set_vec_tile_shapes(32, 128)"]
    assert len(lines(made, {"vector tile 64, 128 [0]": "32"})) > 3


@pytest.mark.parametrize(
    ("name", "assignment", "word"),
    [
        ("rmsnorm", {"vector tile 16, 512 [0]": "256", "vector tile 16, 512 [1]": "4096"}, "UB"),
        ("matmul_bias_gelu", {"cube tile 128, 128, 128, 128, 128, 128 [0]": "256"}, "L0A"),
        ("matmul_bias_gelu", {"cube tile 128, 128, 128, 128, 128, 128 [1]": "64"}, "multiple of mL0"),
    ],
)
def test_limits_are_told_with_their_arithmetic(name: str, assignment: dict[str, str], word: str) -> None:
    assert any(word in fault for fault in kernel(name).faults(assignment))


def test_debug_options_do_not_survive() -> None:
    source = (EXAMPLES / "rmsnorm" / "rmsnorm_impl.py").read_text(encoding="utf-8")
    debugged = source.replace("frontend.jit(", 'frontend.jit(debug_options={"runtime_debug_mode": 1}, ')
    made = Kernel(debugged, "rmsnorm_wrapper")
    assert "debug_options" not in made.write({"rows T_TILE": "4"})


def test_tiles_follow_rows_that_say_the_same() -> None:
    made = kernel("softmax")
    assert follow(made.choices, {"rows C_TILE": "512"}) == {"vector tile 16, 128 [1]": "512"}
    assert follow(made.choices, {"rows C_TILE": "256"}, {"rows C_TILE": "512", "vector tile 16, 128 [1]": "512"}) == {
        "vector tile 16, 128 [1]": "256"
    }
    assert follow(made.choices, {"rows C_TILE": "256"}, {"vector tile 16, 128 [1]": "64"}) == {}, "they do not say the same"


def test_a_slow_kernel_is_unrolled_last() -> None:
    made = kernel("softmax")
    unrolled = [
        [number for number, rule in enumerate(rules(made.choices, slow=slow)) if any(key.startswith("unroll") for key in rule)]
        for slow in (False, True)
    ]
    total = len(list(rules(made.choices, slow=True)))
    assert unrolled == [[0, 1], [total - 2, total - 1]]


def test_good_candidates_are_joined() -> None:
    """Each half of a change that is good is known; the search soon tries both at once."""
    made = kernel("softmax")
    halves = ({"rows C_TILE": "512"}, {"unroll_list of loop WRITE of _softmax_kernel_impl": "[4, 2, 1]"})
    proposer = Proposer(made, 5, iter(halves))
    for ratio in (0.7, 0.6):
        proposal = proposer.next()
        assert proposal is not None
        proposer.tell(proposal, ratio)
    tried = []
    for _ in range(40):
        proposal = proposer.next()
        assert proposal is not None
        tried.append(proposal.assignment)
        proposer.tell(proposal, 1.0)
    assert {**halves[0], **halves[1]} in tried


def test_a_way_that_was_no_gain_is_not_gone_further() -> None:
    made = kernel("softmax")
    rows = [{"rows C_TILE": number} for number in ("64", "32", "256", "512")]
    proposer = Proposer(made, 5, iter(rows))
    told = {"64": 1.2, "256": 0.8, "512": 0.7}
    proposed = []
    for _ in range(3):
        proposal = proposer.next()
        assert proposal is not None
        proposed.append(proposal.assignment["rows C_TILE"])
        proposer.tell(proposal, told[proposed[-1]])
    assert proposed == ["64", "256", "512"], "64 was slower, so 32 is left out; 256 was faster"
