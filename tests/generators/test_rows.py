"""What SPEC.md's `input_ranges` says of whole rows: each draw keeps to it, the judge asks for it, nonsense is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.generators.test_draws import CASE, DRAWS, made, make_inputs_of, placed, tensor
from tests.judge.judging import CASES, place, verify
from tests.quickly import examples

from pypto_op.documents import rows as rows_document
from pypto_op.documents import spec as spec_document
from pypto_op.errors import ContractError
from pypto_op.generators.cases import suite as suite_cases
from pypto_op.generators.evaluation import inputs_text
from pypto_op.generators.operator.sources import gather
from pypto_op.generators.rehearsing.rehearsal import rehearse
from pypto_op.judge.cases.contract import load_contract
from pypto_op.stress.patterns import within
from pypto_op.workspace import OpWorkspace

UNIT = {"row_length": 1}
FORMS: list[dict[str, Any]] = [
    UNIT,
    {"row_length": "[0, 1]"},
    {"row_length": 1, "values": "[0, 1]"},
    {"row_sum": 1, "values": "(0, 1]"},
    {"row_order": "falling", "values": "(-inf, 0]"},
    {"row_order": "rising", "row_sum": "(0, 2)", "values": "[0, inf)"},
    {"one_of": [-1, 0, 1]},
    {"one_of": [0.5, 0]},
]
ROW_STEPS = [{"input": "g", "pattern": "follow", "of": "x", "gap": 1e-3}, {"input": "g", "pattern": "repeat", "axis": 0}]


@pytest.mark.parametrize("said", FORMS, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_no_draw_leaves_what_is_said_of_rows(tmp_path: Path, said: dict[str, Any], dtype: str) -> None:
    words = ["float32", "float16", "bfloat16"]
    tolerance = {word: {"atol": 1e-2, "rtol": 1.6e-2} for word in words}
    ranges = {"input_ranges": {"g": said}, "supported_dtypes": words, "tolerance": tolerance}
    ws = placed(tmp_path, [tensor("x"), tensor("g")], **ranges)
    ws.suite.write_text(json.dumps({"schema_version": 1, "op": ws.name, "total_modules": 1, "cases": [CASE]}))
    make, contract = make_inputs_of(ws), load_contract(ws)
    rows = contract.rows["g"]
    for knob in [*DRAWS, {"draw_zone": "huge", "draw_scale": 1e4}, {"cancellation_stress": {"recipe": ROW_STEPS}}]:
        if rows.measure and knob.get("draw_zone") == "largest":
            continue  # no case has it: no row of a length holds the largest value
        values = make({**CASE, "dtype": dtype, **knob})["g"]
        assert values.isfinite().all() and values.dtype is getattr(torch, dtype)
        assert not rows.left_by(values), (knob, rows.left_by(values))
        contract.check_inputs({**CASE, "dtype": dtype}, [("x", torch.zeros_like(values)), ("g", values)])
    one, other = (make({**CASE, "dtype": dtype, "seed": seed})["g"] for seed in (1, 2))
    assert one.unique().numel() > (8 if not rows.one_of else len(rows.one_of) - 1) and not torch.equal(one, other)


SHAPES = st.lists(st.integers(1, 40), min_size=1, max_size=3).map(tuple)
DTYPES = st.sampled_from([torch.float32, torch.float16, torch.bfloat16])
SCALES = st.sampled_from([0.0, 1e-30, 1e-6, 1.0, 300.0, 1e5, 1e30])


@pytest.mark.slow
@settings(max_examples=examples(200))
@given(shape=SHAPES, dtype=DTYPES, scale=SCALES, offset=st.sampled_from([0.0, -3.0]), nan=st.booleans(), seed=st.integers(0, 99))
def test_rows_of_length_1_keep_their_direction(shape, dtype, scale, offset, nan, seed) -> None:
    drawn = torch.randn(shape, generator=torch.Generator().manual_seed(seed)) * scale + offset
    if nan:
        drawn.reshape(-1)[0] = float("nan")
    values = within(drawn, dtype, None, {"length": (1.0, 1.0, False, False)})
    assert values.dtype is dtype and values.shape == shape
    assert torch.equal(values.isnan(), drawn.isnan()), "NaN stays where it is, and nothing else becomes NaN"
    plain = values.double().nan_to_num()
    lengths, slack = plain.norm(dim=-1), 2 * torch.finfo(dtype).eps + shape[-1] * 6e-8
    told = drawn.nan_to_num().double()
    directed = told.ne(0.0).any(-1)
    assert ((lengths - 1.0).abs() <= slack)[directed | ~drawn.isnan().any(-1)].all()
    told = told / told.abs().amax(-1, keepdim=True).clamp_min(1e-300)
    assert (torch.nn.functional.cosine_similarity(plain, told, dim=-1) > 0.999)[directed].all()


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"unit_rows": True}, "input_ranges.x: unknown key 'unit_rows'"),
        ({"row_length": "long"}, "input_ranges.x.row_length: 'long' is no range of numbers; write 1, [0, 1]"),
        ({"row_length": "[0, S]"}, "is no range of numbers"),
        ({"row_length": -1}, "-1 holds no value"),
        ({"row_length": "(1, 1]"}, "holds no value"),
        ({"row_length": 1, "values": "[0.5, 1]"}, "leaves the range [0.5, 1] of the values"),
        ({"row_length": 2, "values": "[-1, 2]"}, "let that begin at 0 or at -2, and end at 2"),
        ({"row_sum": 1}, 'needs values from 0 on; write `values: "[0, inf)"`'),
        ({"row_length": 1, "row_sum": 1}, "give one of them"),
        ({"row_order": "up"}, "'up' is not one of rising, falling"),
        ({"values": "0..1"}, "input_ranges.x.values: '0..1' is no range"),
        ({"one_of": [0]}, "input_ranges.x.one_of: needs at least 2 item(s)"),
        ({"one_of": [0, 0]}, "input_ranges.x.one_of"),
        ({"one_of": "{0, 1}"}, "input_ranges.x.one_of"),
        ({"one_of": [0, 1], "row_sum": 1}, "one_of says all of the values; leave the other keys out"),
        ({}, "needs at least 1 key"),
    ],
    ids=str,
)
def test_senseless_rows_are_one_line(tmp_path: Path, said: dict[str, Any], words: str) -> None:
    with pytest.raises(ContractError) as caught:
        spec_document.load(placed(tmp_path, [tensor("x")], input_ranges={"x": said}).spec)
    line = caught.value.one_line()
    assert words in line and "SPEC.md" in line and "\n" not in line


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"xx": UNIT}, "input_ranges.xx: xx is no input; write one of x, pick, count, eps"),
        ({"xx": "[0, 1]"}, "xx is no input"),
        ({"count": UNIT}, "count has no rows; give an interval"),
        ({"eps": UNIT}, "eps has no rows"),
        ({"pick": UNIT}, "pick is int32, and row_length is for floating inputs"),
        (
            {"pick": {"one_of": [0, 1]}},
            'pick is int32, and one_of is for floating inputs; write `shape_constraints: ["0 <= pick <= 1"]`',
        ),
    ],
    ids=str,
)
def test_what_is_said_of_no_input_is_refused_by_generator_and_judge(tmp_path: Path, said: dict[str, Any], words: str) -> None:
    ports = [tensor("x"), tensor("pick", "int32", ("S",)), {"name": "count", "shape": [], "dtype": "float32"}]
    ws = placed(tmp_path, ports, input_ranges=said, default_params={"eps": 1e-6})
    ws.suite.write_text(json.dumps({"schema_version": 1, "op": ws.name, "total_modules": 1, "cases": [CASE]}))
    for read in (gather, load_contract):
        with pytest.raises(ContractError) as caught:
            read(ws)
        assert words in caught.value.one_line() and "SPEC.md" in caught.value.one_line()


def test_whole_numbers_are_sorted(tmp_path: Path) -> None:
    ws = placed(
        tmp_path,
        [tensor("x"), tensor("pick", "int32", ("S",))],
        input_ranges={"pick": {"values": "[0, D)", "row_order": "rising"}},
    )
    pick = made(ws)["pick"]
    assert pick.max() == 31 and (pick.diff() >= 0).all() and not torch.equal(pick, made(ws, seed=1)["pick"])
    assert "rising" in rows_document.Rows(order="rising").left_by(pick.flip(0))


def test_numbers_that_stand_once_do_so_in_every_case(tmp_path: Path) -> None:
    """A kernel that asks for each slot which token it has differs from the golden on two tokens of one slot."""
    said = {"slot": {"values": "[-1, D)", "distinct": True}}
    ws = placed(tmp_path, [tensor("x"), tensor("slot", "int32", ("S",))], input_ranges=said)
    kept = rows_document.Rows(distinct=True)
    make, cases = make_inputs_of(ws), suite_cases.cases(gather(ws))
    drawn = [make(case)["slot"] for case in cases if "cancellation_stress" not in case]
    assert len(drawn) > 10 and not any(kept.left_by(slot) for slot in drawn)
    assert any(int(slot.max()) > 0 for slot in drawn) and any(int((slot < 0).sum()) > 1 for slot in drawn), (
        "-1 stands there often"
    )
    assert "twice" in kept.left_by(torch.tensor([3, -1, 0, 3])) and not kept.left_by(torch.tensor([3, -1, 0, -1]))


def test_rows_in_order_leave_room_at_both_ends(tmp_path: Path) -> None:
    """Borders of segments that always begin at the first row and stop at the last hide what a kernel does with rows outside."""
    ws = placed(
        tmp_path,
        [tensor("x"), tensor("pick", "int32", ("S",))],
        input_ranges={"pick": {"values": "[0, D)", "row_order": "rising"}},
    )
    make, shape = make_inputs_of(ws), {**CASE["shape"], "S": 4, "D": 1000}
    drawn = [make({**CASE, "shape": shape, "seed": seed})["pick"] for seed in range(24)]
    assert any(int(pick[0]) == 0 and int(pick[-1]) == 999 for pick in drawn), "both ends are drawn"
    assert any(int(pick[0]) > 0 and int(pick[-1]) < 999 for pick in drawn), "and rows lie outside in other draws"


def test_no_case_wants_what_the_rows_rule_out(tmp_path: Path) -> None:
    edges = "## 9. Edge cases\n- A row with NaN or +inf is NaN throughout.\n"
    ws = placed(tmp_path, [tensor("x"), tensor("k")], body=edges, input_ranges={"k": UNIT})
    zones = [case["draw_zone"] for case in suite_cases.cases(gather(ws)) if isinstance(case.get("draw_zone"), dict)]
    assert {"x": "zero_row"} in zones and {"x": "row_scaled"} in zones and {"x": "one_inf"} in zones and {"k": "one_nan"} in zones
    assert not [zone for zone in zones if zone.get("k") in ("zero_row", "row_scaled", "one_inf")]


def _declared(ws: OpWorkspace, ranges: dict[str, Any]) -> None:
    ws.spec.write_text(ws.spec.read_text().replace("dynamic_axes:", f"input_ranges: {json.dumps(ranges)}\ndynamic_axes:"))


@pytest.mark.sim
@pytest.mark.parametrize(
    ("said", "words"),
    [
        (UNIT, "y has rows whose length is not in [1, 1], as SPEC.md's input_ranges say"),
        ({"row_sum": "[0, 1]", "values": "(-inf, inf)"}, ""),
        ({"row_order": "rising"}, "y has rows that are not rising"),
        ({"one_of": [0, 1]}, "y has values that are none of 0, 1, as SPEC.md's input_ranges say"),
    ],
    ids=str,
)
def test_the_judge_refuses_inputs_whose_rows_are_others(tmp_path: Path, said: dict[str, Any], words: str) -> None:
    ws = place("sum_diff", tmp_path, cases=CASES)
    _declared(ws, {"y": said})
    answer = verify(ws.root, as_json=False)
    assert answer.code == 2
    assert (words or "needs values from 0 on") in answer.stdout + answer.stderr


LEGAL_ONLY = """import torch


