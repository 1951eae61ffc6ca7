"""Tries whether the policy lets an answer pass that nobody computed: a constant, an input, the answer to other inputs.

A rule that divides by max(|golden|, t) calls everything right where the golden is far below t: a constant 1/n for a bfloat16
softmax over 131,072 columns, 1e-9 for tiny float32. Where a trivial answer passes, the whole output is held to the same
relative error without that floor. If the trivial answer passes that too, the task cannot tell, and the result says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from pypto_op.documents.policy import Policy, get_policy
from pypto_op.triton.run.inputs.packing import tensors_of, widened
from pypto_op.triton.run.judging.judgement import Judgement, compare
from pypto_op.triton.run.judging.natural import FACTOR

_SAMPLE = 4096
_SEVERAL = 16
"""A mean of fewer elements than this is no guess: it is nearly the answer."""

A_CONSTANT, AN_INPUT, ANOTHER = "a constant", "an input as it is", "the answer for other inputs"


def sampled(outputs: Any) -> list[torch.Tensor]:
    """Return at most 4096 elements of each output, evenly spread."""
    return [sample(tensor).clone() for tensor in tensors_of(outputs)]


def passing(outputs: Any, inputs: Any, others: list[torch.Tensor], policy: Policy) -> dict[int, list[tuple[str, torch.Tensor]]]:
    """Return by position the outputs for which a trivial answer passes, with that answer.

    Args:
        outputs: what the reference returned.
        inputs: what it was given.
        others: `sampled` outputs of the same case with other values; empty in the first pass.
        policy: the tolerance.
    """
    found: dict[int, list[tuple[str, torch.Tensor]]] = {}
    for position, want in enumerate(tensors_of(outputs)):
        for word, answer in _answers(want, inputs, others[position] if position < len(others) else None):
            few = sample(want)
            guess = answer if word == ANOTHER else sample(answer)
            passes = few.numel() and guess.shape == few.shape and compare([few], [guess], policy).ok
            if passes and (word == ANOTHER or compare([want], [answer], policy).ok):
                found.setdefault(position, []).append((word, answer))
    return found


def judged(
    trivial: dict[int, list[tuple[str, torch.Tensor]]], outputs: Any, answer: Any, truth: Any
) -> tuple[Judgement | None, list[str]]:
    """Hold the outputs for which a trivial answer passes to a rule without a floor.

    Args:
        trivial: what `passing` found.
        outputs, answer: of reference and implementation; the policy found them alike.
        truth: the reference's outputs in float64, or None.

    Returns:
        What is wrong with the answer, None when nothing is; and one line for each output that cannot be told from its
        trivial answer by this rule either.
    """
    wants, gots, rights = tensors_of(outputs), tensors_of(answer), tensors_of(truth) if truth is not None else []
    lines: list[str] = []
    for position, answers in trivial.items():
        want, got = wants[position], gots[position]
        right = rights[position] if position < len(rights) and rights[position].shape == want.shape else None
        passes = [word for word, guess in answers if _close(sample(want) if word == ANOTHER else want, guess, None)]
        if passes:
            lines.append(_line(position, passes))
        if not _close(want, got, right):
            words = (
                f"output {position} is far below the policy's floor, where {answers[0][0]} passes; without the floor it is wrong"
            )
            return Judgement("PrecisionError", words), lines
    return None, lines


def told(trivial: dict[int, list[tuple[str, torch.Tensor]]]) -> list[str]:
    """Return one line for each output for which a trivial answer passes."""
    return [_line(position, [word for word, _ in answers]) for position, answers in trivial.items()]


def _line(position: int, words: list[str]) -> str:
    return f"output {position}: {' and '.join(words)} would pass too, so this task cannot tell a right kernel from that"


def _answers(want: torch.Tensor, inputs: Any, other: torch.Tensor | None) -> Iterator[tuple[str, torch.Tensor]]:
    if want.numel() >= _SEVERAL and not want.is_complex():
        flat = widened(want).reshape(-1)
        finite = flat[torch.isfinite(flat)] if want.is_floating_point() else flat
        if finite.numel():
            value = finite.double().mean() if want.is_floating_point() else finite[0]
            yield A_CONSTANT, torch.empty_like(want).copy_(value.to(want.dtype).expand_as(want))
        for given in tensors_of(inputs):
            if given.shape == want.shape and given.dtype == want.dtype:
                yield AN_INPUT, given.to(want.device)
                break
    if other is not None and other.dtype == want.dtype:
        yield ANOTHER, other.to(want.device)


def _close(want: torch.Tensor, got: torch.Tensor, truth: torch.Tensor | None) -> bool:
    """Whether the root mean square of the error fits that of the output, or 16 times what the reference errs by."""
    if not want.is_floating_point():
        return True
    left, right = want.double().reshape(-1), got.double().reshape(-1)
    both = torch.isfinite(left) & torch.isfinite(right)
    if truth is not None:
        true = truth.to(want.device).double().reshape(-1)
        both &= torch.isfinite(true)
        if rms(right[both] - true[both]) <= FACTOR * rms(left[both] - true[both]):
            return True
    return rms(right[both] - left[both]) <= _limit(want) * rms(left[both])


def _limit(want: torch.Tensor) -> float:
    return float(get_policy("mere_mare@1").for_dtype(str(want.dtype))["mare"])


def rms(values: torch.Tensor) -> float:
    """Return the root mean square; 0 of nothing."""
    return float(values.square().mean().sqrt()) if values.numel() else 0.0


def sample(tensor: torch.Tensor) -> torch.Tensor:
    """Return at most 4096 elements, evenly spread."""
    flat = tensor.reshape(-1)
    return flat[:: max(1, flat.numel() // _SAMPLE)][:_SAMPLE]
