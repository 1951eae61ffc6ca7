"""A reference that writes its infinities (a filter of tokens) is judged on moved inputs, too; one that overflows is not."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tests.triton import lab

from pypto_op.triton.run.inputs import domains, idle, infinite, sides, skewed
from pypto_op.triton.run.judging import coarse

INF, NAN = float("inf"), float("nan")
HIDDEN = torch.tensor([1.0, -INF, 2.0])
DRAWN = torch.randn(8, 20, generator=torch.Generator().manual_seed(0))
REFERENCES = {
    "finite": (lambda x: x.softmax(-1), True),
    "filled": (lambda x: x.masked_fill(x < 0, -INF), True),
    "chosen": (lambda x: torch.where(x < 0, INF, x).amin(-1), True),
    "into_nothing": (lambda x: torch.full((4, 20), -INF).index_reduce(0, torch.arange(8) % 3, x, "amax"), True),
    "added": (lambda x: x + torch.full((8, 20), -INF).triu(1), True),
    "logarithm_of_nothing": (lambda x: torch.log(x.relu()), False),
    "overflow": (lambda x: torch.exp(x * 100), False),
    "quotient": (lambda x: 1 / x.relu(), False),
    "underflow_beside_what_is_hidden": (lambda x: torch.log(x.masked_fill(x < 0, -INF).mul(200).softmax(-1)), False),
    "no_number": (lambda x: x.masked_fill(x < 0, -INF) * 0, False),
    "nothing_left": (lambda x: x.masked_fill(x < 9, -INF), False),
    "few_left": (lambda x: x.masked_fill(x < x.flatten().topk(3).values[-1], -INF), False),
    "complex": (lambda x: torch.complex(x, torch.exp(x * 100)), False),
}


@pytest.mark.parametrize("name", sorted(REFERENCES))
def test_infinities_that_are_written_are_meant_and_computed_ones_are_not(name: str) -> None:
    call, meant = REFERENCES[name]
    assert infinite.are_meant(call(DRAWN), lambda: call(DRAWN)) is meant


@pytest.mark.parametrize("move", [skewed.LOW, skewed.HIGH, skewed.FAR])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_an_input_with_holes_is_moved_and_they_stay(move: str, dtype: torch.dtype) -> None:
    holes = DRAWN.to(dtype).masked_fill(DRAWN > 0.8, -INF).t()
    before = holes.clone()
    assert skewed.skewed([holes], move) is None
    found = infinite.moved([holes], lambda inputs: skewed.skewed(inputs, move))
    assert found is not None and torch.equal(holes, before)
    (moved,) = found
    assert moved.stride() == holes.stride() and moved.dtype == dtype
    assert torch.equal(moved.isinf(), holes.isinf()) and not bool(moved.isnan().any())
    rest = moved[~moved.isinf()]
    assert bool(
        (rest.abs() > 100).any() if move == skewed.FAR else (rest <= 0).all() if move == skewed.LOW else (rest >= 0).all()
    )


def test_holes_stay_beside_the_largest_numbers() -> None:
    holes = DRAWN.masked_fill(DRAWN > 0.8, -INF)
    (moved,) = skewed.farther([holes])[1]
    assert torch.equal(moved.isinf(), holes.isinf()) and float(moved[~moved.isinf()].abs().max()) > 2**19
    assert skewed.scaled([holes])[1] > 2.0


@pytest.mark.parametrize("call", ["scatter", "index"])
@pytest.mark.parametrize("reduce", ["amax", "amin"])
def test_a_group_of_one_sign_is_looked_for(call: str, reduce: str, tmp_path: Path) -> None:
    sign = 1 if reduce == "amax" else -1
    at = torch.arange(8) % 3
    x = DRAWN[:, 0] + sign * 3

    def found(x: torch.Tensor) -> set[str]:
        into = torch.full((4,), -sign * INF)
        with idle.Idle(tmp_path / "task.py") as watch:
            into.scatter_reduce(0, at, x, reduce) if call == "scatter" else into.index_reduce(0, at, x, reduce)
        return {side for side in (sides.ONE_SIGN, domains.DEEP) if any(f"({side})" in name for name in watch.found)}

    assert found(x) == {sides.ONE_SIGN, domains.DEEP}
    assert found(-x) == {domains.DEEP}
    assert found(-x * 2.0**18) == set()


def test_what_is_hidden_far_away_must_be_hidden() -> None:
    want = torch.arange(100.0).masked_fill(torch.arange(100) % 2 == 1, -INF)
    assert coarse.gross(want, want.clone(), want.double()) == ""
    assert "50 of 100" in coarse.gross(want, torch.arange(100.0), want.double())
    assert "1 of them not finite" in coarse.gross(want, want.index_fill(0, torch.tensor([1]), NAN), want.double())
    overflowed = want.double().nan_to_num(neginf=-1e300)  # what only float32 cannot hold may be any number
    assert coarse.gross(want, torch.arange(100.0), overflowed) == ""


def test_an_answer_with_infinities_follows_a_scale() -> None:
    factor = 8.0
    assert skewed.follows_scale([HIDDEN], [HIDDEN * factor], factor)
    assert not skewed.follows_scale([HIDDEN], [(HIDDEN * factor).nan_to_num(neginf=0.0)], factor)


SHARE = """
@triton.jit
def share(x_ptr, out_ptr, n, PAD: tl.constexpr, FROM_MAX: tl.constexpr, BLOCK: tl.constexpr):
    row, cols = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + cols, mask=cols < n, other=PAD)
    e = tl.exp(x - tl.max(x, 0)) if FROM_MAX else tl.exp(x)
    tl.store(out_ptr + row * n + cols, tl.where(e < 0.1 * tl.max(e, 0), float("-inf"), x), mask=cols < n)
"""
REFERENCE = "p = x.softmax(-1)\nreturn x.masked_fill(p < 0.1 * p.amax(-1, keepdim=True), float('-inf'))"
ROWS = {
    "greatest_from_zero": ("0.0", True, "FAIL"),
    "without_the_greatest": ("float('-inf')", False, "FAIL"),
    "right": ("float('-inf')", True, "PASS"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(ROWS))
def test_a_filter_of_tokens(name: str, place: Path) -> None:
    pad, from_max, status = ROWS[name]
    forward = (
        f"out = torch.empty_like(x)\nshare[(len(x),)](x, out, x.shape[1], PAD={pad}, FROM_MAX={from_max}, BLOCK=64)\nreturn out"
    )
    task = lab.task(REFERENCE, "[torch.randn(6, 40)]")

    result = lab.verify(lab.folder(place, task, lab.impl(forward, kernels=SHARE)))

    assert result["status"] == status, result["failures"] or result["error"]
    if status == "FAIL":
        assert any(told in result["failures"][0]["error_msg"] for told in skewed.TOLD.values())
