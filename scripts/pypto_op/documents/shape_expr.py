"""Shape expressions of module_interfaces.yaml: integers, symbols, + - * // and brackets. Never `eval`."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from pypto_op.errors import ContractError
from pypto_op.python_text import NoNumber, evaluate, expression

MAX_SIZE = 2**40
"""No dimension is larger; a bigger result is a mistake in the expression."""

_MAX_LENGTH = 200
_MAX_NODES = 60
_ARITHMETIC: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
}


@dataclass(frozen=True)
class ShapeExpr:
    """One dimension, parsed."""

    text: str  # as it was written
    symbols: frozenset[str]  # the names in it
    _tree: ast.expr

    def value(self, sizes: Mapping[str, int]) -> int:
        """Return the dimension for given sizes of the symbols.

        Raises:
            ContractError: a symbol has no size, a division by zero, or a result outside 0..2^40.
        """
        missing = sorted(self.symbols - sizes.keys())
        if missing:
            raise ContractError(f"{self.text!r} needs a size for {missing[0]}")
        try:
            result = evaluate(self._tree, {name: int(sizes[name]) for name in self.symbols}, _ARITHMETIC)
        except NoNumber:
            raise ContractError(f"{self.text!r} divides by zero") from None
        if not 0 <= result <= MAX_SIZE:
            raise ContractError(f"{self.text!r} gives {result}", remedy="sizes go from 0 to 2^40")
        return int(result)

    def canonical(self) -> str:
        """Return the expression without superfluous blanks and brackets, to compare two of them."""
        return ast.unparse(self._tree)


def parse(dimension: object) -> ShapeExpr:
    """Parse one dimension.

    Args:
        dimension: an int of at least 0, or text such as `S`, `2*D`, `(S + BT - 1)//BT`.

    Raises:
        ContractError: anything but ints, symbols, + - * // and brackets; or too long.
    """
    if isinstance(dimension, bool) or not isinstance(dimension, (int, str)):
        raise ContractError(f"a dimension is a number or text, not {type(dimension).__name__}")
    return _parsed(str(dimension).strip())


@lru_cache(maxsize=1024)
def _parsed(text: str) -> ShapeExpr:
    """Parse a text once: a verdict asks for the same few dimensions a thousand times, for each size that a case may have."""
    if not text or len(text) > _MAX_LENGTH:
        problem = "an empty dimension" if not text else f"a dimension of {len(text)} characters"
        raise ContractError(problem, remedy="write a number, a symbol, or + - * // of them")
    # Python would read wide characters as plain ones, join lines and skip comments: nobody means that here.
    if not text.isascii() or any(character in text for character in "\n\r\\#"):
        raise _bad(text)
    tree = expression(text)
    if tree is None:
        raise _bad(text)
    nodes = list(ast.walk(tree))
    if len(nodes) > _MAX_NODES:
        raise ContractError(f"{text[:40]!r}... has too many parts", remedy="simplify it")
    symbols = {_check_node(node, text) for node in nodes} - {""}
    return ShapeExpr(text, frozenset(symbols), tree)


def _check_node(node: ast.AST, text: str) -> str:
    """Return the symbol that `node` is, or ""; raise for a node that no shape expression may hold."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Constant) and type(node.value) is int and 0 <= node.value <= MAX_SIZE:
        return ""
    if isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
        return ""
    if isinstance(node, (ast.Load, *_ARITHMETIC)):
        return ""
    raise _bad(text)


def _bad(text: str) -> ContractError:
    shown = text if len(text) <= 60 else text[:57] + "..."
    return ContractError(f"{shown!r} is no shape expression", remedy="use ints, symbols, + - * // and brackets only")
