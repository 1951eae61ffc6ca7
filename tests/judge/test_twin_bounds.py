"""What honest twins allow is measured once for all outputs that are compared with them, and changes no verdict."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from pypto_op.backends.base import RunResult
from pypto_op.comparison import twin_bounds
from pypto_op.documents.policy import get_policy
from pypto_op.judge.answers.expectation import Reference
from pypto_op.vocabulary import Outcome

NATURAL, EARLIER = get_policy("twin@2"), get_policy("twin@1")


def _run(*outputs: torch.Tensor, others: tuple[tuple[torch.Tensor, ...], ...] = ()) -> RunResult:
    return replace(RunResult(Outcome.OK), outputs=list(outputs), others=[list(way) for way in others])


def _reference(seed: int, others: bool = False) -> Reference:
    draws = torch.Generator().manual_seed(seed)
    truth = torch.rand(40, 64, generator=draws, dtype=torch.float64) + 0.5
    count = torch.arange(40)
    ways = ((truth * 1.001, count),) if others else ()
    twin = _run((truth * (1 + 1e-6 * torch.randn(40, 64, generator=draws))).float(), count)
    named = dict.fromkeys((*NATURAL.twins, *EARLIER.twins), twin)
    return Reference(_run(truth.float(), count), _run(truth, count, others=ways), named)


def _outputs(reference: Reference) -> list[list[torch.Tensor]]:
    native, count = reference.native.outputs
    off = native.clone()
    off[7, 3] *= 1.001
    return [[native, count], [off, count], [native * 1.00001, count], [native, count + 1], [native * 1.0009, count]]


@pytest.mark.parametrize("others", [False, True])
def test_verdicts_are_those_of_bounds_that_nobody_kept(others: bool) -> None:
    kept = _reference(0, others)
    told = []
    for _ in range(2):
        for outputs in _outputs(kept):
            for policy in (NATURAL, EARLIER):
                found = kept.compared(policy, outputs, ["out", "count"])[0]
                alone = _reference(0, others).compared(policy, outputs, ["out", "count"])[0]
                assert [leaf.as_dict() for leaf in found.per_tensor] == [leaf.as_dict() for leaf in alone.per_tensor]
                told.append(found.all_close)
    assert set(told) == {True, False}


def test_twins_are_measured_once_for_each_policy(monkeypatch: pytest.MonkeyPatch) -> None:
    reference, measured = _reference(0), []
    real = twin_bounds._measures
    monkeypatch.setattr(twin_bounds, "_measures", lambda *given: measured.append(given) or real(*given))
    for outputs in _outputs(reference):
        reference.compared(NATURAL, outputs, ["out", "count"])
    once = len(measured)
    assert once == len(NATURAL.twins)
    reference.compared(EARLIER, _outputs(reference)[0], ["out", "count"])
    assert len(measured) == once + len(EARLIER.twins)


def test_another_truth_has_bounds_of_its_own() -> None:
    reference, other = _reference(0), _reference(1)
    (right, count), (others, _) = reference.native.outputs, other.native.outputs
    assert reference.compared(NATURAL, [right, count], ["out", "count"])[0].all_close
    moved = replace(reference, native=other.native, exact=other.exact, twins=other.twins)
    assert moved.compared(NATURAL, [others, count], ["out", "count"])[0].all_close
    assert not moved.compared(NATURAL, [right, count], ["out", "count"])[0].all_close
