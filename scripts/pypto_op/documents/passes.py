"""Which reductions of a golden share one pass over the data: those along one axis of which none needs another's result.

The six sums of a layer norm's backward make four passes: mean, variance and two sums along the row, of which one goes with
the mean; and the sums over the rows, which go together. Counted one by one they would make two operators of one.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping

_Depths = Mapping[str, int]
"""Axis, as written -> how many reductions along it stand behind one another before a value is known."""


class Passes:
    """Counts the passes of one function, whose statements are given in their order."""

    def __init__(self, reduces: Callable[[ast.Call], bool]) -> None:
        self._reduces = reduces
        self._known: dict[str, _Depths] = {}
        self._weights: dict[tuple[str, int], int] = {}

    def add(self, call: ast.Call, weight: int) -> None:
        """Count a reduction that makes `weight` passes by itself."""
        axis = _axis(call)
        key = axis, self._depths(call).get(axis, 1)
        self._weights[key] = max(weight, self._weights.get(key, 0))

    def assigned(self, statement: ast.stmt) -> None:
        """Remember behind how many passes the variables of a statement are known."""
        if not isinstance(statement, (ast.Assign, ast.AugAssign, ast.AnnAssign)) or statement.value is None:
            return
        depths = self._depths(statement.value)
        for target in statement.targets if isinstance(statement, ast.Assign) else [statement.target]:
            for node in ast.walk(target):
                if isinstance(node, ast.Name):
                    before = self._known.get(node.id, {}) if isinstance(statement, ast.AugAssign) else {}
                    self._known[node.id] = _deepest([depths, before])

    @property
    def total(self) -> int:
        """How many passes the reductions make."""
        return sum(self._weights.values())

    def _depths(self, node: ast.AST) -> _Depths:
        if isinstance(node, ast.Name):
            return self._known.get(node.id, {})
        depths = _deepest([self._depths(child) for child in ast.iter_child_nodes(node)])
        if isinstance(node, ast.Call) and self._reduces(node):
            axis = _axis(node)
            return {**depths, axis: depths.get(axis, 0) + 1}
        return depths


def _deepest(several: list[_Depths]) -> _Depths:
    return {axis: max(depths.get(axis, 0) for depths in several) for axis in set().union(*several)}


def _axis(call: ast.Call) -> str:
    """Return the axis of a reduction as written; the second argument where it is a function of torch's."""
    named = next((keyword.value for keyword in call.keywords if keyword.arg in ("dim", "axis")), None)
    if named is None:
        base = call.func.value if isinstance(call.func, ast.Attribute) else None
        of_module = base is None or (isinstance(base, ast.Name) and base.id in ("torch", "F"))
        rest = call.args[1:] if of_module else call.args
        named = rest[0] if rest else None
    return "" if named is None else ast.unparse(named)
