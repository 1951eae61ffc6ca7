"""Finds loops of a reference whose later turns changed nothing, and makes inputs on which they do: chains, mazes, detours.

A reference that follows links, lets regions grow or balances rows and columns makes as many turns as there are elements. Random
inputs need a few of them, so a kernel that makes few is right for those. Whatever goes from element to element needs them all.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any

import torch

from pypto_op.triton.run.inputs.edges import is_ordered, is_symmetric
from pypto_op.triton.run.inputs.packing import address, changed_copy, holds_integers, memory_of, tensors_of

_TURNS = (4, 8, 16, 32)
SIDES = tuple(f"after {count} turns" for count in _TURNS)
"""Of an operator in a loop: what it returns changes there yet."""
_CLOSE, _NOTHING = 1e-5, 1e-7
"""A turn that changes no element by such a part, or by so little, shows in no tolerance."""
_MOST_ELEMENTS = 1 << 18
_LEAST = 8
"""A chain of fewer elements needs no loop."""
_LEAST_PICTURE = _MOST_LINES = 4
_DOUBLINGS = 24
"""Elements that are far apart differ by up to two to this power."""


class Turns:
    """Compares what an operator at one place returns from call to call, within one forward."""

    def __init__(self) -> None:
        self._last: dict[tuple[Any, ...], tuple[int, torch.Tensor]] = {}  # by place: how many calls, and what the last returned

    def note(self, place: tuple[Any, ...], given: Any, out: Any, *, writes: bool) -> Iterator[tuple[str, bool]]:
        """Yield by side whether the loop is still idle there, where this call says so.

        Args:
            place: which operator is called where.
            given: what it is given.
            out: what it returns.
            writes: it writes into its first tensor; what only views one tells nothing.
        """
        if not isinstance(out, torch.Tensor) or not 1 < out.numel() <= _MOST_ELEMENTS or out.is_complex():
            return
        if not writes and address(out) in map(address, tensors_of(given)):
            return
        count, before = self._last.get(place, (0, None))
        self._last[place] = count + 1, out.clone() if writes else out
        if before is None or before.shape != out.shape or before.dtype is not out.dtype or count >= 2 * _TURNS[-1]:
            return
        changes = not _is_close(before, out)
        for side, turns in zip(SIDES, _TURNS, strict=True):
            if turns <= count and (changes or turns == count):
                yield side, not changes


def _is_close(before: torch.Tensor, out: torch.Tensor) -> bool:
    if not out.is_floating_point():
        return torch.equal(before, out)
    return torch.allclose(before.float(), out.float(), rtol=_CLOSE, atol=_NOTHING, equal_nan=True)


def told(idle: Collection[str]) -> list[str]:
    """Return what to say of loops whose later turns changed nothing in any pass."""
    lines = sorted({int(key.split(" in line ")[1].split(",")[0]) for key in idle if any(f"({side})" in key for side in SIDES)})
    if not lines:
        return []
    said = (
        f"the reference loops over line {', '.join(map(str, lines[:_LEAST_PICTURE]))}, and no input of any pass needs all turns"
    )
    return [f"{said}: a kernel that makes fewer would pass"]


def linked(inputs: Any) -> Any | None:
    """Return inputs whose whole numbers name the place before or after their own, where they may name one of their row."""

    def change(copy: torch.Tensor, tensor: torch.Tensor) -> bool:
        size = tensor.shape[-1] if tensor.dim() else 0
        if size < _LEAST or not holds_integers(tensor) or bool((tensor < 0).any() or (tensor >= size).any()):
            return False
        places = torch.arange(size, device=tensor.device)
        copy.copy_((places + (1 if _leads(tensor) > 0 else -1)).clamp(0, size - 1))
        return True

    return changed_copy(inputs, change)


def keep_leading(copy: torch.Tensor, tensor: torch.Tensor) -> None:
    """Let whole numbers that all name their own place or one before it, or one after it, still do so: else links form rings."""
    if way := _leads(tensor):
        places = torch.arange(tensor.shape[-1], device=copy.device).to(copy.dtype)
        copy.copy_(torch.maximum(copy, places) if way > 0 else torch.minimum(copy, places))


def _leads(tensor: torch.Tensor) -> int:
    """Return -1 where no number is above its own place in its row, 1 where none is below it, and 0 where neither or both hold."""
    if not tensor.dim() or tensor.shape[-1] < _LEAST:
        return 0
    places = torch.arange(tensor.shape[-1], device=tensor.device)
    return int((tensor >= places).all()) - int((tensor <= places).all())


def joined(inputs: Any) -> Any | None:
    """Return inputs whose pairs of whole numbers, in two tensors, rows or columns, join each place to the next one."""
    alone = [tensor for tensor in tensors_of(inputs) if holds_integers(tensor) and tensor.dim() == 1 and len(tensor) >= _LEAST]
    ends = [tensor for tensor in alone if tensor.shape == alone[0].shape]
    most = max((int(tensor.max()) for tensor in ends), default=0)

    def change(copy: torch.Tensor, tensor: torch.Tensor) -> bool:
        if not holds_integers(tensor) or not tensor.numel():
            return False
        if tensor.dim() == 2 and 2 in tensor.shape and max(tensor.shape) >= _LEAST:
            pairs = copy if tensor.shape[0] == 2 else copy.t()
            steps = torch.arange(pairs.shape[1], device=tensor.device) % max(1, int(tensor.max()))
            pairs[0], pairs[1] = steps, steps + 1
            return True
        turn = next((turn for turn, one in enumerate(ends[:2]) if one is tensor), None)
        if turn is None or len(ends) < 2 or most < _LEAST:
            return False
        copy.copy_(torch.arange(len(tensor), device=tensor.device) % most + turn)
        return True

    return changed_copy(inputs, change)


def _of_flags(write: Callable[[torch.Tensor, torch.Tensor], None], *, square: bool) -> Callable[[Any], Any | None]:
    """Return what changes pictures of zeros and ones, or square matrices of such."""

    def make(inputs: Any) -> Any | None:
        def change(copy: torch.Tensor, tensor: torch.Tensor) -> bool:
            if tensor.dim() < 2 or tensor.is_complex() or 0 in tensor.stride() or not bool(((tensor == 0) | (tensor == 1)).all()):
                return False
            high, wide = tensor.shape[-2:]
            if min(high, wide) < (_LEAST if square else _LEAST_PICTURE) or (square and high != wide):
                return False
            write(copy, tensor)
            return True

        return changed_copy(inputs, change)

    return make


def _chain(copy: torch.Tensor, tensor: torch.Tensor) -> None:
    """Let each row have the next one as its only neighbour; a diagonal stays, and what is symmetric."""
    diagonal, both = tensor.diagonal(dim1=-2, dim2=-1).clone(), is_symmetric(tensor)
    copy.zero_()
    copy.diagonal(1, -2, -1).fill_(1)
    copy.diagonal(0, -2, -1).copy_(diagonal)
    if both:
        copy.diagonal(-1, -2, -1).fill_(1)


def _maze(copy: torch.Tensor, tensor: torch.Tensor) -> None:
    """Let the ones be a way that goes to and fro: every other row, and one step between two of them."""
    copy.zero_()
    copy[..., ::2, :] = 1
    copy[..., 1::4, -1] = 1
    copy[..., 3::4, 0] = 1


def _lone(copy: torch.Tensor, tensor: torch.Tensor) -> None:
    """Let the first be the only one."""
    copy.zero_()
    copy[..., 0, 0] = 1


def _but_one(copy: torch.Tensor, tensor: torch.Tensor) -> None:
    copy.fill_(1)
    copy[..., 0, 0] = 0


def detours(inputs: Any) -> Any | None:
    """Return inputs whose square matrices of lengths are short from each row to the next one alone: many steps are best."""

    def change(copy: torch.Tensor, tensor: torch.Tensor) -> bool:
        size = tensor.shape[-1] if tensor.dim() > 1 else 0
        if size < _LEAST or tensor.shape[-2] != size or not tensor.is_floating_point() or 0 in tensor.stride():
            return False
        finite = tensor[torch.isfinite(tensor)]
        if not finite.numel() or bool((finite < 0).any()) or bool(((finite == 0) | (finite == 1)).all()):
            return False
        diagonal, both, most = tensor.diagonal(dim1=-2, dim2=-1).clone(), is_symmetric(tensor), finite.max()
        copy.copy_(most.expand_as(copy))
        for side in (1, -1) if both else (1,):
            copy.diagonal(side, -2, -1).fill_(float(most) / (2 * size))
        copy.diagonal(0, -2, -1).copy_(diagonal)
        return True

    return changed_copy(inputs, change)


def far_apart(copy: torch.Tensor, tensor: torch.Tensor) -> None:
    """Let elements above zero be of very different sizes."""
    if not is_ordered(tensor) and bool((tensor > 0).all()):
        memory = memory_of(copy)
        draws = torch.randint(0, _DOUBLINGS + 1, (len(memory),), generator=torch.Generator().manual_seed(0))
        memory.mul_(2.0 ** -draws.to(memory))


WAYS: dict[str, Callable[[Any], Any | None]] = {
    "linked": linked,
    "joined": joined,
    "chained": _of_flags(_chain, square=True),
    "a maze": _of_flags(_maze, square=False),
    "one alone": _of_flags(_lone, square=False),
    "all but one": _of_flags(_but_one, square=False),
    "detours": detours,
}
"""By name: what changes inputs so that a loop has much to do."""
