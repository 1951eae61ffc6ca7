"""Moved inputs meet the reference on the CPU first.

The CPU answers an index beyond its table, or a probability above 1, with an exception. A device ends the whole process for it,
and no later pass would be made. Where the reference calls no operator that refuses values, there is nothing to meet: a product of
large matrices of 16 bits takes the CPU two seconds.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from pypto_op.dispatch_mode import DispatchMode
from pypto_op.documents.reading import read_yaml
from pypto_op.triton.run.inputs.packing import elements_of, map_tensors

MOST_ELEMENTS = 1 << 24
"""Of the inputs of a case; beyond that the CPU takes too long, and what a device makes of moved inputs is seen there alone."""

_KINDS: list[list[str]] = read_yaml(Path(__file__).with_name("takes_any_values.yaml"))
_TAKE_ANY = frozenset(name for kind in _KINDS for name in kind)
"""Operators that take any values, beside those that torch calls pointwise, and views."""


class Refuses(DispatchMode):
    """Notes whether an operator runs that may refuse values, as one that takes an index does.

    Attributes:
        found: one ran.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.found = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run one operator."""
        takes_any = func.is_view or torch.Tag.pointwise in func.tags or str(func.overloadpacket.__name__) in _TAKE_ANY
        self.found = self.found or not takes_any
        return func(*args, **(kwargs or {}))


class Rehearsal:
    """Calls of a task's reference on the CPU, where that can run it.

    Args:
        device: where the task is judged; on the CPU nothing is rehearsed.
        call: builds the reference on the CPU and calls it with inputs that lie there.
        watched: builds it on the device and calls it with the task's own inputs; what refuses values is looked for then.
    """

    def __init__(
        self, device: torch.device, call: Callable[[Any], object], watched: Callable[[Any], object] | None = None
    ) -> None:
        self._wanted, self._call, self._watched = device.type != "cpu", call, watched
        self._seen: tuple[Any, bool] | None = None  # the inputs that were watched last, and whether an operator may refuse values

    def of(self, moved: Any, own: Any, usual: Callable[[Any], object] | None = None) -> None:
        """Call the reference with moved inputs.

        Args:
            moved: the inputs.
            own: the task's own.
            usual: calls the reference with these as the task has it, where `call` builds another one.

        Raises:
            Exception: what it raises, unless the task's own inputs raise, too: its forward may name the device.
        """
        if not self._wanted or elements_of(moved) > MOST_ELEMENTS or self._takes_any(own):
            return
        try:
            self._call(map_tensors(moved, torch.Tensor.cpu))
        except Exception:
            if self._takes(own, usual or self._call):
                raise
            self._wanted = False

    def _takes_any(self, own: Any) -> bool:
        if self._watched is None:
            return False
        if self._seen is None or self._seen[0] is not own:
            with Refuses() as seen:
                self._watched(own)
            self._seen = own, seen.found
        return not self._seen[1]

    def _takes(self, own: Any, call: Callable[[Any], object]) -> bool:
        try:
            call(map_tensors(own, torch.Tensor.cpu))
        except Exception:
            return False
        return True
