"""Sees where `eval/test_inputs.py` makes a tensor without saying on which device (verifier seed, B.1).

Rule PX13 reads the file; this sees what really runs, whatever name it runs under.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._device import _device_constructors

_FOLLOWS_ITS_ARGUMENT = frozenset({torch.as_tensor, torch.asarray})


class MadeOnDevice(TorchFunctionMode):
    """While active, remembers the first factory that code of a folder calls without `device=`.

    Args:
        folder: of the file whose calls count, and of what lies beside it.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = str(folder)
        self._factories = _device_constructors()
        self.fault = ""

    def __torch_function__(
        self, func: Callable[..., Any], types: Sequence[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run one function of torch, and look at it when it is a factory."""
        kwargs = dict(kwargs or {})
        if not self.fault and func in self._factories and kwargs.get("device") is None and not _follows(func, args):
            place = self._place()
            if place:
                name = getattr(func, "__name__", "a factory")
                self.fault = f"{place}: torch.{name} makes a tensor on the host: give device=DEVICE where it is made"
        return func(*args, **kwargs)

    def _place(self) -> str:
        """Return file and line of the innermost frame outside torch, "" where it is not of the folder."""
        frame: FrameType | None = sys._getframe(2)
        while frame is not None and f"{_TORCH}/" in frame.f_code.co_filename:
            frame = frame.f_back
        if frame is None or not frame.f_code.co_filename.startswith(f"{self._folder}/"):
            return ""
        return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"


_TORCH = str(Path(torch.__file__).parent)


def _follows(func: Callable[..., Any], args: tuple[Any, ...]) -> bool:
    return func in _FOLLOWS_ITS_ARGUMENT and bool(args) and isinstance(args[0], torch.Tensor)
