"""A suite has a case in which numbers on the way leave the range of float16, wherever right kernels pass it."""

from __future__ import annotations

from functools import partial

import pytest

from pypto_op.generators.cases import suite as suite_cases
from pypto_op.generators.evaluation import inputs_text
from pypto_op.generators.operator.sources import gather
from pypto_op.generators.rehearsing import overflows
from pypto_op.generators.rehearsing.overflows import beyond
from pypto_op.generators.rehearsing.rehearsal import Offers, Rehearsed, rehearse
from pypto_op.workspace import OpWorkspace

GOLDEN = """import torch


def chain_golden(x, y):
    kept = torch.where(x.abs() < 200, x, float("nan"))  # large x is outside the domain
    return {result}
"""


def tried(bare: OpWorkspace, result: str) -> Rehearsed:
    """Rehearse an ordinary case and the huge one."""
    bare.golden.write_text(GOLDEN.format(result=result))
    sources = gather(bare)
    bare.test_inputs.write_text(inputs_text(sources))
    maker = suite_cases.filled(sources)
    cases = [case for case in maker.cases if case["id"].startswith(("L2_base", "L5_huge"))]
    return rehearse(bare, cases, sources.spec.policy(), offers=Offers(beyond=partial(beyond, maker)))


@pytest.mark.parametrize(
    ("result", "scales"),
    [
        ("kept + y * y * 1e-6", [{"y": 1e4}]),  # huge x and y are none of the domain, so they are 30 times as large only
        ("x + y * y * 1e-6", []),  # huge inputs show it
        ("kept + y", []),  # nothing shows it
    ],
)
def test_a_case_shows_what_leaves_float16_where_huge_inputs_do_not(bare: OpWorkspace, result: str, scales: list[object]) -> None:
    """A kernel that kept squares in float16 passed: no case had a y of 256 and more."""
    done = tried(bare, result)
    assert [case["draw_scale"] for case in done.cases if "overflow" in case["id"]] == scales
    assert not any("overflow" in name for name in done.dropped)


def test_such_a_case_that_right_kernels_fail_is_left_out_and_told(bare: OpWorkspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overflows, "fitted", lambda *_: "right kernels fail there")
    done = tried(bare, "kept + y * y * 1e-6")
    assert done.dropped == {"L5_overflow_float32": "right kernels fail there"}
    assert not any("overflow" in case["id"] for case in done.cases)


def test_where_spec_allows_16_bits_on_the_way_float16_is_left_out(bare: OpWorkspace) -> None:
    bare.spec.write_text(bare.spec.read_text() + "\nWeights may be rounded to the dtype of x before the product.\n")
    maker = suite_cases.filled(gather(bare))
    assert not list(beyond(maker, "float16")) and list(beyond(maker, "float32"))
    assert maker.dropped["L5_overflow_float16"].startswith("SPEC.md allows 16 bits on the way: may be rounded to the dtype of")


def test_where_the_golden_subtracts_large_inputs_stand_if_they_hold_other_forms(bare: OpWorkspace) -> None:
    """A triplet loss whose squares were float16 passed wherever its golden subtracted first."""
    done = tried(bare, "kept + (y - 0.5 * x) ** 2 * 1e-6")
    assert [case["draw_scale"] for case in done.cases if "overflow" in case["id"]] == [{"x": 1e-4, "y": 1e4}]


@pytest.mark.slow
def test_where_the_golden_subtracts_and_another_form_cancels_large_inputs_are_left_out(bare: OpWorkspace) -> None:
    """An honest gae_advantage carries the target: of large positive values its difference loses what the golden keeps."""
    done = tried(bare, "kept * 1e-3 + (y * y - y * (y - x)) * 1e-3")
    assert not any("overflow" in case["id"] for case in done.cases)
    assert done.dropped["L5_overflow_float32"] == "right kernels may cancel there, which subtract in another order"
