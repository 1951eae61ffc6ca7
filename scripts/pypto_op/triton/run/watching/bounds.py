"""Sees a kernel read or write outside the memory of any tensor, in the interpreter, where each address is known before its use.

The storage behind a tensor is the limit: a view may be smaller, and a kernel that is given a view may use all of its memory.
Lanes that a mask turns off use no memory.
"""

from __future__ import annotations

import functools
import gc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from pypto_op.triton.run.inputs.unread import Unread
from pypto_op.triton.run.interpreter.products import Products
from pypto_op.triton.run.watching.barriers import Barriers, LaneRaceError
from pypto_op.triton.run.watching.lanes import Lanes
from pypto_op.triton.run.watching.races import RaceError, Races

_READS, _WRITES = "reads", "writes"
_ASKED: tuple[tuple[str, str, int, int | None], ...] = (
    ("create_masked_load", _READS, 0, 1),
    ("create_masked_store", _WRITES, 0, 2),
    ("create_atomic_rmw", _WRITES, 1, 3),
    ("create_atomic_cas", _WRITES, 0, None),
)
"""The interpreter's functions that all loads, stores and atomics come to, and where pointers and mask stand there."""
_MAKE_POINTERS = ("create_int_to_ptr", "create_bitcast")
"""Functions that make a pointer of a number: only so can a kernel rightly come to memory that its launch was not given."""


class OutOfBoundsError(IndexError):
    """A kernel reads or writes outside the memory of any tensor."""


@dataclass(frozen=True)
class _Span:
    """Where the storage of a parameter's tensor begins and ends, and where in it the tensor does."""

    name: str
    start: int
    end: int
    pointer: int

    @classmethod
    def of(cls, name: str, tensor: torch.Tensor) -> _Span:
        storage = tensor.untyped_storage()
        return cls(name, storage.data_ptr(), storage.data_ptr() + storage.nbytes(), tensor.data_ptr())


