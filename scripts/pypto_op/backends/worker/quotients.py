"""Cuts 16-bit results to whole numbers as a kernel does, which keeps a quotient of 16-bit numbers in 32 bits until it is cut off.

`(x / scale).to(torch.int8)` of half-precision tensors rounds the quotient to 16 bits first: 126.98 becomes 127. Triton divides
such numbers in 32 bits, so its code is 126. No value near a tie says so, since the quotient in float64 is another whole number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from pypto_op.backends.worker import decisions
from pypto_op.backends.worker.decisions import Step

_ARITHMETIC = frozenset(
    {"div", "divide", "true_divide", "truediv", "mul", "multiply", "add", "sub", "subtract", "rdiv", "rsub",
     "rtruediv"}
)  # fmt: skip
_CUTS = frozenset({"round", "floor", "ceil", "trunc", "fix"})
_KEEPS = frozenset(
    {"clamp", "clamp_min", "clamp_max", "clip", "neg", "negative", "relu", "minimum", "maximum", "abs", "reshape", "view",
     "flatten", "unsqueeze", "squeeze", "transpose", "permute", "contiguous"}
)  # fmt: skip
"""What is done to a quotient on its way to being cut off, and rounds nothing."""


def are_cut(steps: Sequence[Step]) -> bool:
    """Whether a run cuts 16-bit floats to whole numbers."""
    return any(step.whole and any(decisions.is_narrow(one.dtype) for one in step.operands.values()) for step in steps)


class Quotients(TorchFunctionMode):
    """Lets a rounding to whole numbers see what one operation makes of 16-bit numbers before that is rounded to 16 bits."""

    def __init__(self) -> None:
        super().__init__()
        self._wide: dict[tuple[Any, ...], tuple[torch.Tensor, int, torch.Tensor]] = {}

    def __torch_function__(
        self, func: Callable[..., Any], types: Sequence[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Call `func`; where it cuts off what an operation gave, cut off what that operation gives in 32 bits."""
        kwargs = kwargs or {}
        name = _plain(func)
        held = self._of(args[0]) if args else None
        wide: Any = None
        if held is not None and name in _CUTS | decisions.CASTS:
            return self._cut(func, held, args, kwargs)
        if held is not None and name in _KEEPS:
            wide = func(held, *map(_single, args[1:]), **kwargs)
        elif name in _ARITHMETIC and not kwargs and any(map(_is_narrow, args)):
            wide = func(*map(_single, args))
        result = func(*args, **kwargs)
        if isinstance(wide, torch.Tensor) and _is_narrow(result) and wide.shape == result.shape:
            self._wide[_place(result)] = (result, result._version, wide)
        return result

    def _of(self, value: Any) -> torch.Tensor | None:
        if not _is_narrow(value):
            return None
        known, version, wide = self._wide.get(_place(value), (value, -1, value))
        return wide if known._version == version else None

    def _cut(self, func: Callable[..., Any], held: torch.Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        result = func(*args, **kwargs)
        if not isinstance(result, torch.Tensor) or (result.is_floating_point() and _plain(func) not in _CUTS):
            return result
        return func(held, *args[1:], **kwargs).to(result.dtype)


def _plain(func: Callable[..., Any]) -> str:
    """Return the plain name of a function that leaves its arguments as they are, "" of one that writes into them."""
    name = str(getattr(func, "__name__", ""))
    if name.startswith("__i") or (name.endswith("_") and not name.endswith("__")):
        return ""
    return name.strip("_")


def _is_narrow(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and decisions.is_narrow(value.dtype)


def _single(value: Any) -> Any:
    return value.float() if _is_narrow(value) else value


def _place(tensor: torch.Tensor) -> tuple[Any, ...]:
    return tensor.data_ptr(), tuple(tensor.shape), tensor.stride()
