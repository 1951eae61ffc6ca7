"""What a test really runs, and what it compares with what."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from pypto_op_lint.facts import Facts
from pypto_op_lint.facts.flow import bindings_of
from pypto_op_lint.import_statements import dotted
from pypto_op_lint.tree import Binding, Site

COMPARE = "detailed_tensor_compare"
HELPERS = frozenset({COMPARE, "assert_allclose", "assert_close"})
_FIXTURE = frozenset({"fixture"})
_SET_UP = frozenset(
    {f"setup_{what}" for what in ("module", "class", "method", "function")} | {"setUp", "setUpClass", "setUpModule"}
)
_NOT_JUDGED = frozenset({"skip", "xfail"})
"""Marks of pytest under which a test cannot fail."""
_MOST_DEPTH = 12


def live_sites(facts: Facts) -> list[Site]:
    """Return the sites of the module and of the functions that it or pytest calls."""
    tests = [
        f
        for f in facts.tree.functions
        if f.name in _SET_UP
        or _decorated(f.decorators, _FIXTURE)
        or (f.name.startswith("test") and not _decorated(f.decorators, _NOT_JUDGED))
    ]
    from_module = [c.function for c in facts.calls.calls_in(facts.tree.module_sites)]
    live = facts.calls.reach([*tests, *from_module])
    return [*facts.tree.module_sites, *(site for function in live for site in function.sites)]


def _decorated(decorators: list[cst.BaseExpression], words: frozenset[str]) -> bool:
    return any(dotted(d.func if isinstance(d, cst.Call) else d).rpartition(".")[2] in words for d in decorators)


def last_names(facts: Facts, node: cst.Call) -> set[str]:
    """Return the last parts of the names that a call may go to."""
    names = facts.callee_names(node) | {dotted(node.func)}
    return {name.rpartition(".")[2] for name in names}


def comparisons(facts: Facts) -> Iterator[Site]:
    """Yield the calls of a compare helper that the test really makes."""
    for site in live_sites(facts):
        if isinstance(site.node, cst.Call) and last_names(facts, site.node) & HELPERS:
            yield site


def sources(facts: Facts, node: cst.CSTNode, depth: int = 0) -> set[str]:
    """Return what an expression comes from: names of called `*_wrapper` and `*_golden` functions, "?" for anything else."""
    if depth > _MOST_DEPTH:
        return {"?"}
    if isinstance(node, cst.Call):
        known = {n for n in last_names(facts, node) if n.endswith(("_wrapper", "_golden"))}
        if known:
            return known
        inner = [a.value for a in node.args]
        if isinstance(node.func, cst.Attribute):
            inner.insert(0, node.func.value)
        return _union(facts, inner, depth)
    if isinstance(node, cst.Name):
        return _of_name(facts, node, depth)
    if isinstance(node, (cst.Tuple, cst.List)):
        return _union(facts, [e.value for e in node.elements], depth)
    if isinstance(node, (cst.Subscript, cst.Attribute)):
        return sources(facts, node.value, depth + 1)
    return {"?"}


def _union(facts: Facts, nodes: list[cst.BaseExpression], depth: int) -> set[str]:
    found = {name for node in nodes for name in sources(facts, node, depth + 1)}
    return (found - {"?"}) or {"?"}


def _of_name(facts: Facts, node: cst.Name, depth: int) -> set[str]:
    result = {name for binding, _ in bindings_of(facts.tree, node) for name in _of_binding(facts, binding, depth)}
    return (result - {"?"}) or {"?"}


def _of_binding(facts: Facts, binding: Binding, depth: int) -> set[str]:
    if binding.kind == "parameter" and binding.site.function is not None:
        return {"?"}
    value, path = binding.value, list(binding.path)
    while isinstance(value, cst.Call) and path:
        name = dotted(value.func)
        if name == "enumerate" and value.args and path[0] == 1:
            value, path = value.args[0].value, path[1:]
        elif name == "zip" and isinstance(path[0], int) and path[0] < len(value.args):
            value, path = value.args[path[0]].value, path[1:]
        else:
            break
    if isinstance(value, (cst.Tuple, cst.List)) and path and isinstance(path[0], int) and path[0] < len(value.elements):
        value = value.elements[path[0]].value
    return sources(facts, value, depth + 1) if value is not None else {"?"}
