"""What a second look asks of the reference: the same call, computed otherwise. Nothing here imports torch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Otherwise:
    """Asks what the reference returns for a call when it computes otherwise (`otherwise`); None where that does not work.

    Attributes:
        truth: in float64.
        rounded: with the operands of its products in 16 bits.
        orders: a list: in other orders of additions.
        ties: a list: in float64 for each way that values near ties may fall.
    """

    truth: Callable[[], Any]
    rounded: Callable[[], Any]
    orders: Callable[[], Any]
    ties: Callable[[], Any]
