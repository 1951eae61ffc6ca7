"""Calls that hand the same to kernels whatever the floats are: a later call that hands over the very same needs no proof.

A wrapper that makes a table (places, a mask, a unit matrix) is called on other values to see that the table does not follow them.
One such proof in a process speaks for each call whose kernels get the same numbers and the same tensors, bit for bit: no value of
this call's inputs has reached them but through the inputs themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch

from pypto_op.backends.worker.earlier_calls import steering_of
from pypto_op.backends.worker.given import Call, content


class Shown:
    """What calls of one process have handed over, where calls on other values handed over the same."""

    def __init__(self) -> None:
        self._proven: dict[tuple[str, ...], tuple[str, ...]] = {}
        self._sort: tuple[str, ...] | None = None

    def begin(self, values: Sequence[Any] | None) -> bool:
        """Begin a call; return whether one on inputs of these shapes, and with these integers and numbers, was proven.

        Args:
            values: the inputs; None: nothing is proven by this call, or for it.
        """
        self._sort = None if values is None else _sort_of(values)
        return self._sort in self._proven

    def proves(self, call: Call) -> bool:
        """Return whether `call`, which has begun, handed over what a proven one did; the host read no float's value in it."""
        return self._sort in self._proven and not call.reads and self._proven[self._sort] == _handed(call)

    def note(self, call: Call, others: Iterable[Call]) -> None:
        """Remember the call that has begun, if calls on other values (`others`) handed over the same."""
        if self._sort is None:
            return
        mine, theirs = _handed(call), [_handed(other) for other in others]
        if theirs and all(one == mine for one in theirs):
            self._proven[self._sort] = mine


def _sort_of(values: Sequence[Any]) -> tuple[str, ...]:
    """Return words for what a wrapper may compute numbers from: shapes, dtypes, integers, and numbers."""
    shapes = [f"{value.dtype} {tuple(value.shape)}" for value in _flat(values) if isinstance(value, torch.Tensor)]
    steering = [content(one).hex() if isinstance(one, torch.Tensor) else repr(one) for one in steering_of(values)]
    return *shapes, *steering


def _flat(values: Iterable[Any]) -> list[Any]:
    return [one for value in values for one in (_flat(value) if isinstance(value, (list, tuple)) else [value])]


def _handed(call: Call) -> tuple[str, ...]:
    tensors = [f"{key} {g.value.dtype} {tuple(g.value.shape)} {g.digest} {g.kept}" for key, g in sorted(call.tensors.items())]
    return call.told(), *tensors
