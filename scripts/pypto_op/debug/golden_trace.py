"""Every tensor that a golden computes, with the line that did: what a kernel's operations are compared with."""

from __future__ import annotations

import hashlib
import math
import sys
import weakref
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from pypto_op.debug.pointwise import STEPS, in_steps
from pypto_op.dispatch_mode import DispatchMode
from pypto_op.tensor_bytes import bytes_in
from pypto_op.twins.decompose import HIDING_A_SUM, decompositions

MOST_BYTES = 1 << 30
"""What is kept of a golden's intermediates; beyond it the trace is told to be incomplete."""

_MOST_NUMBERS = 200
_SAME_AS = {"rsub": "sub"}
"""What `1 - x` is to torch, and what a kernel's operation is called."""

INPUT = "input"
OUTPUT = "output"


@dataclass(frozen=True)
class Traced:
    """What a golden computed."""

    tensors: list[torch.Tensor]  # of different content
    rows: list[dict[str, Any]]  # in the order of the run: `op`, `line`, `tensor` (a number), `inputs` (numbers)
    complete: bool  # there was room for all tensors
    numbers: list[float]  # what the operators take beside tensors

    @property
    def outputs(self) -> list[int]:
        """The numbers of what the golden returned."""
        return [int(row["tensor"]) for row in self.rows if row["op"] == OUTPUT]


class Trace(DispatchMode):
    """Records the results of torch's operators while a golden runs.

    Args:
        file: the golden's; lines are those of its innermost frame.
    """

    def __init__(self, file: Path) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._file = str(file)
        self._known: dict[str, int] = {}
        self._noted: dict[int, tuple[weakref.ref[torch.Tensor], int, int | None]] = {}
        self._tensors: list[torch.Tensor] = []
        self._rows: list[dict[str, Any]] = []
        self._bytes = 0
        self.complete = True
        self.numbers: set[float] = set()
        """What the operators take beside tensors."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = str(func.overloadpacket.__name__)
        finer = decompositions().get(func) if name in HIDING_A_SUM else None
        if finer is not None:
            with self:
                return finer(*args, **(kwargs or {}))
        if name in STEPS and any(tensor.is_floating_point() for tensor in _tensors_of(args)):
            with self:
                return in_steps(name, args, kwargs or {})
        out = func(*args, **(kwargs or {}))
        tensors: list[torch.Tensor] = []
        _take_apart(args, tensors, self.numbers)
        if kwargs:
            _take_apart(kwargs.values(), tensors, self.numbers)
        given = [self._note(value) for value in tensors]
        for tensor in _tensors_of([out]):
            self._row(_SAME_AS.get(name, name), self._line(), self._note(tensor), given)
        return out

    def told(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> Traced:
        """Return what was recorded; inputs and outputs become rows of their own."""
        for kind, values in ((INPUT, inputs), (OUTPUT, outputs)):
            for tensor in _tensors_of(list(values)):
                self._row(kind, 0, self._note(tensor), [])
        numbers = sorted(one for one in self.numbers if math.isfinite(one))[:_MOST_NUMBERS]
        return Traced(self._tensors, self._rows, self.complete, numbers)

    def _row(self, name: str, line: int, tensor: int | None, given: list[int | None]) -> None:
        if tensor is not None:
            self._rows.append({"op": name, "line": line, "tensor": tensor, "inputs": [one for one in given if one is not None]})

    def _note(self, tensor: torch.Tensor) -> int | None:
        """Return the number of a tensor's content, None where there is no room for it."""
        version = -1 if tensor.is_inference() else tensor._version
        noted = self._noted.get(id(tensor))
        if noted is not None and noted[0]() is tensor and noted[1] == version >= 0:
            return noted[2]  # an operand is nearly always the result of an earlier operator: it is looked at once
        number = self._number_of(tensor)
        self._noted[id(tensor)] = (weakref.ref(tensor), version, number)
        return number

    def _number_of(self, tensor: torch.Tensor) -> int | None:
        if tensor.numel() == 0 or tensor.is_complex():
            return None
        plain = tensor.detach().cpu().contiguous()
        key = hashlib.sha1(bytes(f"{plain.dtype}{tuple(plain.shape)}", "ascii"))
        key.update(bytes_in(plain).numpy().data)
        known = self._known.get(key.hexdigest())
        if known is not None:
            return known
        if self._bytes + plain.nbytes > MOST_BYTES:
            self.complete = False
            return None
        self._bytes += plain.nbytes
        self._tensors.append(plain.clone())
        return self._known.setdefault(key.hexdigest(), len(self._tensors) - 1)

    def _line(self) -> int:
        frame: Any = sys._getframe(2)
        while frame is not None:
            if frame.f_code.co_filename == self._file:
                return int(frame.f_lineno)
            frame = frame.f_back
        return 0


def _tensors_of(values: Any) -> list[torch.Tensor]:
    if isinstance(values, torch.Tensor):
        return [values]
    return [tensor for value in values for tensor in _tensors_of(value)] if isinstance(values, (list, tuple)) else []


def _take_apart(values: Iterable[Any], tensors: list[torch.Tensor], numbers: set[float]) -> None:
    """Add the tensors and the numbers among `values`, and in their lists, to `tensors` and `numbers`."""
    for value in values:
        if isinstance(value, torch.Tensor):
            tensors.append(value)
        elif type(value) in (int, float):
            numbers.add(float(value))
        elif isinstance(value, (list, tuple)):
            _take_apart(value, tensors, numbers)
