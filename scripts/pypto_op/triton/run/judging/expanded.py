"""Squared distances as a kernel has them that makes a product of matrices of them: |a - b|^2 = |a|^2 + |b|^2 - 2 ab.

Over the real numbers both are the same, and `torch.cdist` itself takes either. In float32 the second rounds by the size of |a|^2.
A margin that is taken off such a distance shows that where inputs lie close together far from zero. What a sum made is no such
side: a variance by mean(x^2) - mean(x)^2 stays wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from pypto_op.dispatch_mode import DispatchMode

_LEAST = 2.0**-10
"""Of |a|^2 + |b|^2: a smaller distance stays as it is, since an expanded one has too few right digits there."""
_SUMS = frozenset(("sum", "mean"))

_APART, _SQUARED = "_pypto_op_apart", "_pypto_op_squared"
"""Attributes of a tensor: what it is the difference of, and the same of its root."""


class Expanded(DispatchMode):
    """While active, sums of squares of float32 differences are expanded, and so are norms of differences.

    Attributes:
        used: whether there was one.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.used = False
        self._sums: dict[int, torch.Tensor] = {}  # by memory, which is kept: what a sum made

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run one operator."""
        kwargs = kwargs or {}
        name = str(func.overloadpacket.__name__)
        out = func(*args, **kwargs)
        if not isinstance(out, torch.Tensor) or out.dtype is not torch.float32:
            return out
        apart = getattr(args[0], _APART, None) if args else None
        if name == "sub" and not kwargs and all(map(self._is_side, args)):
            setattr(out, _APART, args)
        elif apart and ((name == "pow" and args[1] == 2) or (name == "mul" and args[0] is args[1])):
            setattr(out, _SQUARED, apart)
        elif apart and name == "linalg_vector_norm" and (len(args) < 2 or args[1] == 2):
            axes, kept = args[2] if len(args) > 2 else None, len(args) > 3 and args[3]
            out = self._expanded(out.square(), apart, lambda terms: terms.sum(axes, kept)).sqrt()
        elif name in _SUMS and (sides := getattr(args[0], _SQUARED, None)):
            out = self._expanded(out, sides, lambda terms: func(terms, *args[1:], **kwargs))
        if name in _SUMS:
            self._sums[out.untyped_storage().data_ptr()] = out
        return out

    def _is_side(self, side: Any) -> bool:
        return (
            isinstance(side, torch.Tensor) and side.dtype is torch.float32 and side.untyped_storage().data_ptr() not in self._sums
        )

    def _expanded(self, plain: torch.Tensor, sides: Any, total: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
        self.used = True
        one, two = torch.broadcast_tensors(*sides)  # type: ignore[no-untyped-call]
        size = total(one * one) + total(two * two)
        return torch.where(plain > _LEAST * size, size - 2 * total(one * two), plain)
