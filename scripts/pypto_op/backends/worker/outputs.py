"""What a wrapper returned: its structure in words, and its tensors in order.

No code of the wrapper's runs here: a subclass of tuple or list can have an `__iter__` of its own, a class a `__name__`.
"""

from __future__ import annotations

from typing import Any

import torch

from pypto_op.backends.worker.loading import Failure
from pypto_op.vocabulary import Outcome

_DEEPEST = 8
# As they were before any candidate was loaded.
_detach, _is_complex, _is_neg = torch.Tensor.detach, torch.Tensor.is_complex, torch.Tensor.is_neg


def structure_of(returned: Any, depth: int = 0) -> str:
    """Return "tensor", "tuple(2)", "list(3)", "tuple(tensor, list(2))", "None", "int", ..."""
    kind = type(returned)
    if issubclass(kind, torch.Tensor):
        return "tensor"
    if returned is None:
        return "None"
    items = _items(returned)
    if items is not None and depth < _DEEPEST:
        word = "list" if issubclass(kind, list) else "tuple"
        if all(issubclass(type(item), torch.Tensor) for item in items):
            return f"{word}({len(items)})"
        return f"{word}({', '.join(structure_of(item, depth + 1) for item in items[:16])})"
    return _name(kind)


def _items(value: Any) -> list[Any] | None:
    """Return what a tuple or a list really holds, whatever its class says; None for anything else."""
    if issubclass(type(value), tuple):
        return list(tuple.__iter__(value))
    return list(list.__iter__(value)) if issubclass(type(value), list) else None


def _name(kind: type) -> str:
    name: str = type.__dict__["__name__"].__get__(kind)
    return name


def objects_of(returned: Any, depth: int = 0) -> list[torch.Tensor]:
    """Return the very tensors that a wrapper returned, left to right; `leaves_of` has refused what is none."""
    items = _items(returned)
    if items is None or depth >= _DEEPEST:
        return [returned]
    return [found for item in items for found in objects_of(item, depth + 1)]


def leaves_of(returned: Any, *, may_require_grad: bool = True) -> list[torch.Tensor]:
    """Return the tensors of a tensor, or of nested tuples and lists of them, left to right.

    Args:
        returned: by a wrapper or a golden.
        may_require_grad: whether a tensor may require a gradient; where no input does, what a kernel made does not.

    Raises:
        Failure: BAD_OUTPUT, for anything else, and for tensors that are not plain dense ones.
    """
    leaves: list[torch.Tensor] = []
    _collect(returned, leaves, 0)
    if not may_require_grad:
        plain = (found for found in objects_of(returned) if type(found) is torch.Tensor)  # a Parameter says that it is one
        if any(found.requires_grad for found in plain):
            raise Failure(Outcome.BAD_OUTPUT, "the wrapper returned a tensor that requires a gradient, though no input does")
    if not leaves:
        raise Failure(Outcome.BAD_OUTPUT, f"the wrapper returned {structure_of(returned)}, without any tensor")
    return leaves


def _collect(item: Any, leaves: list[torch.Tensor], depth: int) -> None:
    parts = _items(item)
    if parts is not None and depth < _DEEPEST:
        for part in parts:
            _collect(part, leaves, depth + 1)
        return
    if not issubclass(type(item), torch.Tensor):
        raise Failure(Outcome.BAD_OUTPUT, f"the wrapper returned {structure_of(item)} where a tensor belongs")
    # A subclass can pretend to other values whenever it is looked at.
    if type(item) not in (torch.Tensor, torch.nn.Parameter):
        raise Failure(Outcome.BAD_OUTPUT, f"the wrapper returned a {_name(type(item))}, not a plain tensor")
    plain = _detach(item)
    if plain.layout is not torch.strided or plain.is_quantized or _is_complex(plain) or plain.is_meta:
        raise Failure(Outcome.BAD_OUTPUT, f"the wrapper returned a tensor of layout {plain.layout} and dtype {plain.dtype}")
    if _is_neg(plain):
        raise Failure(Outcome.BAD_OUTPUT, "the wrapper returned a tensor that torch has yet to negate")
    leaves.append(plain)  # another object on the same memory
