"""When a fresh draw is left: by numbers alone, in a second trial, and in an order that follows from the seed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pypto_op.judge.reasons import Reason
from pypto_op.judge.records import TrialVerdict
from pypto_op.judge.redraw import MOST_DRAWS, draws, may_be_redrawn
from pypto_op.policy import get_policy
from pypto_op.vocabulary import Status

from .judging import place, verify
from .test_between_calls import edit

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


ROUNDED = "pypto.cast(pypto.cast({0}, pypto.DT_BF16), pypto.DT_FP32)"
PRODUCT = "pypto.matmul(left, right, pypto.DT_FP32)"


@pytest.mark.sim
@pytest.mark.usefixtures("numeric")
@pytest.mark.parametrize("right", [True, False])
def test_a_right_kernel_is_judged_on_another_draw_and_a_wrong_one_refused(clean_workspace: Path, right: bool) -> None:
    """On seed 7 sums of this case cancel; the calls at the end of a lane are made on the draw that took its place."""
    ws = place("scaled_matmul", clean_workspace)
    suite = json.loads(ws.suite.read_text())
    suite["cases"][1]["seed"] = 8
    suite["cases"] = suite["cases"][1:]
    ws.suite.write_text(json.dumps(suite))
    if not right:
        edit(ws.impl, PRODUCT, PRODUCT.replace("left", ROUNDED.format("left")))
    report = verify(ws.root, "--case", "L5_scale_A_1e4", "--seed", "7").report
    [check] = [check for check in report["checks"] if check["id"] == "L5_scale_A_1e4"]
    if right:
        assert report["status"] == "PASS", report["first_failure"]
        assert check["left_draws"] == [7] and check["modes"]["sim"]["seeds"] == [8, next(draws(7))]
        assert check["further_calls"]["calls"] > 0
    else:
        assert report["status"] == "FAIL" and check["modes"]["sim"]["reasons"] == ["mismatch"]
