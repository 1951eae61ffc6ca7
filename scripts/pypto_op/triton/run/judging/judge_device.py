"""Where the judge compares large outputs: on the target's GPU, since a comparison in float64 takes a processor seconds.

The judge's process has memory of its own on the device, which no candidate can reach.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from typing import Any, TypeVar

import torch

from pypto_op.backends.cores import borrowed
from pypto_op.triton.run.inputs.packing import elements_of, map_tensors
from pypto_op.triton.run.setup.targets import Place, Target

_LEAST = 1 << 20
"""Elements from which on a GPU is asked; fewer are compared before they would have been copied."""
_LOST = (RuntimeError, AssertionError)
"""What torch raises for a device that is full, that went away, or that it was not built for."""
_Result = TypeVar("_Result")


class JudgeDevice:
    """The device of a place, as the judge uses it; it begins to wake at once, beside the workers."""

    def __init__(self, place: Place) -> None:
        self._device = torch.device("cuda") if place.target is Target.CUDA else None
        if self._device is not None:
            threading.Thread(target=self._wake, daemon=True).start()

    def _wake(self) -> None:
        try:
            torch.zeros(1, device=self._device).double().sum().item()
        except _LOST:
            self._device = None

    def of_case(
        self, given: dict[str, Any], answer: dict[str, Any], action: Callable[[dict[str, Any], dict[str, Any]], _Result]
    ) -> _Result:
        """Return `action(given, answer)` with both sides' `outputs` and `mutated` inputs where `compare` has them."""
        sides = [{key: side.get(key) for key in ("outputs", "mutated")} for side in (given, answer)]
        return self.compare(sides, lambda both: action(given | both[0], both[1]))

    def compare(self, values: Any, action: Callable[[Any], _Result]) -> _Result:
        """Return `action(values)`, with the tensors of `values` on the GPU where they are large.

        Args:
            values: tensors in any structure.
            action: compares them; it may be called twice: again with `values` as they are, when the device fails or is full.
        """
        elements = elements_of(values)
        device = self._device
        if device is not None and elements >= _LEAST:
            try:
                return action(map_tensors(values, lambda tensor: tensor.to(device)))
            except _LOST:
                pass  # what is wrong with the values themselves shows below
            finally:
                _give_back()
        with borrowed(elements):
            return action(values)


def _give_back() -> None:
    """Leave the device's memory to the candidate."""
    with contextlib.suppress(*_LOST):
        torch.cuda.empty_cache()
