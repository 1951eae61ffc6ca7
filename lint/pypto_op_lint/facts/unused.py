"""Functions of a module that nothing in the file leads to."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from pypto_op_lint.facts import custom_ops
from pypto_op_lint.nodes import text_of
from pypto_op_lint.tree import Function

if TYPE_CHECKING:
    from pypto_op_lint.facts import Facts

WRAPPER_NAME = re.compile(r"(?:\w+_wrapper|launch_\w+|run_\w+)\Z")
"""Functions that a caller of the operator uses."""


def unused_functions(facts: Facts) -> frozenset[int]:
    """Return the ids of the module's functions that are no wrapper or kernel, and that no code in use names.

    Names decide, not calls: whoever is named in code that runs, or in a string, counts as used, and so do operators
    that the file registers where it reads `torch.ops`.
    """
    waiting = {f.name: f for f in facts.tree.functions if f.is_top_level and isinstance(f.node, cst.FunctionDef)}
    waiting = {name: f for name, f in waiting.items() if not WRAPPER_NAME.match(name) and not facts.is_kernel(f)}
    candidates = {id(f) for f in waiting.values()}
    named: dict[int, set[str]] = {}
    for site in facts.tree.sites(cst.Name, cst.SimpleString):
        text = site.node.value if isinstance(site.node, cst.Name) else text_of(site.node.value)  # type: ignore[attr-defined]
        named.setdefault(id(_outermost(site.function)), set()).add(str(text))
    live = {name for home, names in named.items() if home not in candidates for name in names}
    if "ops" in live or any(s.node.attr.value == "ops" for s in facts.tree.sites(cst.Attribute)):  # type: ignore[attr-defined]
        live |= {f.function.name for functions in custom_ops.registered(facts.ev).values() for f in functions}
    while used := [name for name in waiting if name in live]:
        for name in used:
            live |= named.get(id(waiting.pop(name)), set())
    return frozenset(id(f) for f in waiting.values())


def _outermost(function: Function | None) -> Function | None:
    while function is not None and function.owner is not None:
        function = function.owner
    return function
