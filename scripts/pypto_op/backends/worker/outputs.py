"""What a wrapper returned: its structure in words, and its tensors in order."""

from __future__ import annotations

from typing import Any

import torch

from pypto_op.backends.worker.loading import Failure
from pypto_op.vocabulary import Outcome

_DEEPEST = 8


def structure_of(returned: Any, depth: int = 0) -> str:
    """Return "tensor", "tuple(2)", "list(3)", "tuple(tensor, list(2))", "None", "int", ..."""
    if isinstance(returned, torch.Tensor):
        return "tensor"
    if returned is None:
        return "None"
    if isinstance(returned, (tuple, list)) and depth < _DEEPEST:
        kind = "list" if isinstance(returned, list) else "tuple"
        if all(isinstance(item, torch.Tensor) for item in returned):
            return f"{kind}({len(returned)})"
        return f"{kind}({', '.join(structure_of(item, depth + 1) for item in returned[:16])})"
    return type(returned).__name__


def leaves_of(returned: Any) -> list[torch.Tensor]:
    """Return the tensors of a tensor, or of nested tuples and lists of them, left to right.

    Raises:
        Failure: BAD_OUTPUT, for anything else, and for tensors that are not plain dense ones.
    """
    leaves: list[torch.Tensor] = []
    _collect(returned, leaves, 0)
    if not leaves:
        raise Failure(Outcome.BAD_OUTPUT, f"the wrapper returned {structure_of(returned)}, without any tensor")
    return leaves


def _collect(item: Any, leaves: list[torch.Tensor], depth: int) -> None:
    if isinstance(item, (tuple, list)) and depth < _DEEPEST:
        for part in item:
            _collect(part, leaves, depth + 1)
        return
    if not isinstance(item, torch.Tensor):
        raise Failure(Outcome.BAD_OUTPUT, f"the wrapper returned {structure_of(item)} where a tensor belongs")
    # A subclass can pretend to other values whenever it is looked at.
    if type(item) not in (torch.Tensor, torch.nn.Parameter):
        raise Failure(Outcome.BAD_OUTPUT, f"the wrapper returned a {type(item).__name__}, not a plain tensor")
    if item.layout is not torch.strided or item.is_quantized or item.is_complex() or item.is_meta:
        raise Failure(Outcome.BAD_OUTPUT, f"the wrapper returned a tensor of layout {item.layout} and dtype {item.dtype}")
    # Another object on the same memory: a tensor can carry methods of its own.
    leaves.append(torch.Tensor.detach(item))
