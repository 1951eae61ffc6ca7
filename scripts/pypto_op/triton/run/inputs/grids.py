"""Which operators are exact, so that kernels agree in what they return to the last bit: what is compared with it shows."""

from __future__ import annotations

import math
from typing import Any

import torch

_GRID = 2.0**-5
"""Numbers of which a kernel's sums and products of multiples of a half are exact are multiples of this."""
_ON_GRID = frozenset((
    "add", "sub", "rsub", "mul", "neg", "abs", "relu", "cumsum", "sum", "amax", "amin", "maximum", "minimum", "mm", "bmm",
))  # fmt: skip
_MOVES = frozenset(("gather", "index_select", "index"))
"""They only move elements of their first tensor."""
_FEW = 1 / 16
"""Of the quotients of one division."""
_SCALES = frozenset(("mul", "div"))
_EXACT = _SCALES | {"add", "sub"}
_WIDE = 4
"""Floats of so many bytes hold sums of small multiples of a half."""


def keeps_halves(name: str, args: Any) -> bool:
    """Whether an operator, which is given one tensor and a number, is exact for elements halfway between two whole numbers.

    A product with another number than a power of two comes out on either side of the half, by how a kernel computes it.
    """
    numbers = [value for value in args if not isinstance(value, torch.Tensor)]
    if name not in _EXACT or len(args) != 2 or len(numbers) != 1 or not isinstance(numbers[0], (int, float)):
        return False
    number = float(numbers[0])
    return abs(math.frexp(number)[0]) == 0.5 if name in _SCALES else (2 * number).is_integer()


def keeps_grid(name: str, args: Any) -> bool:
    """Whether an operator is exact, in any order, for tensors of small multiples of a half and for the numbers beside them."""
    numbers = [value for value in args if isinstance(value, float)]
    tensors = [value for value in of_grid(name, args) if isinstance(value, torch.Tensor)]
    wide = all(value.is_floating_point() and value.element_size() >= _WIDE for value in tensors)
    return name in _ON_GRID | _MOVES and wide and all((number / _GRID).is_integer() for number in numbers)


def is_rough(name: str, args: Any, out: Any) -> bool:
    """Whether an operator divides and leaves rests: how a kernel divides decides on which side of a half a quotient falls.

    Of many groups a few have no exact scale (`smaller.encode` draws where the greatest elements lie); those do not count.
    """
    if name != "div" or len(args) != 2 or not isinstance(args[0], torch.Tensor) or not out.is_floating_point():
        return False
    by = args[1].double() if isinstance(args[1], torch.Tensor) else args[1]
    rests = (out.double() * by != args[0]) & out.isfinite()
    return bool(rests.sum() > _FEW * rests.numel())


def of_grid(name: str, args: Any) -> Any:
    """Return those of an operator's arguments whose elements come into what it returns."""
    return args[:1] if name in _MOVES else args


def is_never_at(given: torch.Tensor, number: Any) -> bool | None:
    """Whether no element is exactly a number; None where multiples of a half never are."""
    if type(number) not in (int, float) or not number or not (number / _GRID).is_integer():
        return None
    return not bool((given == number).any())
