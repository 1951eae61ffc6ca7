"""Sums that equal what they are compared with: `<=` in the place of `<` was right on every draw."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.generators.test_draws import made, placed, tensor, with_inputs

from pypto_op.backends.reference import ReferenceSession
from pypto_op.generators.cases import suite as suite_cases
from pypto_op.generators.rehearsing.first_candidate import Draw, FirstCandidate
from pypto_op.workspace import OpWorkspace

NUCLEUS = """import torch


def op_golden(probs, top_p):
    ordered, places = torch.sort(probs, dim=-1, descending=True, stable=True)
    front = torch.cumsum(ordered, dim=-1) - ordered
    stays = torch.zeros_like(probs).scatter(-1, places, (front {sign} top_p).to(probs.dtype))
    return probs * stays
"""
BUDGET = """import torch


def op_golden(cost, budget):
    return torch.where(torch.{word}(torch.cumsum(cost, dim=-1), budget), cost, torch.zeros_like(cost))
"""
SAID = {"probs": {"values": "[0, 1]", "row_sum": 1}}


@pytest.mark.parametrize(
    ("right", "wrong", "ranges", "default"),
    [
        (NUCLEUS.format(sign="<"), NUCLEUS.format(sign="<="), SAID, 0.9),
        (NUCLEUS.format(sign="<="), NUCLEUS.format(sign="<"), SAID, 0.9),
        (BUDGET.format(word="le"), BUDGET.format(word="lt"), {"cost": "[0, inf)"}, 5.1),
        (BUDGET.format(word="lt"), BUDGET.format(word="le"), {"cost": "[0, inf)"}, 5.1),
    ],
)
def test_a_sum_that_equals_its_threshold_tells_less_from_at_most(
    right: str, wrong: str, ranges: dict[str, Any], default: float, tmp_path: Path
) -> None:
    name, scalar = re.findall(r"op_golden\((\w+), (\w+)\)", right)[0]
    ports = [tensor(name), {"name": scalar, "shape": [], "dtype": "float32"}]
    ws = placed(tmp_path, ports, default_params={scalar: default}, input_ranges=ranges)
    ws.golden.write_text(right)
    space: dict[str, Any] = {}
    exec(compile(wrong, "wrong.py", "exec"), space)  # noqa: S102
    assert refused(ws, space["op_golden"], f"{scalar}_met", f"{scalar}_halves")


def refused(ws: OpWorkspace, wrong: Callable[..., torch.Tensor], *words: str) -> list[str]:
    """Return the cases with one of the words in their id that refuse a function; each takes the golden's honest orders."""
    sources = with_inputs(ws)
    found = []
    with ReferenceSession(ws) as session:
        first = FirstCandidate(session, ws, sources.spec.policy())
        for case in (case for case in suite_cases.cases(sources) if any(word in case["id"] for word in words)):
            inputs = dict(session.make_inputs(case))
            draw = Draw(first, case, inputs, first.golden(list(inputs.values())))
            assert draw.refusal() is None, "the numbers are exact in every order"
            if not draw.takes([wrong(*inputs.values())]):
                found.append(case["id"])
    return found


SCALED = """import torch


def op_golden(x):
    largest = x.to(torch.float32).abs().amax(dim=-1, keepdim=True)
    return torch.ldexp(x.to(torch.float32), 1 - {exponent}).to(x.dtype)
"""


def test_an_exponent_by_way_of_a_rounded_logarithm_is_refused(tmp_path: Path) -> None:
    """A block scale of floor(log(a) / log(2)) was right wherever the largest value was no power of two."""
    ws = placed(tmp_path, [tensor("x")])
    ws.golden.write_text(SCALED.format(exponent="torch.frexp(largest)[1]"))
    space: dict[str, Any] = {}
    wrong = SCALED.format(exponent="(torch.floor(torch.log(largest) * 1.4426950408889634).to(torch.int32) + 1)")
    exec(compile(wrong, "wrong.py", "exec"), space)  # noqa: S102
    assert refused(ws, space["op_golden"], "powers_x") == ["L3_powers_x_float32", "L3_powers_x_bfloat16"]


FLOORED = """import torch


def op_golden(x):
    wide = x.to(torch.float32)
    exponent = torch.frexp(wide.abs().amax(dim=-1, keepdim=True))[1].clamp(min={least})
    return torch.ldexp(wide, 1 - exponent).to(x.dtype)
"""


def test_a_floor_of_an_exponent_is_met(tmp_path: Path) -> None:
    """A block scale that went down to 2^-126 in the place of 2^-100 was right wherever no block lay below."""
    ws = placed(tmp_path, [tensor("x")])
    ws.golden.write_text(FLOORED.format(least=-99))
    for least, found in ((-126, ["L3_powers_low_x_float32"]), (-99, [])):
        space: dict[str, Any] = {}
        exec(compile(FLOORED.format(least=least), "other.py", "exec"), space)  # noqa: S102
        assert refused(ws, space["op_golden"], "powers_low") == found


def test_rows_in_halves_add_up_to_one_and_differ(tmp_path: Path) -> None:
    ws = placed(tmp_path, [tensor("probs")], input_ranges=SAID)
    rows = made(ws, draw_zone={"probs": "halves"})["probs"]
    assert torch.equal(rows.sum(-1), torch.ones(rows.shape[0])) and len({tuple(row.tolist()) for row in rows}) > 20
    top = rows.sort(dim=-1, descending=True).values[:, 0]
    assert bool((top == 0.5).all()), "two halves, or one and what is left"
