"""Operators that a file registers with `torch.library`: which function of the file `torch.ops.demo.exp` runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from pypto_op_lint.facts.values import Func, Result

if TYPE_CHECKING:
    from pypto_op_lint.facts.evaluator import Evaluator

MAKES_OP = frozenset({"torch.library.custom_op", "torch.library.triton_op"})
_FILLS_OP = frozenset({"torch.library.impl", "torch.library.register_kernel"})
_LIBRARY = "torch.library.Library"


def registered(ev: Evaluator) -> dict[str, list[Func]]:
    """Return the file's functions by the name that their operator has under `torch.ops`: "demo.exp"."""
    if ev.ops is None:
        ev.ops = {}  # for what is asked while they are looked for
        ev.ops = _find(ev)
    return ev.ops


def _find(ev: Evaluator) -> dict[str, list[Func]]:
    found: dict[str, list[Func]] = {}

    def add(name: str | None, function: Func) -> None:
        if name is not None:
            found.setdefault(name, []).append(function)

    for function in ev.tree.functions:
        for decorator in function.decorators:
            if isinstance(decorator, cst.Call):
                add(_name(ev, decorator), Func(function))
    for site in ev.tree.sites(cst.Call):
        node: cst.Call = site.node  # type: ignore[assignment]
        name = _name(ev, node) if len(node.args) > 1 and isinstance(node.func, (cst.Name, cst.Attribute)) else None
        for arg in node.args[1:] if name is not None else ():
            for given in ev.functions(arg.value):
                add(name, given)
    return found


def _name(ev: Evaluator, node: cst.Call) -> str | None:
    """The operator that a call makes or gives an implementation; None for any other call."""
    words = [ev.constant(arg.value) for arg in node.args if arg.keyword is None]
    texts = [str(c.value) if c is not None and isinstance(c.value, str) else "" for c in words]
    if ev.paths(node.func) & (MAKES_OP | _FILLS_OP):
        if texts and "::" in texts[0]:
            return texts[0].partition("(")[0].replace("::", ".")
        space = _space(ev, node.args[0].value) if node.args else None
        return f"{space}.{texts[1]}" if space and len(texts) > 1 and texts[1] else None
    if isinstance(node.func, cst.Attribute) and node.func.attr.value == "impl":
        space = _space(ev, node.func.value)
        return f"{space}.{texts[0]}" if space and texts and texts[0] else None
    return None


def _space(ev: Evaluator, node: cst.BaseExpression) -> str | None:
    """The name space of a `torch.library.Library("demo", "DEF")`."""
    for value in ev.values(node):
        if isinstance(value, Result) and value.callee == _LIBRARY and value.call.args:
            name = ev.constant(value.call.args[0].value)
            return str(name.value) if name is not None else None
    return None
