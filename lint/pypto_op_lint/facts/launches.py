"""Which host code launches which kernel: at most how often on one path, and in which loops."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from pypto_op_lint.facts.callsite import CallSite
from pypto_op_lint.facts.values import Member
from pypto_op_lint.nodes import children
from pypto_op_lint.tree import Function, Site

if TYPE_CHECKING:
    from pypto_op_lint.facts import Facts
    from pypto_op_lint.facts.evaluator import Evaluator

MANY = 1_000_000
"""Stands for "as often as a loop runs"."""

_LOOP_NODES = (cst.For, cst.While, cst.ListComp, cst.SetComp, cst.DictComp, cst.GeneratorExp)
_CALLS_EACH = {"builtins.map", "builtins.filter", "functools.reduce", "itertools.starmap", "itertools.accumulate"}


_POOL_METHODS = {"map", "imap", "imap_unordered", "starmap", "map_async", "starmap_async"}


@dataclass(frozen=True)
class Count:
    """Least and most launches over some paths."""

    least: int
    most: int

    def then(self, other: Count) -> Count:
        """One after the other."""
        return Count(min(MANY, self.least + other.least), min(MANY, self.most + other.most))

    def either(self, other: Count | None) -> Count:
        """One or the other."""
        return self if other is None else Count(min(self.least, other.least), max(self.most, other.most))


NONE_AT_ALL = Count(0, 0)
_Paths = tuple[Count | None, Count | None]
"""Launches on paths that go on, and on paths that returned."""


@dataclass(eq=False)
class LoopedLaunch:
    """A launch that happens inside a loop of host code."""

    loop: Site  # the loop, comprehension or mapping call
    call: CallSite  # the call in it that launches
    function: Function | None  # the host function that holds the loop; None at module level


class Launches:
    """Launches of the file's kernels from its host code."""

    def __init__(self, facts: Facts) -> None:
        self._facts, self._calls = facts, facts.calls
        self._kernels = {id(kernel) for kernel in facts.kernels}
        self._counts: dict[int, Count] = {}
        self._may: dict[int, bool] = {}

    def is_launch(self, call: CallSite) -> bool:
        """Whether `call` starts a kernel from the host."""
        starts = call.via_jit or id(call.function) in self._kernels
        return starts and not self._facts.in_graph(call.site)

    def in_function(self, function: Function) -> list[CallSite]:
        """Return the launches written in the body of `function`."""
        return [call for call in self._calls.calls_from(function) if self.is_launch(call)]

    @property
    def all(self) -> list[CallSite]:
        """Every launch of the file's live code, in source order."""
        found = [c for calls in self._calls.at.values() for c in calls if self.is_launch(c)]
        return sorted(found, key=lambda c: c.site.order)

    def may_launch(self, function: Function) -> bool:
        """Whether calling `function` on the host can start a kernel."""
        key = id(function)
        if key not in self._may:
            reached = self._calls.reach([function], stop=self._facts.kernels)
            self._may[key] = any(id(f) in self._kernels for f in reached)
        return self._may[key]

    def leads_to_launch(self, call: CallSite) -> bool:
        """Whether `call` starts a kernel itself or calls a function that does."""
        return not self._facts.in_graph(call.site) and (call.via_jit or self.may_launch(call.function))

    # -- how often ------------------------------------------------------------------------------------------

    def count(self, function: Function) -> Count:
        """Return the least and most launches on the paths through `function`; MANY for a loop or recursion."""
        key = id(function)
        if key in self._counts:
            return self._counts[key]
        self._counts[key] = Count(0, MANY) if self.may_launch(function) else NONE_AT_ALL
        node = function.node
        if isinstance(node, cst.Lambda):
            total = self._expression(node.body)
        else:
            going, returned = self._block([node.body])
            total = going.either(returned) if going is not None else returned or NONE_AT_ALL
        self._counts[key] = total
        return total

    def _block(self, statements: Iterable[cst.CSTNode]) -> _Paths:
        going: Count | None = NONE_AT_ALL
        returned: Count | None = None
        for statement in statements:
            if going is None or self._facts.tree.site(statement) is None:
                break
            on, done = self._statement(statement)
            if done is not None:
                returned = going.then(done).either(returned)
            going = going.then(on) if on is not None else None
        return going, returned

    def _statement(self, node: cst.CSTNode) -> _Paths:
        if isinstance(node, (cst.IndentedBlock, cst.SimpleStatementSuite, cst.SimpleStatementLine)):
            return self._block(node.body)
        if isinstance(node, cst.If):
            branches = [self._block([node.body]) if self._facts.tree.site(node.body) else _NEVER]
            if node.orelse is not None and self._facts.tree.site(node.orelse) is not None:
                orelse = node.orelse
                inner = self._statement(orelse) if isinstance(orelse, cst.If) else self._block([orelse.body])
                branches.append(inner)
            elif self._facts.tree.site(node.body) is not None:
                branches.append((NONE_AT_ALL, None))
            return _after(self._expression(node.test), _join(self._without_empty(node.test, branches)))
        if isinstance(node, (cst.For, cst.While)):
            return self._loop(node)
        if isinstance(node, (cst.Try, cst.TryStar)):
            return self._try(node)
        if isinstance(node, cst.With):
            entered = self._expressions([item.item for item in node.items])
            body = self._block([node.body])
            if any(self._suppresses(item.item) for item in node.items):
                started = Count(0, max((c.most for c in body if c is not None), default=0))
                body = _join([body, (started, None)])
            return _after(entered, body)
        if isinstance(node, cst.Match):
            cases = [self._block([case.body]) for case in node.cases]
            rest = [] if node.cases and _takes_all(node.cases[-1]) else [(NONE_AT_ALL, None)]
            return _after(self._expression(node.subject), _join([*cases, *rest]))
        if isinstance(node, (cst.FunctionDef, cst.ClassDef)):
            return NONE_AT_ALL, None
        if isinstance(node, cst.Return):
            return None, self._expression(node.value) if node.value is not None else NONE_AT_ALL
        if isinstance(node, cst.Raise):
            return _NEVER
        return self._expression(node), None

    def _without_empty(self, test: cst.BaseExpression, branches: list[_Paths]) -> list[_Paths]:
        """Drop the branch that launches nothing when the test asks whether there is anything to compute."""
        if not _asks_for_emptiness(test, self._facts.ev):
            return branches
        launching = [b for b in branches if any(count is not None and count.most for count in b)]
        going_on = [b for b in branches if b[0] is not None]
        return launching or going_on or branches

    def _suppresses(self, node: cst.BaseExpression) -> bool:
        return isinstance(node, cst.Call) and "contextlib.suppress" in self._facts.callee_names(node)

    def _loop(self, node: cst.For | cst.While) -> _Paths:
        on, done = self._block([node.body])
        once = self._expression(node.iter if isinstance(node, cst.For) else node.test)
        most = max((c.most for c in (on, done) if c is not None), default=0)
        repeated = Count(0, MANY if most else 0)
        tail = self._block([node.orelse.body]) if node.orelse is not None else (NONE_AT_ALL, None)
        returned = _join([(None, repeated if done is not None else None), tail])[1]
        going = repeated.then(tail[0]) if tail[0] is not None else None
        return _after(once, (going, returned))

    def _try(self, node: cst.Try | cst.TryStar) -> _Paths:
        body = self._block([node.body])
        if node.orelse is not None and body[0] is not None:
            tail = self._block([node.orelse.body])
            body = _join([(body[0].then(tail[0]) if tail[0] else None, tail[1]), (None, body[1])])
        started = Count(0, max((c.most for c in body if c is not None), default=0))
        handlers = [_after(started, self._block([handler.body])) for handler in node.handlers]
        paths = _join([body, *handlers])
        if node.finalbody is not None:
            last = self._block([node.finalbody.body])[0] or NONE_AT_ALL
            paths = (paths[0].then(last) if paths[0] else None, paths[1].then(last) if paths[1] else None)
        return paths

    # -- expressions ----------------------------------------------------------------------------------------

    def _expressions(self, nodes: Sequence[cst.CSTNode]) -> Count:
        total = NONE_AT_ALL
        for node in nodes:
            total = total.then(self._expression(node))
        return total

    def _expression(self, node: cst.CSTNode) -> Count:
        if type(node) is cst.IfExp:
            ways = [self._expression(node.body), self._expression(node.orelse)]
            if _asks_for_emptiness(node.test, self._facts.ev):
                ways = [way for way in ways if way.most] or ways
            return self._expression(node.test).then(ways[0].either(ways[-1]))
        if type(node) is cst.BooleanOperation:
            return self._expression(node.left).then(NONE_AT_ALL.either(self._expression(node.right)))
        if type(node) is cst.Lambda:
            return NONE_AT_ALL
        inside = self._expressions(children(node))
        if type(node) in (cst.ListComp, cst.SetComp, cst.DictComp, cst.GeneratorExp):
            return Count(0, MANY) if inside.most else NONE_AT_ALL
        return inside.then(self._call(node)) if type(node) is cst.Call else inside

    def _call(self, node: cst.Call) -> Count:
        options: list[Count] = []
        for call in self._calls.calls_at(node):
            if not self.leads_to_launch(call):
                options.append(NONE_AT_ALL)
            elif call.kind == "reference":
                options.append(Count(0, MANY) if self._calls_each(node) else Count(1, 1))
            else:
                options.append(Count(1, 1) if self.is_launch(call) else self.count(call.function))
        if not options:
            return NONE_AT_ALL
        return Count(min(o.least for o in options), max(o.most for o in options))

    def _calls_each(self, node: cst.Call) -> bool:
        """Whether a call runs a function that it is given once an item: `map(f, items)`, `pool.imap(f, items)`."""
        if self._facts.callee_names(node) & _CALLS_EACH:
            return True
        return isinstance(node.func, cst.Attribute) and node.func.attr.value in _POOL_METHODS

    # -- loops ----------------------------------------------------------------------------------------------

    def looped(self, functions: Iterable[Function]) -> list[LoopedLaunch]:
        """Return the launches that loops, comprehensions, `map` or recursion in `functions` repeat."""
        found: list[LoopedLaunch] = []
        for function in functions:
            for call in self._calls.calls_from(function):
                if not self.leads_to_launch(call):
                    continue
                loop = self._loop_around(call.site, function)
                if loop is not None:
                    found.append(LoopedLaunch(loop, call, function))
                elif (
                    call.kind == "reference"
                    and self._calls_each(call.call)
                    or not self.is_launch(call)
                    and self._recurses(call.function, function)
                ):
                    found.append(LoopedLaunch(call.site, call, function))
        return found

    def _loop_around(self, site: Site, function: Function) -> Site | None:
        inner = site
        for around in site.ancestors():
            if around is function.site:
                return None
            if isinstance(around.node, _LOOP_NODES) and inner.role not in ("iter", "orelse"):
                return around
            inner = around
        return None

    def _recurses(self, called: Function, caller: Function) -> bool:
        return any(f is caller for f in self._calls.reach([called], stop=self._facts.kernels))


