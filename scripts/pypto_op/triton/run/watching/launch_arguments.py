"""What a launch is given: numbers in letters, tensors in structures, and some of a tensor's elements."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, TypeVar

import torch

_Leaf = TypeVar("_Leaf")
_MOST_LOOKED_AT = 4096


@dataclass(frozen=True)
class Few:
    """At most 4096 elements of a tensor, evenly spread, and how many it has."""

    elements: int
    values: torch.Tensor

    @classmethod
    def of(cls, tensor: torch.Tensor) -> Few:
        """Return those of `tensor`."""
        flat = tensor.detach().reshape(-1)
        return cls(flat.numel(), flat[:: max(1, flat.numel() // _MOST_LOOKED_AT)][:_MOST_LOOKED_AT].clone())

    def same(self, other: Few) -> bool:
        """Whether two tensors may hold the same numbers in the same order."""
        like = self.elements == other.elements and self.values.dtype == other.values.dtype
        return like and bool(
            ((self.values == other.values) | ((self.values != self.values) & (other.values != other.values))).all()
        )


def are_moved(source: torch.Tensor, lost: torch.Tensor, given: torch.Tensor) -> bool:
    """Whether a tensor, or the elements `lost` of it, come from another one, which a kernel only put in another order.

    Sums of whole numbers are among others by chance, so such are asked for as a whole.
    """
    if given.is_complex() or given.is_floating_point() != source.is_floating_point():
        return False
    if source.is_floating_point():
        return bool(torch.isin(Few.of(lost).values.double(), given.double()).all())
    alike = source.numel() == given.numel()
    return alike and torch.equal(source.reshape(-1).long().sort().values, given.reshape(-1).long().sort().values)


def spelled(value: Any) -> str | None:
    """Return a number, a word or nothing (None) in letters; None for anything else."""
    value = getattr(value, "value", value) if type(value).__name__ == "constexpr" else value
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes)):
        return repr(value)
    if type(value).__module__ == "numpy" and getattr(value, "ndim", 1) == 0:
        return repr(value.item())
    return str(value) if isinstance(value, torch.SymInt | torch.SymFloat) else None


def name_of(kernel: Any) -> str:
    """Return the name of a kernel's function."""
    return str(getattr(getattr(kernel, "fn", None), "__name__", "a kernel"))


def leaves_of(value: Any, kind: type[_Leaf], depth: int = 4) -> list[_Leaf]:
    """Return what is of a kind in a launch's argument: itself, in tuples and lists, or behind a descriptor or wrapper."""
    if isinstance(value, (tuple, list)) and depth:
        return [leaf for item in value for leaf in leaves_of(item, kind, depth - 1)]
    held = value if isinstance(value, dict) else getattr(value, "__dict__", None) if dataclasses.is_dataclass(value) else None
    if held is not None and depth:
        return [leaf for item in held.values() for leaf in leaves_of(item, kind, depth - 1)]
    base = getattr(value, "base", None)
    if isinstance(base, torch.Tensor) and not isinstance(value, torch.Tensor):
        return leaves_of(base, kind, depth - 1)
    return [value] if isinstance(value, kind) else []
