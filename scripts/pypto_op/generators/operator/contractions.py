"""Weights: inputs that a golden only ever sums products with, and over which of their axes.

With such an input at scale 1 each product makes what follows sqrt(size of that axis) larger; after two of them float32
rounding alone is above an absolute tolerance. So the inputs file draws them at 1 / sqrt(size). Where it is not sure that
an input is such a weight it stays at scale 1, since smaller outputs would hide errors below `atol`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pypto_op.documents.golden_scan import called, is_plain, plain_names
from pypto_op.python_text import Function, parameters

_SAME_AXES = frozenset({"to", "type", "float", "double", "half", "bfloat16", "contiguous", "clone", "detach"})
_AVERAGES = frozenset({"softmax", "one_hot", "normalize"})
"""What makes the other operand so small that the product does not grow."""


def summed_axes(function: Function, ranks: Mapping[str, int]) -> dict[str, int]:
    """Return weight -> its axis that products sum over.

    Only inputs that are the second operand of matrix products and nothing else, always by the same axis; not where the
    product is rescaled by a number at once, or the first operand averages.

    Args:
        function: the golden; its helpers are not followed.
        ranks: number of axes of each tensor that may be a weight.
    """
    inputs = set(parameters(function))
    reader = _Reader(function, {name: rank for name, rank in ranks.items() if name in inputs}, inputs)
    found: dict[str, set[int | None]] = {}
    for product in reader.products():
        view = reader.view(product.second)
        if view is not None:
            axis = None if reader.is_tame(product) else product.axis_of(view)
            found.setdefault(view.name, set()).add(axis)
    return {
        name: axis
        for name, axes in found.items()
        for axis in axes
        if axis is not None and len(axes) == 1 and not reader.used_elsewhere(name)
    }


@dataclass(frozen=True)
class _View:
    """An input with its axes in another order: place -> axis of the input."""

    name: str
    axes: tuple[int, ...]


@dataclass(frozen=True)
class _Product:
    node: ast.expr
    first: ast.expr
    second: ast.expr
    place: int
    """Of the axis of the second operand that is summed over."""

    def axis_of(self, view: _View) -> int | None:
        return view.axes[self.place] if -len(view.axes) <= self.place < len(view.axes) else None


class _Reader:
    """One function's names and products."""

    def __init__(self, function: Function, ranks: Mapping[str, int], inputs: set[str]) -> None:
        self.nodes = list(ast.walk(function))
        self.ranks = ranks
        self.plain = plain_names(function) | (inputs - set(ranks))
        self.values = self._assigned_once()

    def _assigned_once(self) -> dict[str, ast.expr]:
        values: dict[str, list[ast.expr]] = {}
        for node in (node for node in self.nodes if isinstance(node, ast.Assign)):
            for target in node.targets:
                pairs = [(target, node.value)]
                if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                    pairs = list(zip(target.elts, node.value.elts, strict=False))
                for name, value in pairs:
                    if isinstance(name, ast.Name):
                        values.setdefault(name.id, []).append(value)
        return {name: found[0] for name, found in values.items() if len(found) == 1}

    def view(self, node: ast.expr, seen: frozenset[str] = frozenset()) -> _View | None:
        """Return the input that an expression is, but for its dtype and the order of its axes."""
        if isinstance(node, ast.Name):
            if node.id in self.values and node.id not in seen:
                return self.view(self.values[node.id], seen | {node.id})
            return _View(node.id, tuple(range(self.ranks[node.id]))) if node.id in self.ranks else None
        if isinstance(node, ast.Attribute) and node.attr in ("T", "mT"):
            return _swapped(self.view(node.value, seen), -1, -2)
        if isinstance(node, ast.Subscript):
            return self._chosen(node, seen)
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            return None
        inner, method = node.func.value, node.func.attr
        if method in _SAME_AXES:
            return self.view(inner, seen)
        if method == "t":
            return _swapped(self.view(inner, seen), -1, -2)
        if method == "transpose" and len(node.args) == 2:
            try:
                return _swapped(self.view(inner, seen), *(int(ast.literal_eval(argument)) for argument in node.args))
            except (ValueError, TypeError):
                return None
        return None

    def _chosen(self, node: ast.Subscript, seen: frozenset[str]) -> _View | None:
        """Return the stack of matrices that an index chooses from, `stack[index]`: the axes of a matrix stay the last ones."""
        view = self.view(node.value, seen)
        one = not isinstance(node.slice, (ast.Slice, ast.Tuple, ast.Constant))
        return view if one and view is not None and len(view.axes) > 2 else None

    def products(self) -> Iterator[_Product]:
        """Yield the matrix products."""
        for node in self.nodes:
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
                yield _Product(node, node.left, node.right, -2)
            elif isinstance(node, ast.Call) and called(node) in ("matmul", "mm", "bmm", "linear", "addmm", "baddbmm", "einsum"):
                product = _called_product(node)
                if product is not None:
                    yield product

    def is_tame(self, product: _Product) -> bool:
        """Whether a product does not grow: a number rescales it at once, or its first operand averages."""
        first = product.first
        if isinstance(first, ast.Name):
            first = self.values.get(first.id, first)
        if any(isinstance(node, ast.Call) and called(node) in _AVERAGES for node in ast.walk(first)):
            return True
        names = {name for name, value in self.values.items() if value is product.node}

        def is_product(side: ast.expr) -> bool:
            return side is product.node or (isinstance(side, ast.Name) and side.id in names)

        return any(
            isinstance(node, ast.BinOp)
            and isinstance(node.op, (ast.Mult, ast.Div))
            and ((is_product(node.left) and self._number(node.right)) or (is_product(node.right) and self._number(node.left)))
            for node in self.nodes
        )

    def _number(self, node: ast.expr) -> bool:
        return is_plain(node, self.plain)

    def used_elsewhere(self, name: str) -> bool:
        """Whether an input is also used otherwise than as the second operand of products; its sizes do not count."""
        known = {id(inner) for product in self.products() for inner in ast.walk(product.second)}
        for node in self.nodes:
            if isinstance(node, ast.expr) and not isinstance(node, ast.Name) and self._number(node):
                known |= {id(inner) for inner in ast.walk(node)}
        for value in self.values.values():
            if self._is(name, value):
                known |= {id(inner) for inner in ast.walk(value)}
        return any(
            isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and id(node) not in known and self._is(name, node)
            for node in self.nodes
        )

    def _is(self, name: str, node: ast.expr) -> bool:
        view = self.view(node)
        return view is not None and view.name == name


