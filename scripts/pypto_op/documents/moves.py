"""Tells whether a golden only moves elements; a copy does not round, so its tolerance may be 0."""

from __future__ import annotations

import ast
from collections.abc import Collection
from pathlib import Path

from pypto_op.documents.golden import reachable
from pypto_op.documents.golden_scan import called, functions_of
from pypto_op.python_text import Function, assignments, names_in, parameters

_MOVES = frozenset(
    {"reshape", "view", "flatten", "unflatten", "squeeze", "unsqueeze", "expand", "expand_as", "contiguous", "clone", "detach"}
    | {"permute", "transpose", "t", "swapaxes", "movedim", "flip", "roll", "rot90", "repeat", "repeat_interleave", "tile"}
    | {"cat", "concat", "stack", "split", "chunk", "unbind", "narrow", "select", "index_select", "gather", "take_along_dim"}
    | {"where", "masked_fill", "masked_fill_", "scatter", "scatter_", "index_copy", "index_copy_", "copy_", "pad"}
    | {"zeros_like", "empty_like", "full_like", "new_zeros", "new_empty", "new_full"}
)
"""Functions of torch whose results hold elements as they were, or constants."""
_OF_SHAPE = frozenset({"shape", "dtype", "device", "ndim"})
_SIZES = frozenset({"size", "dim", "numel", "len", "range", "new_zeros", "new_empty", "new_full", "arange"})
"""Functions whose results hold no element of what they are given."""


def only_moves(path: Path, function: str, floating: Collection[str]) -> bool:
    """Whether the golden function of a file does nothing to elements of floating inputs but move them.

    A golden with helpers counts as one that computes, since nobody follows what it hands to them.

    Args:
        floating: the golden's parameters that are floating tensors.

    Raises:
        ContractError: the file cannot be read, does not parse, or lacks the function.
    """
    functions = functions_of(path, function)
    golden = functions[function]
    if len(reachable(golden, functions)) > 1 or not set(floating) <= set(parameters(golden)):
        return False
    held = _holding(golden, set(floating))
    return not any(_computes(node, held) for node in ast.walk(golden))


def _holding(function: Function, floating: set[str]) -> set[str]:
    """Return the names that hold elements of floating inputs; to a fixed point, since they depend on one another."""
    held = set(floating)
    while True:
        before = len(held)
        for targets, value in assignments(function):
            if _holds(value, held):
                held.update(*map(_stored, targets))
        if len(held) == before:
            return held


def _stored(target: ast.expr) -> set[str]:
    """Return the names that an assignment gives a value: of `out[index]` the first alone."""
    while isinstance(target, ast.Subscript | ast.Attribute | ast.Starred):
        target = target.value
    return names_in(target)


def _holds(node: ast.AST, held: set[str]) -> bool:
    """Whether the value of an expression holds elements of floating inputs."""
    if isinstance(node, ast.Name):
        return node.id in held
    is_size = isinstance(node, ast.Attribute) and node.attr in _OF_SHAPE
    if is_size or isinstance(node, ast.Compare) or (isinstance(node, ast.Call) and called(node) in _SIZES):
        return False
    return any(_holds(child, held) for child in ast.iter_child_nodes(node))


def _computes(node: ast.AST, held: set[str]) -> bool:
    """Whether a node makes new elements of floating ones."""
    if isinstance(node, ast.BinOp | ast.UnaryOp):
        return _holds(node, held)
    if isinstance(node, ast.AugAssign):
        return _holds(node.target, held) or _holds(node.value, held)
    return isinstance(node, ast.Call) and called(node) not in _MOVES and _holds(node, held)
