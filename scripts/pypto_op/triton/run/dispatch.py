"""A gate on PyTorch's operators: while the candidate's forward runs, it may allocate, view and copy, and no more.

A `DispatchMode` sees every operator that is dispatched in its thread, wherever the call came from, also those that
another operator is made of. What it denies is not executed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch

from pypto_op.dispatch_mode import DispatchMode
from pypto_op.documents.reading import read_yaml

ALLOWED: frozenset[str] = frozenset(
    name for names in read_yaml(Path(__file__).with_name("operators.yaml")).values() for name in names
)
"""aten operators by name, overloads included, that hold, view or move data."""

_COPIES = frozenset({"clone", "copy_", "_to_copy", "contiguous", "_unsafe_view"})
_TO_HOST = frozenset({"_local_scalar_dense", "item", "is_nonzero", "equal"})


class Denied(RuntimeError):
    """Raised inside the candidate where it lets PyTorch compute."""


class Gate(DispatchMode):
    """Denies and remembers.

    Attributes:
        denied: what was asked for, in order.
        on_copy: told about every copy that is made: (source, target).
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.denied: list[str] = []
        self.on_copy: Callable[[torch.Tensor, torch.Tensor], None] | None = None
        self._open = 0

    @contextlib.contextmanager
    def opened(self) -> Iterator[None]:
        """Let everything through: Triton's own work around a launch."""
        self._open += 1
        try:
            yield
        finally:
            self._open -= 1

    @contextlib.contextmanager
    def closed(self) -> Iterator[None]:
        """Deny again, for the candidate's code that Triton calls back."""
        before, self._open = self._open, 0
        try:
            yield
        finally:
            self._open = before

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Execute an operator that is allowed, deny any other."""
        if not self._open:
            namespace, _, name = str(func._schema.name).partition("::")
            if namespace not in ("aten", "prim") or name not in ALLOWED:
                self.denied.append(f"{namespace}::{name}")
                how = "reads a tensor on the host" if name in _TO_HOST else "computes with PyTorch"
                raise Denied(f"forward {how} ({namespace}::{name}); a Triton kernel must do it")
        result = func(*args, **(kwargs or {}))
        if not self._open and self.on_copy is not None:
            self._tell(func._schema.name, args, result)
        return result

    def _tell(self, name: str, args: tuple[Any, ...], result: Any) -> None:
        tensors = [arg for arg in args if isinstance(arg, torch.Tensor)]
        operator = name.removeprefix("aten::")
        if operator in _COPIES and self.on_copy is not None:
            with self.opened():
                if operator == "copy_" and len(tensors) == 2:
                    self.on_copy(tensors[1], tensors[0])
                elif tensors and isinstance(result, torch.Tensor):
                    self.on_copy(tensors[0], result)


def mode_is_active(gate: Gate) -> bool:
    """Whether `gate` is on top of this thread's modes."""
    from torch.utils._python_dispatch import _get_current_dispatch_mode

    return _get_current_dispatch_mode() is gate
