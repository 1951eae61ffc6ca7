"""The pypto loops of a graph: where each stands, how often it runs, and what it contains."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from pypto_op_lint.facts.values import Const, Result
from pypto_op_lint.tree import Function, Site

if TYPE_CHECKING:
    from pypto_op_lint.facts import Facts

LOOPS = frozenset({"pypto.loop", "pypto.loop_unroll"})


@dataclass(frozen=True, eq=False)
class GraphLoop:
    """`for i in pypto.loop(...)`."""

    site: Site  # the `for` statement
    call: cst.Call  # the call of `pypto.loop` or `pypto.loop_unroll` that it runs over
    once: bool  # it is known to run exactly once

    def keyword(self, name: str) -> cst.BaseExpression | None:
        """Return the argument given as `name=`."""
        return next((a.value for a in self.call.args if a.keyword is not None and a.keyword.value == name), None)


def graph_loops(facts: Facts) -> list[GraphLoop]:
    """Return every loop over `pypto.loop` or `pypto.loop_unroll` in the graph's code, in source order."""
    _ = facts.calls
    found = []
    for site in facts.graph_sites(cst.For):
        assert isinstance(site.node, cst.For)
        for value in facts.ev.values(site.node.iter):
            if isinstance(value, Result) and value.callee in LOOPS:
                found.append(GraphLoop(site, value.call, _runs_once(facts, value.call)))
                break
    return found


def loops_inside(facts: Facts, outer: GraphLoop, loops: list[GraphLoop]) -> Iterator[GraphLoop]:
    """Yield the loops that run inside `outer`, in helpers that its body calls too."""
    called: set[int] = set()
    for site in facts.tree.sites(cst.Call):
        if site.within(outer.site):
            starts = [call.function for call in facts.calls.calls_at(site.node)]
            called |= {id(f) for f in facts.calls.reach(starts)}
    for loop in loops:
        function: Function | None = loop.site.function
        if loop.site is not outer.site and (loop.site.within(outer.site) or (function is not None and id(function) in called)):
            yield loop


def _runs_once(facts: Facts, call: cst.Call) -> bool:
    """Whether the loop's bounds are known: `loop(1)`, `loop(0, 1)`, `loop(2, 3)`."""
    plain = [a.value for a in call.args if a.keyword is None and not a.star]
    numbers = []
    for node in plain[:3]:
        values = facts.ev.values(node)
        if len(values) != 1 or not isinstance(values[0], Const) or values[0].kind != "int":
            return False
        numbers.append(values[0].value)
    return bool(numbers) and len(range(*numbers)) == 1 if 0 not in numbers[2:] else False
