"""Sees a kernel write outside the memory of any tensor, in the interpreter, where each address is known before the write."""

from __future__ import annotations

import functools
import gc
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch


class OutOfBoundsError(IndexError):
    """A kernel writes outside the memory of any tensor."""


class Bounds:
    """Stands before the interpreter's stores and atomics.

    Attributes:
        arm: switches the guard that keeps code from looking through the interpreter's objects.
        found: what was written where, in words; "" for nothing.
    """

    def __init__(self) -> None:
        self.arm: Callable[[bool], object] = bool
        self.found = ""
        self._spans: list[tuple[str, int, int]] | None = None

    def install(self) -> None:
        """Wrap the interpreter's functions in this process."""
        from triton.runtime.interpreter import InterpreterBuilder

        builder: Any = InterpreterBuilder
        for name, pointer, mask in (("create_masked_store", 0, 2), ("create_atomic_rmw", 1, 3), ("create_atomic_cas", 0, None)):
            setattr(builder, name, self._checked(getattr(builder, name), pointer, mask))

    def begin(self, kernel: str, given: Mapping[str, Sequence[torch.Tensor]]) -> None:
        """Let the coming launch write into the storages of its arguments."""
        self._spans = [(name.rpartition(".")[2], *_span(tensor)) for name, tensors in given.items() for tensor in tensors]
        self._kernel = kernel

    def end(self) -> None:
        """Look at no write any more."""
        self._spans = None

    def _checked(self, original: Callable[..., Any], pointer: int, mask: int | None) -> Callable[..., Any]:
        @functools.wraps(original)
        def checked(builder: Any, *args: Any) -> Any:
            if self._spans is not None:
                self._check(args[pointer], None if mask is None else args[mask])
            return original(builder, *args)

        return checked

    def _check(self, pointers: Any, mask: Any) -> None:
        addresses = pointers.data.reshape(-1)
        if mask is not None:
            addresses = addresses[np.broadcast_to(mask.data, pointers.data.shape).reshape(-1).astype(bool)]
        size = max(1, pointers.get_element_ty().primitive_bitwidth // 8)
        assert self._spans is not None
        if not addresses.size or _within(self._spans, int(addresses.min()), int(addresses.max()) + size):
            return
        spans = [(start, end) for _, start, end in self._spans]
        outside = _outside(addresses, size, spans)
        if outside.size:
            outside = _outside(outside, size, self._everywhere())
        if outside.size:
            self.found = f"{self._kernel} writes {outside.size} element(s) {self._where(int(outside.min()))}"
            raise OutOfBoundsError(self.found)

    def _everywhere(self) -> list[tuple[int, int]]:
        """Return where all tensors of this process lie: a kernel may get addresses in a table."""
        self.arm(False)
        try:
            return [_span(thing) for thing in gc.get_objects() if type(thing) is torch.Tensor]
        finally:
            self.arm(True)

    def _where(self, address: int) -> str:
        assert self._spans is not None
        behind = [(address - end, name) for name, _, end in self._spans if end <= address]
        before = [(start - address, name) for name, start, _ in self._spans if start > address]
        near = min(behind, default=None), min(before, default=None)
        if near[0] is not None and (near[1] is None or near[0][0] <= near[1][0]):
            return f"behind the end of {near[0][1]!r}"
        return f"before the beginning of {near[1][1]!r}" if near[1] is not None else "where no tensor lies"


def _span(tensor: torch.Tensor) -> tuple[int, int]:
    """Return where a tensor's storage begins and ends."""
    storage = tensor.untyped_storage()
    return storage.data_ptr(), storage.data_ptr() + storage.nbytes()


def _within(spans: Sequence[tuple[str, int, int]], low: int, high: int) -> bool:
    return any(start <= low and high <= end for _, start, end in spans)


def _outside(addresses: Any, size: int, spans: Sequence[tuple[int, int]]) -> Any:
    for start, end in set(spans):
        addresses = addresses[(addresses < start) | (addresses + np.uint64(size) > end)]
    return addresses
