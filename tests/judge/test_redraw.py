"""When a fresh draw is left: by numbers alone, in a second trial, and in an order that follows from the seed."""

from __future__ import annotations

import pytest

from pypto_op.judge.reasons import Reason
from pypto_op.judge.records import TrialVerdict
from pypto_op.judge.redraw import MOST_DRAWS, draws, may_be_redrawn
from pypto_op.policy import get_policy
from pypto_op.vocabulary import Status

PASSED = TrialVerdict(1, Status.PASS)


@pytest.mark.parametrize(
    ("reasons", "left"),
    [((Reason.MISMATCH,), True), ((Reason.MISMATCH, Reason.NON_FINITE), False), ((Reason.SHAPE,), False), ((), False)],
)
def test_only_a_second_trial_that_misses_by_its_numbers_is_left(reasons: tuple[Reason, ...], left: bool) -> None:
    trial = TrialVerdict(2, Status.FAIL if reasons else Status.PASS, reasons)
    assert may_be_redrawn([PASSED, trial], get_policy("allclose")) is left
    assert not may_be_redrawn([trial], get_policy("allclose")), "a case's own seed was tried by `harness new`"
    assert not may_be_redrawn([PASSED, trial], get_policy("twin")), "what is natural is measured on the draw itself"


def test_the_next_seeds_follow_from_the_first_and_end() -> None:
    assert list(draws(5)) == list(draws(5)) and len(set(draws(5))) == MOST_DRAWS == len(list(draws(2**31 - 2)))
