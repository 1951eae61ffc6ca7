"""Infinities that a reference means, in its answers and among its inputs: a filter hides tokens, a matrix has holes.

Where an answer is infinite because exp() overflowed, or because a logarithm met what had become zero, another right formula is
finite. So moved inputs do not suit a reference that computes an infinity out of finite numbers. One that writes it
(`masked_fill`, `where`, `full`) means it, wherever it is written. An input that holds infinities beside drawn numbers is moved
as any other one, and they stay where they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from pypto_op.dispatch_mode import DispatchMode
from pypto_op.triton.run.inputs.packing import map_tensors, memory_of, same_layout, tensors_of, widened

_LEAST = 4
"""So many finite elements: a reference is asked once for a move, and another draw, so moved, may have a few less."""


class _Computed(DispatchMode):
    """Notes, while it is active, whether an operator made an infinity of finite numbers."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.found = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call the operator, and look for infinities that it was not given."""
        given = [args, kwargs or {}]
        held = self.found or func.is_view or _holds(given)
        out = func(*args, **(kwargs or {}))
        self.found = self.found or not (held or not any(map(_is_infinite, tensors_of(out))))
        return out


def are_meant(outputs: Any, again: Callable[[], Any]) -> bool:
    """Whether a reference returned only finite numbers, and infinities that it wrote, or was given.

    Args:
        outputs: of the reference. NaN, and a tensor with few finite elements, tell nothing.
        again: calls the reference again; it may raise.
    """
    tensors = [*map(_real, tensors_of(outputs))]
    if all(bool(torch.isfinite(one).all()) for one in tensors):
        return True
    if any(bool(one.isnan().any()) or int(torch.isfinite(one).sum()) < min(_LEAST, one.numel() / 2) for one in tensors):
        return False
    with _Computed() as watch:
        again()
    return not watch.found


def filled(inputs: Any) -> Any:
    """Return inputs with zeros, which no move changes, in the places of infinities; the very ones where there are none."""
    if not any(_is_infinite(tensor) for tensor in tensors_of(inputs)):
        return inputs
    return map_tensors(inputs, lambda tensor: _with(tensor, None))


def moved(inputs: Any, move: Callable[[Any], Any | None]) -> Any | None:
    """Return inputs that are moved with zeros in the places of infinities, which stay; None where nothing is moved.

    `move` returns inputs of the same layout, or None.
    """
    found = move(filled(inputs))
    if found is None or not any(_is_infinite(tensor) for tensor in tensors_of(inputs)):
        return found
    own = iter(tensors_of(inputs))
    return map_tensors(found, lambda tensor: _with(tensor, next(own)))


def _with(tensor: torch.Tensor, own: torch.Tensor | None) -> torch.Tensor:
    """Return a copy with zeros where it is infinite, or with the infinities of another tensor of that layout."""
    copy = same_layout(tensor)
    source = tensor if own is None else own
    if _is_infinite(source):
        memory, held = memory_of(copy), memory_of(source)
        memory.copy_(torch.where(held.isinf(), torch.zeros_like(held) if own is None else held, memory))
    return copy


def _holds(given: Any) -> bool:
    """Whether arguments of an operator hold an infinity, as a number or in a tensor."""
    numbers = [given]
    while numbers:
        value = numbers.pop()
        if isinstance(value, float) and math.isinf(value):
            return True
        numbers += value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return any(map(_is_infinite, tensors_of(given)))


def _is_infinite(tensor: torch.Tensor) -> bool:
    """Whether a tensor of floats holds an infinity; floats of 8 bits mostly have none."""
    wide = (tensor.is_floating_point() and tensor.element_size() > 1) or tensor.is_complex()
    return wide and bool(tensor.isinf().any())


def _real(tensor: torch.Tensor) -> torch.Tensor:
    return torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else widened(tensor)
