"""Which calls that the wrapper must refuse are made of SPEC.md's edge cases."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from tests.generators.test_draws import EDGES, made, placed, tensor

from pypto_op.errors import ContractError
from pypto_op.generators.cases.case_maker import Maker
from pypto_op.generators.cases.refusals import refusals
from pypto_op.generators.operator.sources import gather
from pypto_op.judge.running.raises import faulty


def test_refusals_are_read_from_the_edge_cases_alone(tmp_path: Path) -> None:
    ports = [tensor("x"), tensor("g"), {"name": "eps", "shape": [], "dtype": "float32"}]
    ws = placed(tmp_path, ports, body=EDGES, shape_constraints=["D <= 32"])
    found = {told["id"]: told for told in refusals(Maker(gather(ws)))}
    assert set(found) == {"raises_S_0", "raises_D_33", "raises_dtype", "raises_non_contiguous_x", "raises_eps_-1.0"}
    given = list(made(ws).items())
    assert faulty(given, found["raises_dtype"])[0].dtype is torch.int32
    strided = faulty(given, found["raises_non_contiguous_x"])
    assert not strided[0].is_contiguous() and torch.equal(strided[0], given[0][1]) and strided[1].is_contiguous()
    assert faulty(given, found["raises_eps_-1.0"])[2] == -1.0
    with pytest.raises(ContractError, match="cannot be a fault of y"):
        faulty(given, {"id": "r", "fault": "non_contiguous", "input": "y"})
    data = {"schema_version": 1, "op": "op", "total_modules": 1, "cases": [], "raises": list(found.values())}
    assert json.loads(json.dumps(data))["raises"]


REFUSED = {
    "D other than 32": {"raises_D_16"},
    "D != 32": {"raises_D_16"},
    "D no multiple of 16 or above 32": {"raises_D_24", "raises_D_48"},
    "S, D or `H` no multiple of 16": {"raises_S_24", "raises_D_24"},
    "S, D no multiple of 16": {"raises_S_24", "raises_D_24"},
    "eps outside 0 to 1": {"raises_eps_-1.0", "raises_eps_1.01"},
    "eps outside (0, 1]": {"raises_eps_0.0", "raises_eps_-1.0", "raises_eps_1.01"},
    "eps not in `[-2, 0.99)`": {"raises_eps_-2.02", "raises_eps_0.99", "raises_eps_0.9999"},
    "eps outside (0, inf)": {"raises_eps_0.0", "raises_eps_-1.0"},
    "a non-positive eps": {"raises_eps_0.0", "raises_eps_-1.0"},
    "negative eps": {"raises_eps_-1.0"},
    "non-contiguous x, g": {"raises_non_contiguous_x", "raises_non_contiguous_g"},
    "non-contiguous x, non-contiguous g": {"raises_non_contiguous_x", "raises_non_contiguous_g"},
    "non-contiguous tensors": {"raises_non_contiguous_x", "raises_non_contiguous_g"},
    "x of another rank": {"raises_rank_x"},
    "unequal shapes": {"raises_shape_x_S", "raises_shape_g_S"},
    "Empty tensors": {"raises_S_0"},
}


RELATED = {
    "2 * pad above window": {"raises_pad_2"},
    "`2 * pad` is above `window`": {"raises_pad_2"},
    "pad > window // 2": {"raises_pad_2"},
    "pad more than window / 2": {"raises_pad_2"},
    "window larger than D": {"raises_D_2"},
    "window exceeds D": {"raises_D_2"},
    "D no multiple of pad": {"raises_pad_3"},
    "pad does not divide D": {"raises_pad_3"},
    "S not equal to pad * S": {"raises_pad_0"},
    "D no multiple of S": set(),
    "H above window": set(),
}


@pytest.mark.parametrize("clause", RELATED)
@pytest.mark.parametrize(
    "form", ["{}: the wrapper raises ValueError", "x of another rank: it raises ValueError. So it does where {}"]
)
def test_a_relation_between_names_makes_a_call_for_each_that_can_break_it(tmp_path: Path, clause: str, form: str) -> None:
    """A pad above half of the window was taken: each number lay within its own range."""
    ports = [tensor("x"), *({"name": name, "shape": [], "dtype": "int32"} for name in ("window", "pad"))]
    body = f"## 9. Edge cases\n- {form.format(clause)}.\n"
    rules = ["D <= 32", "2 <= window <= 3", "0 <= pad <= 3", "2 * pad <= window"]
    ws = placed(tmp_path, ports, body=body, shape_constraints=rules, default_params={"window": 3, "pad": 1})
    untried: list[str] = []
    found = {told["id"] for told in refusals(Maker(gather(ws)), untried)}
    assert found - {"raises_rank_x"} == RELATED[clause] and bool(untried) is not bool(RELATED[clause])


@pytest.mark.parametrize("said", ["A cyclic x is rejected", "The wrapper refuses S above 99", "eps < 0 is an error"])
def test_a_sentence_that_only_seems_to_speak_of_value_error_is_told(tmp_path: Path, said: str) -> None:
    body = f"## 9. Edge cases\n- S = 0: the wrapper raises ValueError.\n- {said}.\n- What x holds is not checked.\n"
    untried: list[str] = []
    found = refusals(Maker(gather(placed(tmp_path, [tensor("x")], body=body))), untried)
    assert [told["id"] for told in found] == ["raises_S_0"] and untried == [said]


@pytest.mark.parametrize("clause", REFUSED)
def test_each_form_of_a_refusal_makes_its_calls(tmp_path: Path, clause: str) -> None:
    ports = [tensor("x"), tensor("g"), {"name": "eps", "shape": [], "dtype": "float32"}]
    body = f"## 9. Edge cases\n- {clause}: the wrapper raises ValueError.\n- A cyclic x, S = 0: the wrapper raises ValueError.\n"
    untried: list[str] = []
    ws = placed(tmp_path, ports, body=body, shape_constraints=["D <= 32", "D % 16 == 0"])
    found = {told["id"]: told for told in refusals(Maker(gather(ws)), untried)}
    assert set(found) == REFUSED[clause] | {"raises_S_0"} and untried == ["A cyclic x"], "what makes no call is told"
    given = made(ws)
    for told in found.values():
        if told["fault"] in ("rank", "shape"):
            wrong = dict(zip(given, faulty(list(given.items()), told), strict=True))[told["input"]]
            rows, columns = given[told["input"]].shape
            assert wrong.shape == ((1, rows, columns) if told["fault"] == "rank" else (rows + 1, columns))


def test_an_end_that_spec_leaves_out_of_a_range_is_refused_too(tmp_path: Path) -> None:
    """A wrapper that took 0 for legal passed: of a share in (0, 1] only -1 and 2 were tried."""
    ports = [tensor("x"), {"name": "eps", "shape": [], "dtype": "float32"}]
    body = "## 9. Edge cases\n- eps outside 0 to 1: the wrapper raises ValueError.\n"
    ws = placed(tmp_path, ports, body=body, input_ranges={"eps": "(0, 1]"})
    assert [told["value"] for told in refusals(Maker(gather(ws)))] == [0.0, -1.0, 1.01]


@pytest.mark.parametrize(
    "clause", ["eps outside its range", "an eps out of range", "eps beyond the legal limits", "eps not within its bounds"]
)
def test_a_range_that_stands_elsewhere_is_looked_up(tmp_path: Path, clause: str) -> None:
    """`temperature outside its range` made no call, though the front matter says from where to where it goes."""
    ports = [tensor("x"), {"name": "eps", "shape": [], "dtype": "float32"}]
    body = f"## 9. Edge cases\n- {clause}, D outside its range: the wrapper raises ValueError.\n"
    ws = placed(tmp_path, ports, body=body, shape_constraints=["0.5 <= eps < 4", "D <= 32"])
    untried: list[str] = []
    found = [told.get("value", told["shape"]["D"]) for told in refusals(Maker(gather(ws)), untried)]
    assert found == [0.495, 4.0, 4.04, 33] and untried == []