def _swapped(view: _View | None, one: int, other: int) -> _View | None:
    if view is None or not all(-len(view.axes) <= place < len(view.axes) for place in (one, other)):
        return None
    axes = list(view.axes)
    axes[one], axes[other] = axes[other], axes[one]
    return _View(view.name, tuple(axes))


def _called_product(node: ast.Call) -> _Product | None:
    name, arguments = called(node), list(node.args)
    if name == "einsum":
        return _einsum(node)
    if name in ("addmm", "baddbmm"):
        return _Product(node, arguments[1], arguments[2], -2) if len(arguments) == 3 else None
    if name == "linear":
        return _Product(node, arguments[0], arguments[1], -1) if len(arguments) >= 2 else None
    if len(arguments) == 1 and isinstance(node.func, ast.Attribute):
        arguments.insert(0, node.func.value)  # a.matmul(b)
    return _Product(node, arguments[0], arguments[1], -2) if len(arguments) == 2 else None


def _einsum(node: ast.Call) -> _Product | None:
    """Return a product of two operands whose equation is written out and sums over one axis of the second."""
    equation = node.args[0] if len(node.args) == 3 else None
    if not isinstance(equation, ast.Constant) or not isinstance(equation.value, str):
        return None
    operands, arrow, result = equation.value.replace(" ", "").partition("->")
    first, comma, second = operands.partition(",")
    summed = [place for place, letter in enumerate(second) if letter in first and letter not in result]
    if not arrow or not comma or "." in operands or len(summed) != 1:
        return None
    return _Product(node, node.args[1], node.args[2], summed[0])