class Bounds:
    """Stands before the interpreter's loads, stores and atomics.

    Args:
        reached: called with the kernel and a tensor before the kernel first uses memory that its launch was not given.
    """

    def __init__(self, reached: Callable[[str, torch.Tensor], object]) -> None:
        # switches the guard that keeps code from looking through the interpreter's objects
        self.arm: Callable[[bool], object] = bool
        self.races = Races()  # sees which programs of a launch depend on each other
        self.barriers = Barriers()  # sees which lanes of a program do
        self.lanes = Lanes()  # fills lanes that nothing fills
        self.products = Products()  # rounds as devices do
        self.unread = Unread()  # notes which elements of the inputs are read
        self.found = ""  # what was read or written where, in words; "" for nothing
        self.stored: dict[int, Any] = {}  # where a storage that `notes` begins: which of its bytes the launch stored to
        self._reached = reached
        self._spans: list[_Span] | None = None
        self._others: list[torch.Tensor] = []
        self._has_table = False

    def install(self) -> None:
        """Wrap the interpreter's functions in this process."""
        from triton.runtime.interpreter import InterpreterBuilder

        builder: Any = InterpreterBuilder
        plain_load = builder.create_masked_load  # what a store changes is looked at by no load of the kernel
        self.lanes.install(builder)
        self.unread.install(builder)
        self.products.install(builder)
        self.barriers.install(builder, plain_load)
        self.races.install(builder, plain_load)  # it reads what lies at addresses that are right
        for name, does, pointer, mask in _ASKED:
            setattr(builder, name, self._checked(getattr(builder, name), does, pointer, mask))
        for name in _MAKE_POINTERS:
            setattr(builder, name, self._noting(getattr(builder, name)))

    def begin(self, kernel: str, given: Mapping[str, Sequence[torch.Tensor]], notes: Sequence[torch.Tensor] = ()) -> None:
        """Let the coming launch use the storages of its arguments, and note which bytes of those of `notes` it stores to."""
        self.stored = {
            tensor.untyped_storage().data_ptr(): np.zeros(tensor.untyped_storage().nbytes(), dtype=bool) for tensor in notes
        }
        self._spans = [_Span.of(name.rpartition(".")[2], tensor) for name, tensors in given.items() for tensor in tensors]
        self._kernel, self._others, self._has_table = kernel, [], False
        storages = {(span.start, span.end): span.name for span in self._spans}
        self.races.begin(kernel, storages)
        self.barriers.begin(kernel, storages)

    def end(self) -> list[torch.Tensor]:
        """Look at nothing any more; return the tensors that the launch was not given, and used."""
        others, self._spans, self._others = self._others, None, []
        self.races.end()
        self.barriers.end()
        return others

    def said(self) -> str:
        """Return the name of the error that was found, and what was found; "" for nothing."""
        words = {OutOfBoundsError.__name__: self.found, RaceError.__name__: self.races.found}
        words[LaneRaceError.__name__] = self.barriers.found
        return next((f"{name}: {found}" for name, found in words.items() if found), "")

    def _checked(self, original: Callable[..., Any], does: str, pointer: int, mask: int | None) -> Callable[..., Any]:
        stores = original.__name__ == "create_masked_store"

        @functools.wraps(original)
        def checked(builder: Any, *args: Any, **further: Any) -> Any:  # loads of tensor descriptors name their last arguments
            if self._spans is not None:
                self._check(does, args[pointer], None if mask is None else args[mask])
                if self.stored and stores and mask is not None:
                    self._note_stored(args[pointer], args[mask])
            return original(builder, *args, **further)

        return checked

    def _noting(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def noting(builder: Any, value: Any, kind: Any) -> Any:
            self._has_table |= kind.scalar.is_ptr() and not value.dtype.scalar.is_ptr()
            return original(builder, value, kind)

        return noting

    def _check(self, does: str, pointers: Any, mask: Any) -> None:
        addresses = pointers.data.reshape(-1)
        size = max(1, pointers.get_element_ty().primitive_bitwidth // 8)
        if not addresses.size or self._is_within(addresses, size):
            return
        if mask is not None:
            addresses = addresses[np.broadcast_to(mask.data, pointers.data.shape).reshape(-1).astype(bool)]
        outside = self._outside(addresses, size)
        if outside.size and (self._has_table or pointers.get_element_ty().is_ptr()):
            self._look_around(outside, size)
            outside = self._outside(outside, size)
        if outside.size:
            self.found = f"{self._kernel} {does} {outside.size} element(s) {self._where(int(outside.min()), size)}"
            raise OutOfBoundsError(self.found)

    def _note_stored(self, pointers: Any, mask: Any) -> None:
        active = np.broadcast_to(mask.data, pointers.data.shape).astype(bool)
        addresses = pointers.data[active].astype(np.int64)
        size = max(1, pointers.get_element_ty().primitive_bitwidth // 8)
        for start, stored in self.stored.items():
            inside = addresses[(addresses >= start) & (addresses < start + stored.size)] - start
            stored[(inside[:, None] + np.arange(size)).reshape(-1)] = True

    def _is_within(self, addresses: Any, size: int) -> bool:
        assert self._spans is not None
        low, high = int(addresses.min()), int(addresses.max()) + size
        return any(span.start <= low and high <= span.end for span in self._spans)

    def _outside(self, addresses: Any, size: int) -> Any:
        assert self._spans is not None
        for start, end in {(span.start, span.end) for span in self._spans}:
            addresses = addresses[(addresses < start) | (addresses + np.uint64(size) > end)]
        return addresses

    def _look_around(self, addresses: Any, size: int) -> None:
        """Let the launch use those of this process's tensors that it is about to: it may get addresses in a table."""
        assert self._spans is not None
        self.arm(False)
        try:
            found = [thing for thing in gc.get_objects() if type(thing) in (torch.Tensor, torch.nn.Parameter)]
        finally:
            self.arm(True)
        for tensor in found:
            if tensor.device.type != "cpu" or tensor.layout is not torch.strided:
                continue
            span = _Span.of("", tensor)
            if bool(((addresses >= span.start) & (addresses + np.uint64(size) <= span.end)).any()):
                if not any((span.start, span.end) == (known.start, known.end) for known in self._spans):
                    self._reached(self._kernel, tensor)
                    self._others.append(tensor)
                self._spans.append(span)
                self.races.add(span.start, span.end)

    def _where(self, address: int, size: int) -> str:
        """Return between which parameter's end or beginning and an address there is least, in words."""
        assert self._spans is not None
        near = [
            (address - span.end, f"behind the end of {span.name!r}", span)
            if span.start <= address
            else (span.start - address, f"before the beginning of {span.name!r}", span)
            for span in self._spans
            if span.name
        ]
        if not near:
            return "where no tensor lies"
        _, side, span = min(near, key=lambda one: one[0])
        at, ends = ((place - span.pointer) // size for place in (address, span.end))
        return f"{side}, the first at offset {at}; its memory ends before offset {ends}"
