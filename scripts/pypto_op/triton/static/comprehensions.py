"""Comprehensions: element by element where few elements are known, once for all where they are not."""

from __future__ import annotations

from typing import Any

import libcst as cst

from pypto_op.triton.static.machine import Machine
from pypto_op.triton.static.values import Container, Ext, Host, Scope, Value

_FEW = 8
"""So many elements are evaluated one by one."""


class Comprehensions:
    """Evaluates comprehensions."""

    def __init__(self, machine: Machine) -> None:
        self.m = machine

    def evaluate(self, node: Any, scope: Scope) -> Value:
        """Evaluate a comprehension of any kind."""
        exact = self._exact(node, scope)
        if exact is not None:
            return exact
        inner = Scope({}, scope, scope.source, fleeting=scope.fleeting, is_comprehension=True)
        clause, depth = node.for_in, 0
        while clause is not None:
            item = self.m.expressions.item_of(self.m.expressions.evaluate(clause.iter, inner))
            self.m.statements.assign(clause.target, item, inner)
            with self.m.around(loops=1):
                for test in clause.ifs:
                    self.m.expressions.evaluate(test.test, inner)
            clause, depth = clause.inner_for_in, depth + 1
        with self.m.around(loops=depth, branches=1):
            if isinstance(node, cst.DictComp):
                self.m.expressions.evaluate(node.key, inner)
                return Container("dict", [self.m.expressions.evaluate(node.value, inner)], complete=False)
            return Container("list", [self.m.expressions.evaluate(node.elt, inner)], complete=False)

    def _exact(self, node: Any, scope: Scope) -> Value | None:
        """Return what a comprehension over a few known elements yields, one by one; None for any other."""
        iterated = self.m.records.as_tuple(
            self._range(node.for_in.iter, scope) or self.m.expressions.evaluate(node.for_in.iter, scope)
        )
        if node.for_in.ifs or node.for_in.inner_for_in is not None or not isinstance(iterated, Container):
            return None
        if not iterated.complete or iterated.keyed or not 0 < len(iterated.items) <= _FEW:
            return None
        result = Container("dict" if isinstance(node, cst.DictComp) else "list")
        for item in iterated.items:
            inner = Scope({}, scope, scope.source, fleeting=scope.fleeting, is_comprehension=True)
            self.m.statements.assign(node.for_in.target, item, inner)
            with self.m.around(loops=1):
                if not isinstance(node, cst.DictComp):
                    result.items.append(self.m.expressions.evaluate(node.elt, inner))
                    continue
                key, value = self.m.expressions.evaluate(node.key, inner), self.m.expressions.evaluate(node.value, inner)
                if isinstance(key, Host) and isinstance(key.const, (str, int)):
                    result.keyed[key.const] = value
                else:
                    result.items.append(value)
        return result

    def _range(self, node: cst.BaseExpression, scope: Scope) -> Value | None:
        """Return the numbers of `range(2)`, so that a list made over it has as many elements; None for anything else."""
        if not isinstance(node, cst.Call) or len(node.args) != 1 or node.args[0].star:
            return None
        callee = self.m.expressions.evaluate(node.func, scope)
        if not isinstance(callee, Ext) or callee.name != "builtins.range":
            return None
        end = self.m.expressions.evaluate(node.args[0].value, scope)
        count = end.const if isinstance(end, Host) and type(end.const) is int else 0
        return Container("tuple", [Host(number) for number in range(count)]) if 0 < count <= _FEW else None
