"""A gate on PyTorch's operators: while the candidate's forward runs, it may allocate, view and copy, and no more.

A `DispatchMode` sees every operator that is dispatched in its thread, wherever the call came from, also those that
another operator is made of. What it denies is not executed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import torch
from torch._library.custom_ops import OPDEFS

from pypto_op.dispatch_mode import DispatchMode
from pypto_op.documents.reading import read_yaml
from pypto_op.triton.run.watching.places import own_line

_OPERATORS: dict[str, list[str]] = read_yaml(Path(__file__).with_name("operators.yaml"))

ALLOWED: frozenset[str] = frozenset(name for names in _OPERATORS.values() for name in names)
"""aten operators by name, overloads included, that hold, view or move data."""

VIEWS: frozenset[str] = frozenset(_OPERATORS["views"])
"""Those of them that return a part of a tensor's memory."""

_COPIES = frozenset(
    {"clone", "copy_", "_to_copy", "pin_memory", "_pin_memory", "_copy_from", "_copy_from_and_resize", "npu_format_cast"}
)
_CONSTANTS = frozenset({"fill_", "zero_"})
_RECKONS = frozenset({"prod", "sum", "max", "min", "item", "_local_scalar_dense"})
_FEW = 64
"""So many whole numbers of the host may be reckoned with: `torch.tensor(x.shape).prod().item()`."""
_TO_HOST = frozenset({"_local_scalar_dense", "item", "is_nonzero", "equal"})


class Listener(Protocol):
    """Is told what PyTorch does to memory while forward runs."""

    def reading(self, source: torch.Tensor) -> None:
        """`source` is about to be copied."""

    def overwriting(self, target: torch.Tensor) -> None:
        """`target` is about to get a copy."""

    def copied(self, name: str, source: torch.Tensor, target: torch.Tensor) -> None:
        """Operator `name` copied `source` into `target`."""

    def holds_input(self, source: torch.Tensor, lost: torch.Tensor) -> bool:
        """Whether `source` lies in, or holds, one of the task's own inputs, or its elements `lost` were only moved from there."""

    def carries(self, source: torch.Tensor) -> bool:
        """Whether `source` lies in memory that holds values of an input or of a kernel."""

    def filled(self, target: torch.Tensor, number: Any) -> None:
        """`target` got a constant: a number, a tensor that holds one, or None for zero."""


class Denied(RuntimeError):
    """Raised inside the candidate where it lets PyTorch compute."""


