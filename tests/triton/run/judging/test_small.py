"""Terms below the tolerance: found in the reference, and missed in an answer (fresh/ignored_arguments.yaml has whole files)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

from pypto_op.triton.run.judging import small, trivial

DRAWS = torch.Generator().manual_seed(0)
NORMAL = torch.randn(40, 50, generator=DRAWS)
OTHER = torch.randn(40, 50, generator=DRAWS)


@pytest.mark.parametrize(
    ("forward", "without"),
    [(lambda: NORMAL + 1e-5 * OTHER, NORMAL), (lambda: 1e-5 * OTHER[0] + NORMAL, NORMAL),
     (lambda: NORMAL.clone().sub_(OTHER, alpha=1e-5), NORMAL), (lambda: 1e-5 * OTHER - NORMAL, -NORMAL),
     (lambda: NORMAL * 0.9999, NORMAL), (lambda: NORMAL.clone().div_(1.001), NORMAL),
     (lambda: NORMAL.view(20, 100).var(-1), NORMAL.view(20, 100).var(-1, correction=0)),
     (lambda: NORMAL.std(unbiased=False), NORMAL.std()),
     (lambda: F.layer_norm(NORMAL, (40, 50)), F.layer_norm(NORMAL, (40, 50), torch.full((40, 50), (1 - 1 / 2000) ** 0.5))),
     (lambda: F.group_norm(NORMAL[None], 2), F.group_norm(NORMAL[None], 2, torch.full((40,), (1 - 1 / 1000) ** 0.5)))],
    ids=["second", "first", "in_place", "subtracted", "factor", "quotient_in_place", "variance", "deviation", "layer", "groups"],
)  # fmt: skip
def test_a_small_term_is_found_and_left_out(forward: Callable[[], torch.Tensor], without: torch.Tensor) -> None:
    with small.Small(Path(__file__)) as watch:
        assert torch.equal(forward(), forward())
    assert {line for line, _ in watch.places} == {forward.__code__.co_firstlineno}
    with small.Small(Path(__file__), watch.places):
        assert torch.equal(forward(), without)


def test_each_of_two_terms_in_a_line_is_left_out_alone() -> None:
    def forward() -> torch.Tensor:
        return NORMAL * (1 - 1e-5) - 1e-3 * OTHER

    with small.Small(Path(__file__)) as watch:
        forward()
    found = []
    for places in small.apart(sorted(watch.places)):
        with small.Small(Path(__file__), places):
            found.append(forward())
    assert len(found) == 2
    assert torch.equal(found[0], NORMAL - 1e-3 * OTHER)
    assert torch.equal(found[1], NORMAL * (1 - 1e-5))


def test_of_many_places_the_last_ones_are_left_out_together() -> None:
    places = [(line, 0) for line in range(7)]
    assert small.apart(places) == [*([place] for place in places[:4]), places[4:]]
    assert small.apart(places[:2]) == [[places[0]], [places[1]]]


@pytest.mark.parametrize(
    "forward",
    [
        lambda: NORMAL + OTHER,
        lambda: NORMAL + 1e-5,
        lambda: NORMAL + torch.zeros(50),
        lambda: (NORMAL * 9).int() + 1,
        lambda: NORMAL * 1.0,
        lambda: NORMAL * 0.9,
        lambda: NORMAL * 1,
    ],
    ids=["large", "number", "zeros", "whole", "one", "factor", "whole_one"],
)
def test_other_sums_stay(forward: Callable[[], torch.Tensor]) -> None:
    with small.Small(Path(__file__)) as watch:
        found = forward()
    assert torch.equal(found, forward()) and not watch.places


NOISE = 1e-4 * torch.randn(40, 50, generator=DRAWS)
TRUTH = NORMAL.double() + 1e-5 * OTHER.double()


@pytest.mark.parametrize(
    ("answer", "right"),
    [(TRUTH, True), (TRUTH + NOISE, True), (TRUTH * (1 + 1e-6), True), (NORMAL, False), (NORMAL + NOISE / 10, False),
     (NORMAL + 2e-6 * OTHER, False)],
    ids=["exact", "noise", "scaled", "left_out", "left_out_in_noise", "too_small"],
)  # fmt: skip
def test_what_is_left_out_is_told_from_noise(answer: torch.Tensor, right: bool) -> None:
    want = TRUTH.float()
    found = small.judged([(7, 0)], [want], [answer.float()], trivial.sampled([NORMAL]), [TRUTH])
    assert found.ok is right
    assert right or "line 7 of the task" in found.message