_NEVER: _Paths = (None, None)


def _takes_all(case: cst.MatchCase) -> bool:
    """`case _:`, `case other:`."""
    return case.guard is None and isinstance(case.pattern, cst.MatchAs) and case.pattern.pattern is None


def _asks_for_emptiness(test: cst.BaseExpression, ev: Evaluator) -> bool:
    """`x.numel() == 0`, `rows > 0`, `not x.numel()`, `x.numel()`, `not rows`, also joined by `or` and `and`."""
    if isinstance(test, cst.BooleanOperation):
        return _asks_for_emptiness(test.left, ev) and _asks_for_emptiness(test.right, ev)
    if isinstance(test, cst.UnaryOperation):
        return isinstance(test.operator, cst.Not) and _asks_for_emptiness(test.expression, ev)
    if isinstance(test, cst.Comparison) and len(test.comparisons) == 1:
        left, operator, right = test.left, test.comparisons[0].operator, test.comparisons[0].comparator
        if any(isinstance(side, cst.Integer) and side.value == "0" for side in (left, right)):
            return True  # `0 in x.shape` too
        if isinstance(left, cst.Integer) and left.value == "1":
            return isinstance(operator, (cst.GreaterThan, cst.LessThanEqual))
        below_one = isinstance(operator, (cst.LessThan, cst.GreaterThanEqual))
        return below_one and isinstance(right, cst.Integer) and right.value == "1"
    if isinstance(test, cst.Call) and isinstance(test.func, cst.Attribute):
        return test.func.attr.value in ("numel", "nelement", "size")
    return all(isinstance(v, Member) and isinstance(v.base, Member) and v.base.name == "shape" for v in ev.values(test))


def _join(branches: Sequence[_Paths]) -> _Paths:
    going: Count | None = None
    returned: Count | None = None
    for on, done in branches:
        going = on.either(going) if on is not None else going
        returned = done.either(returned) if done is not None else returned
    return going, returned


def _after(first: Count, paths: _Paths) -> _Paths:
    return (first.then(paths[0]) if paths[0] is not None else None, first.then(paths[1]) if paths[1] is not None else None)
