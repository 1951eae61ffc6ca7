"""Inputs that are the same for every seed: a causal mask, positions in their order, where segments begin.

A kernel may know such an input by heart and never read it. So the pass for inputs of one value gives masks (two values) other
elements, and exchanges the lengths of segments, where the reference takes that. Positions one after another get a gap: a kernel
that takes the number of a row for its position is wrong then. The rest is said.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import torch

from pypto_op.triton.run.inputs.packing import once, same_layout, tensors_of

_TURNED = 0.25
"""Of a mask's elements of its first one's kind so many become the other."""
_LEAST = 2
_POSITIONS = 4
_MOST_BYTES = 1 << 24
_MOST_NAMES = 4


class Same:
    """Which tensors of each case were the same in the first two passes, whose seeds differ."""

    def __init__(self) -> None:
        self._marks: dict[int, list[str]] = {}
        self._same: dict[int, list[bool]] = {}

    def note(self, index: int, inputs: Any, movable: Sequence[bool]) -> bool:
        """Note a case's inputs in the first pass, compare them in the second one; return whether there are such."""
        if index not in self._marks:
            self._marks[index] = marks(inputs, movable)
        elif index not in self._same:
            self._same[index] = fixed(self._marks[index], marks(inputs, movable))
        return any(self.of(index))

    def of(self, index: int) -> Sequence[bool]:
        """Return which tensors of a case are the same; none before the second pass."""
        return self._same.get(index, ())


def marks(inputs: Any, movable: Sequence[bool]) -> list[str]:
    """Return a hash of each tensor that no pass moves (`skewed.movable`) and that holds several values; "" for the others."""
    pairs = zip(tensors_of(inputs), movable, strict=True)
    return [_hash(tensor) if not moved and _is_small(tensor) and not _holds_one(tensor) else "" for tensor, moved in pairs]


def fixed(before: list[str], now: list[str]) -> list[bool]:
    """Return which tensors were the same in two passes of different seeds."""
    return [bool(one) and one == other for one, other in zip(before, now, strict=len(before) == len(now))]


def other(
    tensor: torch.Tensor, draws: torch.Generator, *, gaps: bool = False, among: Sequence[torch.Tensor] = ()
) -> torch.Tensor | None:
    """Return a tensor of the same layout and kind with other values; None where none is sure to be valid.

    Args:
        tensor: stays as it is.
        draws: draws the values.
        gaps: numbers one after another get a gap; the last one may be too large for a table then.
        among: all inputs of the case. Where segments begin stays where their lengths are another input: they would overlap.
    """
    if any(_are_segments(tensor, one) or _are_segments(one, tensor) for one in among if one is not tensor):
        return None
    copy = same_layout(tensor)
    seen = once(copy)
    if gaps and are_consecutive(seen):
        changes = _part
    elif seen.dim() > 1:
        changes = _turn if tensor.dtype is torch.bool or tensor.is_floating_point() else _permute
    elif tensor.is_floating_point():
        changes = _shift
    else:
        changes = _exchange
    return copy if changes(seen, draws) else None


def are_consecutive(tensor: torch.Tensor) -> bool:
    """Whether whole numbers follow one another, as positions do."""
    whole = not tensor.is_floating_point() and not tensor.is_complex() and tensor.dtype is not torch.bool
    return whole and tensor.dim() == 1 and len(tensor) >= _POSITIONS and bool((tensor.diff() == 1).all())


def told(inputs: Any, same: Sequence[bool], *, taken: bool) -> list[str]:
    """Return what to say of tensors that are the same for every seed.

    Args:
        inputs: of a case.
        same: which of their tensors are.
        taken: the reference takes other values for those that can have some.
    """
    draws = torch.Generator()
    among = tensors_of(inputs)
    pairs = zip(among, same, strict=False)  # none before the second pass
    found = [at for at, (one, stays) in enumerate(pairs) if stays and not (taken and other(one, draws, among=among) is not None)]
    if not found:
        return []
    words = ", ".join(f"tensor {position}" for position in found[:_MOST_NAMES])
    return [f"of the inputs {words} is the same for every seed and got no other values: a kernel may know it by heart"]


def _are_segments(starts: torch.Tensor, lengths: torch.Tensor) -> bool:
    """Whether segments begin at some whole numbers, have others as lengths, and lie side by side; those of one a gap parts."""
    whole = not any(one.is_floating_point() or one.is_complex() or one.dtype is torch.bool for one in (starts, lengths))
    if not whole or starts.dim() != 1 or starts.shape != lengths.shape or len(starts) < _LEAST:
        return False
    apart, most = starts.diff(), lengths[:-1].to(starts.device)
    return bool((lengths >= 0).all() and (most <= apart).all() and ((most == apart) & (most > 1)).any())


def _hash(tensor: torch.Tensor) -> str:
    plain = once(tensor).detach().cpu().contiguous()
    return hashlib.sha256(plain.reshape(-1).view(torch.uint8).numpy().tobytes()).hexdigest()


def _is_small(tensor: torch.Tensor) -> bool:
    return tensor.numel() >= _LEAST and tensor.numel() * tensor.element_size() <= _MOST_BYTES


def _holds_one(tensor: torch.Tensor) -> bool:
    return bool((tensor == tensor[(0,) * tensor.dim()]).all())


def _turn(seen: torch.Tensor, draws: torch.Generator) -> bool:
    """Give some elements of a mask its other value, and leave the first of each row that has the value of the first."""
    first = seen[(0,) * seen.dim()].clone()
    alike = seen == first
    others = seen[~alike]
    if not others.numel() or not bool((others == others[0]).all()):
        return False
    turned = alike & (torch.rand(seen.shape, generator=draws).to(seen.device) < _TURNED) & (alike.cumsum(-1) > 1)
    seen[turned] = others[0]
    return bool(turned.any())


def _permute(seen: torch.Tensor, draws: torch.Generator) -> bool:
    """Give a table of different whole numbers (which page lies where) another order."""
    if sum(size > 1 for size in seen.shape) < 2 or bool((seen.reshape(-1).sort().values.diff() == 0).any()):
        return False
    order = torch.randperm(seen.numel(), generator=draws).to(seen.device)
    seen.copy_(seen.reshape(-1)[order].reshape(seen.shape))
    return True


def _shift(seen: torch.Tensor, draws: torch.Generator) -> bool:
    """Bring each number but the ends nearer to its next one, so sorted ones (edges of bins, slopes) stay sorted."""
    if seen.numel() <= _LEAST or not bool(torch.isfinite(seen).all()) or bool((seen == seen.round()).all()):
        return False
    inner = seen[1:-1]
    part = 0.1 + 0.3 * torch.rand(inner.shape, generator=draws).to(seen.device)
    inner.copy_(inner + part * (seen[2:] - inner))
    return True


def _part(seen: torch.Tensor, draws: torch.Generator) -> bool:
    """Leave a number out in the middle."""
    seen[len(seen) // 2 :] += 1
    return True


def _exchange(seen: torch.Tensor, draws: torch.Generator) -> bool:
    """Exchange the lengths of the segments between increasing whole numbers; the greatest length, and the ends, stay."""
    if seen.dtype is torch.bool:
        return False
    lengths = seen.diff()
    if not bool((lengths >= 0).all()) or not bool((lengths != lengths[:1]).any()):
        return False
    order = torch.randperm(lengths.numel(), generator=draws).to(seen.device)
    mixed = lengths[order]
    mixed = mixed if bool((mixed != lengths).any()) else lengths.roll(1)
    seen[1:] = seen[0] + mixed.cumsum(0)
    return True
