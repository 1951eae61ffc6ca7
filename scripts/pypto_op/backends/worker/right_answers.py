"""The right answers of a golden: in float64 with the roundings that it demands, values near ties on either side of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, TypeAlias

import torch

from pypto_op.backends.worker import near_ties, quotients
from pypto_op.backends.worker.decisions import Recorder, Step
from pypto_op.backends.worker.doubling import Doubled

Run: TypeAlias = Callable[[AbstractContextManager[Any], bool], Sequence[torch.Tensor]]
"""Runs the golden under a mode, on inputs of its own, in float64 or as they are; returns its leaves."""
Answer: TypeAlias = list[torch.Tensor]


def right_answers(run: Run) -> tuple[list[Step], list[Answer]]:
    """Return the golden's own steps, none where none counts, and its right answers; the first is the usual one.

    Args:
        run: raises what the golden raises.
    """
    recorder = Recorder()
    run(recorder, False)
    steps = recorder.steps if any(step.counts for step in recorder.steps) else []
    exact = Doubled(steps)
    answers = [answer(run, exact)]
    answers += [answer(run, Doubled(steps, way)) for way in range(1, exact.ways + 1)]
    if exact.ways and exact.codes:
        answers += _extents(answers)
    if quotients.are_cut(steps):
        answers.append(_cut_later(run(quotients.Quotients(), False), answers[0]))
    return steps, answers


def answer(run: Run, mode: Doubled) -> Answer:
    """Return what the golden comes to under a mode, before the last rounding of its outputs."""
    return [mode.unrounded(leaf) for leaf in run(mode, True)]


def _cut_later(found: Sequence[torch.Tensor], usual: Answer) -> Answer:
    """Return an answer with the whole numbers that were found, and the usual one's floats."""
    return [usually if usually.is_floating_point() else leaf for leaf, usually in zip(found, usual, strict=True)]


def _extents(answers: Sequence[Answer]) -> list[Answer]:
    """Return the least and the greatest answers beyond these (`near_ties.summed`), none where they lie within them."""
    of_each = [near_ties.summed(told) if told[0].dtype is torch.float64 else [] for told in zip(*answers, strict=True)]
    if not any(of_each):
        return []
    return [[bounds[end] if bounds else usual for bounds, usual in zip(of_each, answers[0], strict=True)] for end in (0, 1)]
