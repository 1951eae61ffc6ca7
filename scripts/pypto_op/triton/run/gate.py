"""A gate on PyTorch's operators: while the candidate's forward runs, it may allocate, view and copy, and no more.

A `TorchDispatchMode` sees every operator that is dispatched in its thread, wherever the call came from, also those that
another operator is made of. What it denies is not executed.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

ALLOWED = frozenset(
    # memory and constants
    "empty empty_like empty_strided empty_permuted new_empty new_empty_strided zeros zeros_like new_zeros ones ones_like new_ones "
    "full full_like new_full fill fill_ zero zero_ scalar_tensor arange linspace eye set_ resize_ lift lift_fresh lift_fresh_copy "
    # views
    "view view_as reshape _reshape_alias _unsafe_view expand expand_as permute transpose t transpose_ t_ squeeze squeeze_ "
    "unsqueeze unsqueeze_ select slice narrow split split_with_sizes chunk unbind unfold as_strided as_strided_ diagonal alias "
    "detach detach_ movedim swapaxes flatten unflatten ravel view_as_real view_as_complex real imag _conj resolve_conj "
    "resolve_neg broadcast_to broadcast_tensors tensor_split adjoint mT mH numpy_T matrix_H _neg_view "
    # copies, as they are or in another dtype
    "clone copy_ copy _to_copy to contiguous type_as _copy_from _copy_from_and_resize npu_format_cast pin_memory _pin_memory "
    # questions
    "size stride sym_size sym_stride sym_numel sym_storage_offset is_contiguous is_same_size is_pinned record_stream "
    "_has_compatible_shallow_copy_type is_set_to".split()
)
"""aten operators by name, overloads included, that hold, view or move data."""

_COPIES = frozenset({"clone", "copy_", "_to_copy", "contiguous", "_unsafe_view"})
_TO_HOST = frozenset({"_local_scalar_dense", "item", "is_nonzero", "equal"})


class Denied(RuntimeError):
    """Raised inside the candidate where it lets PyTorch compute."""


class Gate(TorchDispatchMode):
    """Denies and remembers.

    Attributes:
        denied: what was asked for, in order.
        on_copy: told about every copy that is made: (source, target).
    """

    def __init__(self) -> None:
        super().__init__()
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


# torch wraps the method so that its first call imports torch._dynamo: seconds, and it replaces functions of torch.
Gate.__torch_dispatch__ = inspect.unwrap(vars(Gate)["__torch_dispatch__"])  # type: ignore[method-assign]


def mode_is_active(gate: Gate) -> bool:
    """Whether `gate` is on top of this thread's modes."""
    from torch.utils._python_dispatch import _get_current_dispatch_mode

    return _get_current_dispatch_mode() is gate
