"""Finds rows whose errors all lean one way, as a sum that is kept in too few bits makes them.

Rounding each output once errs up as often as down, so over a long row the signed relative errors average out. A row whose
sum, mean or maximum was off is off as a whole: far less than one rounding each, and yet plain in the average.
(Cambricon's MLU-OPS has a bias test, diff4, over whole tensors.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from pypto_op.comparison.numbers import as_wide, special_kind
from pypto_op.comparison.rules import Condition
from pypto_op.comparison.walk import CHUNK

SHORTEST_ROW = 32
"""Rows with fewer finite elements say nothing: too few errors to average out."""

LONGEST_ROW = 1024
"""Factors of longer normalised rows lie so near 1 that rounding twice, which is honest, bends whole rows. Measured over 20
seeds in float16: up to 2.7 times the golden's bias for rows of 64 to 1024, 8 times for 4096."""

FEWEST_ROWS = 8
"""With fewer rows a quarter of them may be the odd ones."""

_NO_DIVISION_BY_ZERO = 1e-300


def bias_condition(
    numbers: Mapping[str, Any],
    factor: Mapping[str, float],
    actual: torch.Tensor,
    truth: torch.Tensor,
    natural: Callable[[], float],
    clamp: float,
) -> Condition | None:
    """Return the condition on the rows' bias, None where the policy has none or rows are too short.

    Args:
        numbers: the policy's numbers for the dtype; `floor.bias` switches the condition on.
        factor: the policy's factors; `bias` is used.
        truth: the float64 truth.
        natural: gives the bias of the worst honest twin.
        clamp: least denominator of a relative error, in the tensor's own units.
    """
    if "bias" not in numbers["floor"] or not truth.dim() or not SHORTEST_ROW <= truth.shape[-1] <= LONGEST_ROW:
        return None
    limit = max(float(factor["bias"]) * natural(), float(numbers["floor"]["bias"]))
    value = row_bias(actual, truth, clamp)
    return Condition("bias", value, limit, value <= limit)


def row_bias(tensor: torch.Tensor, truth: torch.Tensor, clamp: float) -> float:
    """Return the |mean signed relative error| that a quarter of the rows exceed; a row lies along the last axis.

    The mean is taken twice: with the error's own sign (a row that is shifted), and with its sign away from 0 (a row that
    is stretched); the larger one counts. Elements that are not finite are left out, and rows with few others too.
    Not the worst row: where a row's factor happens to be nearly 1, honest rounding leans one way as well.
    """
    width = truth.shape[-1]
    step = max(1, CHUNK // width)
    rows, exact = tensor.reshape(-1, width), truth.reshape(-1, width)
    told = []
    for start in range(0, rows.shape[0], step):
        first, second = as_wide(rows[start : start + step].cpu()), as_wide(exact[start : start + step].cpu())
        finite = (special_kind(first) == 0) & (special_kind(second) == 0)
        relative = (first - second) / second.abs().clamp(min=max(clamp, _NO_DIVISION_BY_ZERO))
        count = finite.sum(dim=-1)
        means = [
            torch.where(finite, leaning, 0.0).sum(dim=-1).abs() / count.clamp(min=1)
            for leaning in (relative, relative * second.sign())
        ]
        told.append(torch.maximum(*means)[count >= SHORTEST_ROW])
    biases = torch.cat(told).sort().values
    return float(biases[(3 * biases.numel()) // 4]) if biases.numel() >= FEWEST_ROWS else 0.0
