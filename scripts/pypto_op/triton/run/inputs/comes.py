"""Asks the reference, once for each case, which moved inputs (`reaching`) make its idle operators do something."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch

from pypto_op.triton.run.inputs import division, reaching
from pypto_op.triton.run.inputs.packing import as_given, map_tensors, widened


class Comes:
    """What the reference's idle operators come to with other inputs.

    Args:
        device: where the task is judged.
        numbers: that stand in the files.
        come_to: asks the reference what the inputs of a way come to, with a seed.
    """

    def __init__(self, device: torch.device, numbers: Sequence[float], come_to: Callable[[str, Any, int], set[str]]) -> None:
        self._device, self._numbers, self._come_to = device, numbers, come_to
        self._known: dict[int, dict[str, set[str]]] = {}
        self._met: dict[int, dict[str, bool]] = {}  # what was idle before the first `MEET`, which a second one meets again

    def by(
        self, move: str, index: int, inputs: Any, idle: dict[str, bool], seed: int, *, weights: bool = False
    ) -> tuple[str, Any]:
        """Return the way by which inputs come to most of what is idle, and these; "" and the own ones: none comes to anything.

        Args:
            move: `REACH` or `MEET`.
            index: of the case.
            inputs: the task's own.
            idle: what was idle in every pass.
            seed: of the models.
            weights: there may be other ones.
        """
        wide = map_tensors(inputs, widened)
        bounds = reaching.within_reason(wide, idle)
        known: dict[str, set[str]] = {}
        if move == reaching.MEET:
            bounds = self._met.setdefault(index, bounds)
            ways = reaching.meeting(inputs, bounds, self._numbers)
        else:
            known = self._known.setdefault(index, {})
            found = reaching.reaching(wide, bounds, lambda: self._divisors, weights=weights)
            ways = ((name, as_given(moved, inputs)) for name, moved in found)
        name, moved = reaching.chosen(ways, bounds, known, lambda name, moved: self._come_to(name, moved, seed))
        return name, moved if name else inputs

    @functools.cached_property
    def _divisors(self) -> list[float]:
        """By which numbers scales may divide: on a device those by which it does so exactly."""
        found = division.divisors(self._numbers)
        try:
            return found if self._device.type == "cpu" else division.exact(found, division.of_kernels(self._device))
        except Exception:  # no compiler, say: then nobody knows
            return []