def chain_golden(x, y):
    if not bool(y.isnan().any()) and float((y.double().norm(dim=-1) - 1.0).abs().max()) > 1e-4:
        raise ValueError("y must have rows of length 1")
    return x * x + y
"""


TOLD = ("huge", "rising", "grid", "zero_row_x", "cancellation_stress_0")


@pytest.mark.sim
@pytest.mark.slow
def test_cases_keep_to_it_from_the_generator_to_the_verdict(bare: OpWorkspace) -> None:
    """The golden raises on other rows, so each draw that leaves them shows: zones, slopes, searched recipes, drawn shapes."""
    bare.golden.write_text(LEGAL_ONLY)
    _declared(bare, {"y": UNIT})
    sources = gather(bare)
    bare.test_inputs.write_text(inputs_text(sources))
    cases = [case for case in suite_cases.cases(sources) if case["id"].partition("_")[2] in TOLD or case["id"] == "L2_base"]
    assert len(cases) == len(TOLD) + 1
    rehearsed = rehearse(bare, cases, sources.spec.policy())
    assert "y must have rows" not in str(rehearsed.dropped) and len(rehearsed.cases) >= len(TOLD)
    suite = {"schema_version": 1, "op": "chain", "total_modules": 2, "cases": [c for c in rehearsed.cases if c["level"] == "L2"]}
    bare.suite.write_text(json.dumps(suite))
    answer = verify(bare.root)
    assert (answer.code, answer.report["status"]) == (0, "PASS"), answer.stdout[-2000:]
    assert answer.report["fresh_shapes"]["cases"] == ["fresh_N"]
