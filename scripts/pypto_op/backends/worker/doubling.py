"""Evaluates a golden in float64, also where it says float32 itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

_NARROW = frozenset({torch.float32, torch.float16, torch.bfloat16})
_CASTS = {torch.Tensor.float, torch.Tensor.half, torch.Tensor.bfloat16}


def widened(value: Any) -> Any:
    """Return a float tensor as float64; everything else unchanged, lists and tuples item by item."""
    if isinstance(value, torch.Tensor):
        return value.double() if value.dtype in _NARROW else value
    if isinstance(value, (list, tuple)):
        return type(value)(widened(item) for item in value)
    return value


class Doubled(TorchFunctionMode):
    """Replaces each narrower floating dtype by float64: in `.float()`, `.to(torch.float32)`, `dtype=...`.

    A golden widens 16-bit inputs to float32 before it computes; taken literally, that would round float64 inputs
    down again. Casts to integers stay, since they are part of what the operator means.
    """

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Call `func` in float64."""
        if func in _CASTS:
            return args[0].double()
        args = tuple(_wide(argument) for argument in args)
        kwargs = {name: _wide(value) for name, value in (kwargs or {}).items()}
        return func(*args, **kwargs)


def _wide(value: Any) -> Any:
    return torch.float64 if isinstance(value, torch.dtype) and value in _NARROW else value
