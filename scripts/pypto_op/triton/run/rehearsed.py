"""Moved inputs meet the reference on the CPU first.

The CPU answers an index beyond its table, or a probability above 1, with an exception. A device ends the whole process for it,
and no later pass would be made.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from pypto_op.triton.run.packing import elements_of, map_tensors

MOST_ELEMENTS = 1 << 24
"""Of the inputs of a case; beyond that the CPU takes too long, and what a device makes of moved inputs is seen there alone."""


class Rehearsal:
    """Calls of a task's reference on the CPU, where that can run it.

    Args:
        device: where the task is judged; on the CPU nothing is rehearsed.
        call: builds the reference on the CPU and calls it with inputs that lie there.
    """

    def __init__(self, device: torch.device, call: Callable[[Any], object]) -> None:
        self._wanted, self._call = device.type != "cpu", call

    def of(self, moved: Any, own: Any, usual: Callable[[Any], object] | None = None) -> None:
        """Call the reference with moved inputs.

        Args:
            moved: the inputs.
            own: the task's own.
            usual: calls the reference with these as the task has it, where `call` builds another one.

        Raises:
            Exception: what it raises, unless the task's own inputs raise, too: its forward may name the device.
        """
        if not self._wanted or elements_of(moved) > MOST_ELEMENTS:
            return
        try:
            self._call(map_tensors(moved, torch.Tensor.cpu))
        except Exception:
            if self._takes(own, usual or self._call):
                raise
            self._wanted = False

    def _takes(self, own: Any, call: Callable[[Any], object]) -> bool:
        try:
            call(map_tensors(own, torch.Tensor.cpu))
        except Exception:
            return False
        return True