class Gate(DispatchMode):
    """Denies and remembers.

    Args:
        own: the candidate's files, resolved.
    """

    def __init__(self, own: frozenset[str]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._own = own
        self.denied: list[str] = []  # what was asked for, in words and in order
        self.listener: Listener | None = None  # is told about copies and constants
        self._open = 0

    def is_open(self) -> bool:
        """Whether everything is let through."""
        return bool(self._open)

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
            body = _body_of(str(func._schema.name), args)
            if body is not None:
                with self:
                    return body(*args, **(kwargs or {}))
            if (namespace not in ("aten", "prim") or name not in ALLOWED) and not self._reckons(name, args):
                how = "reads a tensor on the host" if name in _TO_HOST else "computes with PyTorch"
                raise self._denial(f"{how} ({namespace}::{name})", own_line(self._own))
        if self._open or self.listener is None:
            return func(*args, **(kwargs or {}))
        return self._told(self.listener, func, args, dict(kwargs or {}))

    def _reckons(self, name: str, args: tuple[Any, ...]) -> bool:
        """Whether an operator reduces a few whole numbers, or hands one back, that are no data; Python could do the same."""
        source = args[0] if args else None
        if name not in _RECKONS or self.listener is None or not isinstance(source, torch.Tensor) or source.numel() > _FEW:
            return False
        whole = not source.is_floating_point() and not source.is_complex()
        with self.opened():
            carried = any(self.listener.carries(one) for one in args if isinstance(one, torch.Tensor))
        return (whole or name in _TO_HOST) and not carried

    def _denial(self, what: str, line: str | None) -> Denied:
        """Remember what forward did, and return the error that says so."""
        self.denied.append(f"{line or ''}{': ' if line else ''}forward {what}; a Triton kernel must do it")
        return Denied(self.denied[-1])

    def _told(self, listener: Listener, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Execute an operator; tell the listener what it copies from where, and where it leaves a constant."""
        name = str(func._schema.name).rpartition("::")[2]
        tensors = [arg for arg in args if isinstance(arg, torch.Tensor)]
        out = kwargs.get("out")
        given = out if isinstance(out, torch.Tensor) else tensors[0] if name.endswith("_") and tensors else None
        source = _copied(name, tensors)
        writes = given is not None and (source is not None or name in _CONSTANTS or given is out)
        with self.opened():
            if source is not None and turned(source):
                raise self._denial(f"computes with PyTorch (aten::{name} of a view that turns signs)", own_line(self._own))
            if source is not None:
                listener.reading(source)
            if source is not None and given is not None:
                listener.overwriting(given)
        result = func(*args, **kwargs)
        with self.opened():
            target = given if writes else result
            if source is not None and isinstance(target, torch.Tensor):
                lost = lost_of(source, target)
                if lost is not None and (listener.holds_input(source, lost) or _cuts_off(listener, source, lost, target)):
                    told = f"computes with PyTorch (aten::{name} to {target.dtype} of numbers that it does not hold)"
                    raise self._denial(told, own_line(self._own))
                listener.copied(name, source, target)
            elif given is not None and writes:
                listener.filled(given, next((value for value in (*args[1:], *kwargs.values()) if value is not given), None))
        return result


def _copied(name: str, tensors: Sequence[torch.Tensor]) -> torch.Tensor | None:
    """Return the tensor among an operator's whose elements it copies; None where it copies none."""
    if name == "fill_":
        return tensors[1] if len(tensors) > 1 else None
    if name not in _COPIES or not tensors:
        return None
    return tensors[-1] if name == "copy_" else tensors[0]


def turned(tensor: torch.Tensor) -> bool:
    """Whether a tensor is a view whose signs change when it is read: the imaginary part of a conjugate, say."""
    return tensor.is_neg() or tensor.is_conj()


def _cuts_off(listener: Listener, source: torch.Tensor, lost: torch.Tensor, target: torch.Tensor) -> bool:
    """Whether a copy cuts off what a kernel computed; of lanes that no kernel wrote nobody knows what they hold."""
    whole = target.dtype is torch.bool or not source.is_floating_point()
    return not whole and bool((lost.isfinite() & (lost != lost.trunc())).any()) and listener.carries(source)


def lost_of(source: torch.Tensor, target: torch.Tensor) -> torch.Tensor | None:
    """Return the elements that a copy to whole numbers or flags does not hold; None: the copy is no computation.

    It cuts off, wraps around, or asks what is not zero.
    """
    whole = not target.is_floating_point() and not target.is_complex()
    if source.dtype is target.dtype or not whole or source.is_complex() or source.shape != target.shape:
        return None
    lost = source[(target.to(source.dtype) != source) & (source == source)]
    return lost if lost.numel() else None


def _body_of(name: str, args: tuple[Any, ...]) -> Callable[..., Any] | None:
    """Return the Python function behind an operator that a file registered (`torch.library.custom_op`, `triton_op`).

    It is code of the candidate like any other, so it runs under the same gate.
    """
    if name.startswith(("aten::", "prim::")):
        return None
    defined = OPDEFS.get(name)
    if defined is None:
        return None
    device = next((arg.device.type for arg in args if isinstance(arg, torch.Tensor)), None)
    body: Callable[..., Any] = defined._backend_fns.get(device) or defined._init_fn
    return body


def mode_is_active(gate: Gate) -> bool:
    """Whether `gate` is on top of this thread's modes."""
    from torch.utils._python_dispatch import _get_current_dispatch_mode

    return _get_current_dispatch_mode() is gate
