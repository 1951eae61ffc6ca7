"""Records which tensors' values the candidate's code reads on the host while forward runs.

A `TorchFunctionMode` sees every method and function of PyTorch's that is called with a tensor, whoever calls it: NumPy
through `__array__`, DLPack, or the candidate itself. What PyTorch's own functions and Triton call meanwhile is theirs.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
import torch.utils.dlpack
from torch.overrides import TorchFunctionMode

from pypto_op.triton.run.watching.dispatch import VIEWS
from pypto_op.triton.run.watching.places import own_line
from pypto_op.triton.run.watching.sized import Sized

READERS = frozenset(
    {"numpy", "__array__", "tolist", "item", "__dlpack__", "__float__", "__int__", "__bool__", "__index__", "__complex__",
     "__contains__", "__reduce_ex__", "__repr__", "__format__", "__str__", "to_dlpack", "_to_dlpack", "is_nonzero", "equal",
     "apply_", "map_", "map2_", "__deepcopy__", "storage", "_typed_storage"}
)  # fmt: skip
"""Methods and functions that hand a tensor's values to Python."""

_SHAPES_ALONE = frozenset({"view_as", "expand_as", "broadcast_tensors"})
_CUT_BY_VALUES = (VIEWS - _SHAPES_ALONE) | {"_pad_packed_sequence", "_pack_padded_sequence"}
"""Functions whose later tensors say where to cut. PyTorch reads those in C++, and Python reads the shapes that come out."""


class Reads(TorchFunctionMode):
    """Remembers who read a tensor's values outside a kernel.

    Args:
        counts: whether the values of a tensor are data; a table of constants may be read.
        asked: called with a tensor where code of these files asks for its address.
        paused: whether what happens now is this bundle's or Triton's own doing.
    """

    def __init__(
        self,
        counts: Callable[[torch.Tensor], bool],
        own: frozenset[str],
        asked: Callable[[torch.Tensor], object],
        paused: Callable[[], bool],
    ) -> None:
        super().__init__()
        self._counts, self._own, self._asked, self._paused = counts, own, asked, paused
        self.found: list[str] = []  # what was read, in words, each with the line that did it

    def install(self) -> None:
        """Wrap the functions that hand a tensor over without being asked through a mode."""
        for module in (torch._C, torch.utils.dlpack, torch):
            for name in ("_to_dlpack", "to_dlpack"):
                if hasattr(module, name):
                    setattr(module, name, self._noting(getattr(module, name)))

    def is_active(self) -> bool:
        """Whether it is on top of this thread's modes."""
        return torch.overrides._get_current_function_mode() is self  # type: ignore[no-untyped-call]

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Execute a function, and remember it if it reads."""
        name = str(getattr(func, "__name__", ""))
        if name in READERS:
            self._note(name, args[:1])
        elif name in _CUT_BY_VALUES:
            self._note(name, [*args[1:], *(kwargs or {}).values()])
        found = func(*args, **(kwargs or {}))
        places = name in ("data_ptr", "untyped_storage") and not self._paused() and isinstance(args[0], torch.Tensor)
        if places and own_line(self._own) is not None:
            if name == "untyped_storage":
                return self._sized(args[0], found)
            self._asked(args[0])
        return found

    def _sized(self, tensor: torch.Tensor, storage: torch.UntypedStorage) -> Sized:
        def read(name: str) -> torch.UntypedStorage:
            self._note(f"untyped_storage().{name}", [tensor])
            return storage

        return Sized(storage, read, lambda: self._asked(tensor))

    def _noting(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def noting(*args: Any, **kwargs: Any) -> Any:
            if self.is_active():
                self._note("to_dlpack", args[:1])
            return function(*args, **kwargs)

        return noting

    def _note(self, name: str, read: Sequence[Any]) -> None:
        """Remember that the tensors among `read` are read by the function of that name."""
        tensors = [value for value in read if isinstance(value, torch.Tensor)]
        if not tensors or self._paused():
            return
        line = own_line(self._own)
        if line is not None and any(map(self._counts, tensors)):
            self.found.append(f"Tensor.{name} ({line})")
