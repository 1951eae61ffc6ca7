"""The inputs of a pass: many are drawn on the device, where a CPU would take most of the pass for them."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy.random
import torch

from pypto_op.dispatch_mode import COPIES, DispatchMode
from pypto_op.triton.run.inputs.packing import address, elements_of, tensors_of

MANY = 1 << 22
"""Elements: a CPU draws 67 million of float16 in 2 s, and a verdict has a dozen passes."""
MOST = 1 << 29
"""Elements of all cases together that may lie on the device beside the calls; more would take its memory from them."""

_DRAWS = frozenset(("randint", "randint_like"))
_SEEDED = ("cuda", "npu")
"""Kinds of devices with generators of their own that a target may be; `hostdevice` and `hostshim` stand for them elsewhere."""


def seed_all(number: int) -> None:
    """Seed each generator that a task or an implementation may draw from: PyTorch's, Python's and NumPy's.

    `torch.manual_seed` would also keep a stack trace for each kind of device that it knows and this machine lacks.
    """
    torch.default_generator.manual_seed(number)
    for kind in _SEEDED:
        if device := getattr(torch, kind, None):
            device.manual_seed_all(number)
    random.seed(number)
    numpy.random.seed(number)


class _Repeating(DispatchMode):
    """Keeps, while it is active, the memory of whole numbers that are drawn one by one, so that some may be equal."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.places: set[int] = set()
        self._kept: list[Any] = []  # nothing else lies in its memory as long as it is here

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call the operator, and look whether it draws."""
        name = str(func.overloadpacket.__name__)
        given = _places([args, kwargs or {}])
        out = func(*args, **(kwargs or {}))
        made = _places(out)
        if name in _DRAWS or (name in COPIES and given <= self.places):
            self.places |= made
            self._kept.append(out)
        elif name.endswith("_") or not made <= given:
            self.places -= made
        return out


class Draws:
    """What a task draws, pass by pass, always in the same place: inputs that are the same for every seed are looked for.

    Args:
        device: where the task is judged; on the CPU all is drawn there.
        ask: calls the task's function, which draws from the generators that are seeded.
    """

    def __init__(self, device: torch.device, ask: Callable[[], Any]) -> None:
        self._device, self._ask = device, ask
        self._there: bool | None = None if device.type != "cpu" else False
        self._repeating = _Repeating()

    def of(self, seed: int) -> Any:
        """Return what the task draws with a seed.

        Raises:
            Failure: the function failed on the CPU, too.
        """
        if self._there is not False:
            try:
                seed_all(seed)
                with self._device:
                    found = self._asked()
                self._there = self._there or (isinstance(found, (list, tuple)) and MANY <= elements_of(found) <= MOST)
            except Exception:  # NumPy, a generator of the CPU's or too little memory
                self._there = False
            if self._there:
                return found
        seed_all(seed)
        return self._asked()

    def may_repeat(self, tensor: torch.Tensor) -> bool:
        """Whether a tensor of what was drawn last holds whole numbers that were drawn one by one."""
        return _places(tensor) & self._repeating.places != set()

    def _asked(self) -> Any:
        self._repeating = _Repeating()
        with self._repeating:
            return self._ask()


def _places(value: Any) -> set[int]:
    """Return where the tensors of a structure lie; empty and sparse ones lie nowhere."""
    return {*map(address, tensors_of(value))} - {0}
