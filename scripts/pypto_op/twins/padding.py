"""A golden in which a NaN beside padding stays, or goes: 0 times NaN is NaN, and a right kernel may leave that product out.

Where a convolution multiplies a NaN, or an infinity, by the zeros that it put around a picture, its result depends on how it is
written: over a padded picture the NaN stays, over the pixels that exist it was never read. Both are right, so both are answers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from pypto_op.dispatch_mode import DispatchMode
from pypto_op.twins import convolutions

aten = torch.ops.aten

_REAL = "_pypto_op_real"
"""Attribute of a tensor that holds padding: 1 where data stand, 0 where padding does."""

_BLANK = "_pypto_op_blank"
"""Attribute of zeros into which data may be written yet; until then they are no padding but a state, a sum."""

_ZEROS = frozenset({aten.zeros.default, aten.new_zeros.default, aten.zeros_like.default})

_CARRIES = frozenset(
    {
        aten.view.default, aten._unsafe_view.default, aten.alias.default, aten.detach.default, aten.clone.default,
        aten.permute.default, aten.transpose.int, aten.t.default, aten.expand.default, aten.slice.Tensor,
        aten.select.int, aten.unsqueeze.default, aten.squeeze.default, aten.squeeze.dim, aten.squeeze.dims,
        aten.as_strided.default, aten.unfold.default, aten.flip.default, aten.roll.default, aten.im2col.default,
        aten.index.Tensor, aten.index_select.default, aten.constant_pad_nd.default,
    }
)  # fmt: skip
"""Operators that move elements; of what they put between them, all is padding."""

_SEVERAL = frozenset({aten.split.Tensor, aten.split_with_sizes.default, aten.unbind.int, aten.chunk.default})
_CASTS = frozenset({aten._to_copy.default})
_JOINS = frozenset({aten.cat.default, aten.stack.default})
_PADS = frozenset({aten.constant_pad_nd.default, aten.im2col.default})


class Padding(DispatchMode):
    """While active, no product of padding with a NaN or an infinity counts, or each does, also in torch's own convolutions.

    Padding is what `pad`, `unfold` and convolutions put around a tensor, and zeros beside which data were written or joined.

    Args:
        counts: such products count; what the golden writes out itself counts anyway.
    """

    def __init__(self, *, counts: bool = False) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._counts = counts
        self.met = False  # there was padding that this mode may have treated otherwise than the golden as it stands

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Run one operator."""
        kwargs = kwargs or {}
        finer = _FINER.get(func)
        if finer is not None:
            self.met = self.met or (self._counts and func in _CONVOLUTIONS)
            with self:
                return finer(*args, **kwargs)
        if self._counts:
            return func(*args, **kwargs)
        if func in _PRODUCTS and isinstance(args[0], torch.Tensor) and isinstance(args[1], torch.Tensor):
            real = [_real(side) for side in args]
            if any(one is not None for one in real):
                return self._product(func, args[0], args[1], real)
        found = func(*args, **kwargs)
        _mark(func, found, args, kwargs)
        return found

    def _product(self, func: Any, left: torch.Tensor, right: torch.Tensor, real: Sequence[torch.Tensor | None]) -> torch.Tensor:
        mine, other = (_counted(one, side) for one, side in zip(real, (left, right), strict=True))
        if func is aten.mul.Tensor:
            found, counts = left * right, mine * other
            lost = (counts == 0) & ~found.isfinite()
            setattr(found, _REAL, counts)
        else:
            # Of a sum the special terms alone are looked at one by one: there are few.
            special = ~left.isfinite().flatten(0, -2).all(0) | ~right.isfinite().transpose(-1, -2).flatten(0, -2).all(0)
            found = torch.matmul(left[..., ~special], right[..., ~special, :])
            lost = torch.zeros_like(found, dtype=torch.bool)
            for term in special.nonzero().flatten().tolist():
                at = slice(term, term + 1)
                product = left[..., at] * right[..., at, :]
                away = (mine[..., at] * other[..., at, :] == 0) & ~product.isfinite()
                lost |= away
                found = found + torch.where(away, 0.0, product)
        self.met = self.met or bool(lost.any())
        return found.masked_fill(lost, 0.0) if func is aten.mul.Tensor else found


def _counted(real: torch.Tensor | None, side: torch.Tensor) -> torch.Tensor:
    """Return 1 where an operand counts: what is not 0 is no padding, wherever it came from."""
    return torch.ones_like(side) if real is None else real.masked_fill(torch.ne(side, 0.0), 1.0)


def _added(bias: torch.Tensor, left: torch.Tensor, right: torch.Tensor, *, beta: Any = 1, alpha: Any = 1) -> torch.Tensor:
    return torch.add(torch.mul(bias, beta), torch.matmul(left, right), alpha=alpha)


_PRODUCTS = frozenset({aten.mul.Tensor, aten.mm.default, aten.bmm.default})
_CONVOLUTIONS = frozenset(convolutions.table())
_FINER: dict[Any, Callable[..., Any]] = {
    **convolutions.table(),
    aten.addmm.default: _added,
    aten.baddbmm.default: _added,
    aten.mv.default: lambda left, right: torch.matmul(left, right.unsqueeze(-1)).squeeze(-1),
}


def _real(tensor: Any) -> torch.Tensor | None:
    """Return where a tensor holds data, None where it holds no padding."""
    if not isinstance(tensor, torch.Tensor):
        return None
    known: torch.Tensor | None = getattr(tensor, _REAL, None)
    if known is None:
        written = getattr(tensor, _BLANK, None)
        known = written if written is not None and bool(written.any()) else None
    return known


def _mark(func: Any, found: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    """Note where the result of an operator holds padding."""
    first = args[0] if args else None
    if func in _ZEROS:
        setattr(found, _BLANK, torch.zeros_like(found))
    elif func is aten.copy_.default:
        _written(first, args[1])
    elif func in _JOINS:
        parts = [_real(part) if _real(part) is not None else getattr(part, _BLANK, None) for part in first or ()]
        if any(part is not None for part in parts) and not all(part is not None and not part.any() for part in parts):
            told = [torch.ones_like(own) if part is None else part for own, part in zip(first or (), parts, strict=True)]
            setattr(found, _REAL, func(told, *args[1:], **kwargs))
    elif isinstance(first, torch.Tensor):
        _carried(func, found, first, args, kwargs)


def _carried(func: Any, found: Any, first: torch.Tensor, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    real, blank = _real(first), getattr(first, _BLANK, None)
    if real is None and func in _PADS and _is_zero(func, args):
        real = torch.ones_like(first)
    name, mask = (_REAL, real) if real is not None else (_BLANK, blank)
    if mask is None:
        return
    if found is first:
        mask.fill_(1)  # something else was written into it
    elif func in _CASTS:
        setattr(found, name, mask.to(found.dtype))
    elif func in _CARRIES:
        setattr(found, name, func(mask, *args[1:], **kwargs))
    elif func in _SEVERAL:
        for one, part in zip(found, func(mask, *args[1:], **kwargs), strict=True):
            setattr(one, name, part)


def _is_zero(func: Any, args: tuple[Any, ...]) -> bool:
    return func is aten.im2col.default or len(args) < 3 or args[2] == 0


def _written(target: Any, source: Any) -> None:
    """Note that data were copied into a tensor; a view's marks are views of its base's."""
    for name in (_REAL, _BLANK):
        mask = getattr(target, name, None)
        if mask is not None:
            real = _real(source)
            mask.copy_(torch.ones_like(mask) if real is None else real)
