"""When a fresh draw is left: by numbers alone, in a second trial, and in an order that follows from the seed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from pypto_op.documents.policy import get_policy
from pypto_op.judge.answers import last_bits
from pypto_op.judge.answers.redraw import FEW, MOST_DRAWS, apart, draws, may_be_redrawn
from pypto_op.judge.findings.reasons import Reason
from pypto_op.judge.findings.records import TrialVerdict
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


ALIKE = 16
"""On this seed ragged_mean draws the lengths of its case's own seed, 42."""


@pytest.mark.sim
@pytest.mark.usefixtures("numeric")
@pytest.mark.parametrize("varies", [True, False])
def test_lengths_that_both_seeds_draw_alike_are_drawn_anew_and_lengths_that_never_vary_refused(
    clean_workspace: Path, varies: bool
) -> None:
    ws = place("ragged_mean", clean_workspace)
    if not varies:
        edit(ws.test_inputs, "lengths[-1] = size", "lengths[:] = size - 3")
    answer = verify(ws.root, "--seed", str(ALIKE))
    if varies:
        check = answer.report["checks"][0]
        assert answer.report["status"] == "PARTIAL", answer.report["error"]
        assert check["alike_draws"] == [ALIKE] and check["modes"]["sim"]["seeds"] == [42, next(draws(ALIKE))]
        return
    assert answer.code == 2 and "input lengths is the same for every seed" in answer.report["error"]["message"]
    [row] = [row for row in verify(ws.root, "--self-test").report["checks"] if row["name"] == "inputs"]
    assert row["status"] == "FAIL" and "input lengths is the same for every seed" in row["detail"]


def test_a_draw_that_repeats_fewest_small_inputs_is_taken() -> None:
    held, big = torch.arange(3), torch.zeros(FEW + 1)
    seeds = [5, *draws(5)]
    made = {seed: [held, torch.tensor([number // 2]), big] for number, seed in enumerate(seeds)}
    first = [held, torch.tensor([0]), big]
    assert apart(first, 5, made.__getitem__) == seeds[:3], "the second draw is alike too, the third is not"
    assert apart(first, 5, made.__getitem__, fixed={0}) == seeds[:3]
    assert apart([held, torch.tensor([7]), big], 5, made.__getitem__) == [5], "no draw moves what never varies"
    assert apart([big], 5, {}.__getitem__) == [5], "what is large is not asked about"


ROUNDED = "pypto.cast(pypto.cast({0}, pypto.DT_BF16), pypto.DT_FP32)"
PRODUCT = "pypto.matmul(left, right, pypto.DT_FP32)"


@pytest.mark.sim
@pytest.mark.usefixtures("numeric")
@pytest.mark.parametrize("right", [True, False])
def test_a_right_kernel_is_judged_on_another_draw_and_a_wrong_one_refused(
    clean_workspace: Path, monkeypatch: pytest.MonkeyPatch, right: bool
) -> None:
    """On seed 6 sums of this case cancel; the calls at the end of a lane are made on the draw that took its place.

    Single elements are explained by the inputs' last bits (test_last_bits.py); here nothing is, as where many are off.
    """
    monkeypatch.setattr(last_bits, "few_off", lambda *_: None)
    ws = place("scaled_matmul", clean_workspace)
    suite = json.loads(ws.suite.read_text())
    suite["cases"][1]["seed"] = 1
    suite["cases"] = suite["cases"][1:]
    ws.suite.write_text(json.dumps(suite))
    if not right:
        edit(ws.impl, PRODUCT, PRODUCT.replace("left", ROUNDED.format("left")))
    report = verify(ws.root, "--case", "L5_scale_A_1e4", "--seed", "6").report
    [check] = [check for check in report["checks"] if check["id"] == "L5_scale_A_1e4"]
    if right:
        assert report["status"] == "PARTIAL", report["first_failure"]
        assert check["left_draws"] == [6] and check["modes"]["sim"]["seeds"] == [1, next(draws(6))]
        assert check["further_calls"]["calls"] > 0
    else:
        assert report["status"] == "FAIL" and check["modes"]["sim"]["reasons"] == ["mismatch"]
