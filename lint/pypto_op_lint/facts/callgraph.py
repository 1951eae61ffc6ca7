"""Who calls whom inside one file, directly or by handing a function on."""

from __future__ import annotations

from collections.abc import Iterable

import libcst as cst

from pypto_op_lint.facts import objects
from pypto_op_lint.facts.callsite import CallSite
from pypto_op_lint.facts.evaluator import Evaluator
from pypto_op_lint.facts.foreign import PASSES_FUNCTION_ON
from pypto_op_lint.facts.values import Cls, Func, Instance, Param, Value
from pypto_op_lint.tree import Function, Site, Tree

_MOST_ROUNDS = 3
_LOOKS_ONLY = PASSES_FUNCTION_ON | {
    f"builtins.{name}"
    for name in ("hasattr", "getattr", "setattr", "isinstance", "callable", "id", "print", "repr", "str", "type")
}
"""Calls that do not call the functions they are given."""


class CallGraph:
    """Calls between the functions of a file.

    A call counts when its callee can be followed: a name, an alias, a method, a factory's result, a partial, a
    parameter that callers in the file fill. A function handed to code that cannot be followed counts as called there.
    """

    def __init__(self, tree: Tree, evaluator: Evaluator) -> None:
        self._tree, self._ev = tree, evaluator
        self.at: dict[int, list[CallSite]] = {}  # call node -> the calls of the file's functions that it may make
        self._from: dict[int, list[CallSite]] = {}
        self._decorate()
        for _ in range(_MOST_ROUNDS):
            if not self._round():
                break

    def _decorate(self) -> None:
        """Tell the evaluator what each function of the file that is used as a decorator is given."""
        for function in self._tree.functions:
            for decorator in function.decorators:
                for made_by in self._ev.functions(decorator):
                    self._ev.decorated.setdefault(id(made_by.function), []).append(Func(function))
        self._ev.forget()

    def _round(self) -> bool:
        """Resolve every call; return whether knowing the arguments may resolve more."""
        ev, before = self._ev, sum(len(sites) for sites in self.at.values())
        self.at = {}
        self._from.clear()
        arguments: dict[int, list[CallSite]] = {}
        higher_order = False
        for site in self._tree.sites(cst.Call):
            node: cst.Call = site.node  # type: ignore[assignment]
            callees = ev.values(node.func)
            higher_order = higher_order or any(isinstance(v, Param) for v in callees)
            calls = [CallSite(site, f, "call") for v in callees for f in self._called(v)]
            if not calls and not ev.paths(node.func) & _LOOKS_ONLY and not objects.keeps_items(node):
                calls = [CallSite(site, f, "reference") for f in self._handed_on(node)]
            if calls:
                self.at[id(node)] = calls
                for call in calls:
                    arguments.setdefault(id(call.function), []).append(call)
        ev.arguments = arguments
        ev.forget()
        return higher_order and sum(len(sites) for sites in self.at.values()) != before

    def _called(self, value: Value) -> Iterable[Func]:
        """Return the functions that calling `value` runs: itself, a class's `__init__`, an object's `__call__`."""
        if isinstance(value, Func):
            return [value]
        names: tuple[str, ...]
        if isinstance(value, Cls):
            names, base = ("__init__",), Instance(value)
        elif isinstance(value, Instance):
            names, base = ("__call__", "forward"), value
        else:
            return []
        found = [v for name in names for v in self._ev.attribute(base, name)]
        return [v for v in found if isinstance(v, Func)]

    def _handed_on(self, node: cst.Call) -> Iterable[Func]:
        for arg in node.args:
            yield from self._ev.functions(arg.value)

    def calls_at(self, node: cst.CSTNode) -> list[CallSite]:
        """Return the calls of the file's functions that the call `node` may make."""
        return self.at.get(id(node), [])

    def calls_of(self, function: Function) -> list[CallSite]:
        """Return every call of `function` in the file."""
        return self._ev.arguments.get(id(function), [])

    def calls_in(self, sites: Iterable[Site]) -> list[CallSite]:
        """Return the calls of the file's functions made at `sites`."""
        # Only calls are in `at`; asking each node for its type would cost ten times the look-up.
        return [call for site in sites for call in self.at.get(id(site.node), ())]

    def calls_from(self, function: Function) -> list[CallSite]:
        """Return the calls of the file's functions written in the body of `function`."""
        kept = self._from.get(id(function))
        if kept is None:
            kept = self._from[id(function)] = self.calls_in(function.of(cst.Call))
        return kept

    def reach(self, roots: Iterable[Function], stop: Iterable[Function] = ()) -> list[Function]:
        """Return `roots` and every function they call, directly or not; calls out of `stop` are not followed."""
        halted = {id(f) for f in stop}
        found: dict[int, Function] = {}
        waiting = list(roots)
        while waiting:
            function = waiting.pop()
            if id(function) in found:
                continue
            found[id(function)] = function
            if id(function) not in halted:
                waiting.extend(call.function for call in self.calls_from(function))
        return sorted(found.values(), key=lambda f: f.site.order)
