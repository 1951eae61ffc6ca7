"""Code that can never run, and the block under `if __name__ == "__main__"`."""

from __future__ import annotations

from typing import Any

import libcst as cst

from pypto_op_lint.nodes import text_of

_TERMINAL = (cst.Return, cst.Raise, cst.Continue, cst.Break)


def is_main_test(test: cst.BaseExpression) -> bool:
    """Whether a test is `__name__ == "__main__"`."""
    if not isinstance(test, cst.Comparison) or len(test.comparisons) != 1:
        return False
    other = test.comparisons[0]
    if not isinstance(other.operator, cst.Equal):
        return False
    pair = {_plain(test.left), _plain(other.comparator)}
    return pair == {"__name__", "'__main__'"}


def _plain(node: cst.BaseExpression) -> str:
    if isinstance(node, cst.Name):
        return node.value
    if isinstance(node, cst.SimpleString):
        return repr(text_of(node.value))
    return ""


def constant_truth(test: cst.BaseExpression) -> bool | None:
    """Return the truth of a test that is written down as a constant; None when it depends on anything."""
    if isinstance(test, cst.Name):
        return {"True": True, "False": False, "None": False, "TYPE_CHECKING": False}.get(test.value)
    if isinstance(test, cst.Attribute):
        return False if test.attr.value == "TYPE_CHECKING" else None
    if isinstance(test, cst.Integer):
        return test.evaluated_value != 0
    if isinstance(test, cst.SimpleString):
        return bool(text_of(test.value))
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        inner = constant_truth(test.expression)
        return None if inner is None else not inner
    if isinstance(test, cst.BooleanOperation):
        sides = (constant_truth(test.left), constant_truth(test.right))
        if isinstance(test.operator, cst.And):
            return False if False in sides else True if sides == (True, True) else None
        return True if True in sides else False if sides == (False, False) else None
    return None


def live_statements(body: Any) -> list[cst.CSTNode]:
    """Return the statements of a block up to the first one after which nothing runs."""
    found: list[cst.CSTNode] = []
    for statement in body:
        found.append(statement)
        if isinstance(statement, cst.SimpleStatementLine) and isinstance(statement.body[-1], _TERMINAL):
            break
    return found
