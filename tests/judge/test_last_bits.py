"""Where exact sums cancel, a factor may be multiplied in before or after: what that changes of few elements is right."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
import torch

from pypto_op.documents.policy import Policy, get_policy
from pypto_op.judge.answers import last_bits

from .judging import CASES, place, verify
from .test_between_calls import edit

CASE = {**CASES[0], "atol": 1e-6, "rtol": 1e-6}
EXACT = """
    x = ((x.abs() + 1.0) * 1e4).bfloat16().float()
    y = -((y.abs() + 1.0) * 1e4).bfloat16().float()
    x[0, ::16], y[0, ::16] = 9984.0, 10048.0
    return {"x": x, "y": y}"""
"""Differences of 16-bit numbers: exact in float32, and at two places small."""


@pytest.mark.sim
@pytest.mark.usefixtures("numeric")
@pytest.mark.parametrize(
    ("kernel", "status"),
    [
        ("(x_tile - y_tile) * 0.1", "PASS"),
        ("x_tile * 0.1 - y_tile * 0.1", "PASS"),
        ("x_tile * 0.1 - y_tile * 0.1 + 1e-3", "FAIL"),
        ("(x_tile - y_tile) * 0.1 + 1e-3", "FAIL"),
    ],
    ids=["after", "before", "before_and_off", "after_and_off"],
)
def test_a_factor_of_a_difference(kernel: str, status: str, clean_workspace: Path) -> None:
    ws = place("sum_diff", clean_workspace, cases=[CASE])
    edit(ws.golden, "2.0 * x + y, x - y", "2.0 * x - y, 0.1 * (x - y)")
    edit(ws.impl, "x_tile * 2.0 + y_tile", "x_tile * 2.0 - y_tile")
    edit(ws.impl, "x_tile - y_tile, [row, 0], diff", f"{kernel}, [row, 0], diff")
    edit(ws.test_inputs, '\n    return {"x": x, "y": y}', EXACT)
    report = verify(ws.root).report
    assert report["checks"][0]["status"] == status, report["first_failure"]


POLICY = get_policy({"name": "allclose", "atol": 1e-5, "rtol": 1e-5})


def mended(golden: torch.Tensor, actual: torch.Tensor, moved: Sequence[torch.Tensor], policy: Policy = POLICY) -> bool:
    off = last_bits.few_off(actual, golden, policy)
    return off is not None and torch.equal(last_bits.without_explained(actual, golden, off, moved), golden)


def test_only_what_last_bits_explain_is_right() -> None:
    golden = torch.linspace(1.0, 1e4, 1000)
    golden[5] = 1e-3
    moved = [golden.double(), golden.double()]
    moved[1][5] += 64e-3
    near, far = golden.clone(), golden.clone()
    near[5] += 2e-3
    far[5] += 5e-3
    assert mended(golden, near, moved) and mended(golden, near, moved, get_policy("twin@2"))
    assert not mended(golden, far, moved), "more than a few roundings"
    assert not mended(golden, near, [moved[0], moved[0]]), "last bits change nothing there"
    assert not mended(golden, near, []), "the golden does not run in float64"


def test_numbers_that_are_nearly_zero_do_not_hide_the_few_that_are_off() -> None:
    """A sigmoid has hundreds of them, each off by much beside what it is, and by nothing beside what a policy looks at."""
    golden = torch.ones(1000)
    golden[:100], golden[200] = 1e-30, 1e-2
    actual = golden.clone()
    actual[:100] *= torch.linspace(1.5, 2.0, 100)
    actual[200] += 1e-3
    actual[300:] += 2.0**-20  # as all that is saturated may be off, alike
    off = last_bits.few_off(actual, golden, get_policy("twin@2"))
    assert off is not None and bool(off[200])


def test_a_comparison_that_last_bits_turn_explains_nothing() -> None:
    """A threshold that an input meets exactly: a last bit decides, and `>` for `>=` is wrong all the same."""
    golden = torch.cat([torch.ones(100), torch.zeros(900)])
    actual = golden.clone()
    actual[0] = 0.0
    turned = golden.double()
    turned[0] = 0.0
    assert not mended(golden, actual, [golden.double(), turned])


def test_where_many_elements_are_off_none_is_explained() -> None:
    golden = torch.linspace(1.0, 1e4, 1000)
    actual = golden.clone()
    actual[:50] += 1.0
    assert not mended(golden, actual, [golden.double(), golden.double() + 64.0])
