"""Statements: executed in order, both sides of a condition that is not known, nothing after a return."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from pypto_op.triton.static import emptiness
from pypto_op.triton.static.assigning import Assignments
from pypto_op.triton.static.machine import Recursion, join
from pypto_op.triton.static.source import SourceFile, nodes_in
from pypto_op.triton.static.values import ClassValue, Container, Ext, Function, Host, Scope, Unknown, Value, options, union

_TRY = (cst.Try, cst.TryStar)
_MOST_TURNS = 8
_UNSEEN = frozenset(
    {"__init_subclass__", "__set_name__", "__getattribute__", "__set__", "__delete__", "__class_getitem__", "__prepare__",
     "__instancecheck__", "__subclasscheck__", "__mro_entries__", "__reduce__", "__reduce_ex__", "__getstate__", "__setstate__",
     "__array_interface__", "__array_struct__", "__buffer__"}
)  # fmt: skip
"""Special methods of a class of the file that change what plain code means, or that libraries call out of sight."""


class Statements(Assignments):
    """Executes statements; `block` says whether the end of the block is reached."""

    def module(self, source: SourceFile) -> Scope:
        """Execute a file's top level and return its names."""
        key = source.path.resolve()
        if key in self.m.modules:
            return self.m.modules[key]
        scope = Scope({"__name__": Host("analysed"), "__file__": Host()}, None, source)
        self.m.modules[key] = scope
        self.block(source.module.body, scope)
        return scope

    def block(self, statements: Sequence[cst.CSTNode], scope: Scope) -> bool:
        """Execute statements until one ends the block; return whether its end is reached."""
        for statement in statements:
            self.m.step()
            self.m.executes(statement, scope.source)
            if not self._goes_on(statement, scope):
                return False
        return True

    def _goes_on(self, statement: cst.CSTNode, scope: Scope) -> bool:
        """Execute one statement, or the statements of one line; return whether what follows is reached."""
        try:
            if isinstance(statement, (cst.SimpleStatementLine, cst.SimpleStatementSuite)):
                return all(self._small(small, scope) for small in statement.body)
            return self._compound(statement, scope)
        except Recursion:
            if self.m.frames:
                self.m.frames[-1].recurs = True
            return not self.m.frames  # a file's own lines go on: what this one binds stays unknown

    def body(self, suite: cst.BaseSuite, scope: Scope) -> bool:
        """Execute the body of a compound statement."""
        if isinstance(suite, cst.SimpleStatementSuite):
            self.m.executes(suite.body[0], scope.source)
            return self._goes_on(suite, scope)
        return self.block(suite.body, scope)

    def _small(self, node: cst.CSTNode, scope: Scope) -> bool:
        evaluate = self.m.expressions.evaluate
        if isinstance(node, cst.Expr):
            evaluate(node.value, scope)
        elif isinstance(node, cst.Assign):
            value = evaluate(node.value, scope)
            for target in node.targets:
                self.assign(target.target, value, scope)
        elif isinstance(node, cst.AnnAssign):
            if scope.is_class and isinstance(node.target, cst.Name) and not _is_class_variable(node.annotation.annotation):
                scope.fields.append(node.target.value)
            evaluate(node.annotation.annotation, scope)
            if node.value is not None:
                self.assign(node.target, evaluate(node.value, scope), scope)
        elif isinstance(node, cst.AugAssign):
            left, right = evaluate(node.target, scope), evaluate(node.value, scope)
            self._extend(node, left, right, scope)
            value = self.m.expressions.combine(node, scope.source, left, right, type(node.operator).__name__)
            if isinstance(left, Container) and left.kind != "tuple":
                value = left
            self.assign(node.target, value, scope)
        elif isinstance(node, cst.Return):
            self._return(node, scope)
            return False
        elif isinstance(node, cst.Raise):
            for part in (node.exc, node.cause.item if node.cause is not None else None):
                if part is not None:
                    evaluate(part, scope)
            return False
        elif isinstance(node, (cst.Break, cst.Continue)):
            return False
        else:
            self._rare(node, scope)
        return True

    def _rare(self, node: cst.CSTNode, scope: Scope) -> None:
        if isinstance(node, cst.Import):
            for alias in node.names:
                self.m.imports.plain(alias, scope)
        elif isinstance(node, cst.ImportFrom):
            self.m.imports.chosen(node, scope)
        elif isinstance(node, (cst.Global, cst.Nonlocal)):
            scope.outer |= {item.name.value for item in node.names}
        elif isinstance(node, cst.Assert):
            self.m.expressions.evaluate(node.test, scope)
            if node.msg is not None:
                self.m.expressions.evaluate(node.msg, scope)
        elif isinstance(node, cst.Del):
            self._delete(node.target, scope)

    def _delete(self, target: cst.BaseExpression, scope: Scope) -> None:
        if isinstance(target, (cst.Tuple, cst.List)):
            for element in target.elements:
                self._delete(element.value, scope)
        elif isinstance(target, cst.Name):
            scope.names.pop(target.value, None)
        else:
            self.m.expressions.evaluate(target, scope)
            if isinstance(target, cst.Subscript):
                for option in options(self.m.expressions.evaluate(target.value, scope)):
                    if isinstance(option, Container):
                        self.m.tables.method(option, "__delitem__", [], {}, target, scope.source)

    def _extend(self, node: cst.AugAssign, left: Value, right: Value, scope: Scope) -> None:
        """`+=` and `|=` change a list, dict or set itself, whatever other names it has."""
        for option in options(left):
            if isinstance(option, Container) and option.kind != "tuple":
                self.m.tables.method(option, "__ior__" if option.kind == "dict" else "__iadd__", [right], {}, node, scope.source)

    def _return(self, node: cst.Return, scope: Scope) -> None:
        value = Host(None) if node.value is None else self.m.expressions.evaluate(node.value, scope)
        if self.m.frames:
            frame = self.m.frames[-1]
            value = emptiness.written(self.m, value) if self.m.empty and self.m.phase == "forward" else value
            frame.returns.append((value, dict(self.m.heap), node, self.m.branches > 0))

    def _compound(self, node: cst.CSTNode, scope: Scope) -> bool:
        if isinstance(node, cst.FunctionDef):
            self.assign(node.name, self.m.calls.define(node, scope), scope)
        elif isinstance(node, cst.ClassDef):
            self.assign(node.name, self._class(node, scope), scope)
        elif isinstance(node, cst.If):
            return self._if(node, scope)
        elif isinstance(node, cst.For):
            return self._for(node, scope)
        elif isinstance(node, cst.While):
            return self._while(node, scope)
        elif isinstance(node, cst.With):
            for item in node.items:
                value = self.m.calls.entered(self.m.expressions.evaluate(item.item, scope), item, scope.source)
                if item.asname is not None:
                    self.assign(item.asname.name, value, scope)
            return self.body(node.body, scope)
        elif isinstance(node, _TRY):
            return self._try(node, scope)
        elif isinstance(node, cst.Match):
            self.m.expressions.evaluate(node.subject, scope)
            for case in node.cases:
                self._pattern(case, scope)
            return self._branches([(case.body, ()) for case in node.cases] + [(None, ())], scope)
        return True

    def _pattern(self, case: cst.MatchCase, scope: Scope) -> None:
        """Evaluate a case's values and guard; what it captures is not known."""
        for part in nodes_in(case.pattern, cst.MatchValue, cst.MatchClass):
            self.m.expressions.evaluate(part.value if isinstance(part, cst.MatchValue) else part.cls, scope)
        for part in nodes_in(case.pattern, cst.MatchAs, cst.MatchStar, cst.MatchMapping):
            name = part.rest if isinstance(part, cst.MatchMapping) else part.name
            if isinstance(name, cst.Name):
                scope.names[name.value] = union([scope.names.get(name.value, Unknown("")), Unknown("what a pattern captures")])
        if case.guard is not None:
            with self.m.around(branches=1):
                self.m.expressions.evaluate(case.guard, scope)

    # -- conditions and loops ------------------------------------------------------------------------------------------

    def _if(self, node: cst.If, scope: Scope) -> bool:
        self.m.executes(node, scope.source)
        test = self.m.expressions.evaluate(node.test, scope)
        truth, other = self.m.expressions.truth(test), node.orelse
        if truth is True:
            return self.body(node.body, scope)
        if truth is False:
            return self._orelse(other, scope)
        return self._branches([(node.body, ()), (other, ())], scope, empty=emptiness.shown(test))

    def _orelse(self, node: cst.If | cst.Else | cst.BaseSuite | cst.Finally | None, scope: Scope) -> bool:
        if node is None:
            return True
        if isinstance(node, cst.If):
            return self._if(node, scope)
        return self.body(node if isinstance(node, cst.BaseSuite) else node.body, scope)

    def _branches(
        self, branches: Sequence[tuple[cst.If | cst.Else | cst.BaseSuite | None, object]], scope: Scope, *, empty: bool = False
    ) -> bool:
        """Execute alternatives from the same state and join what those leave that reach their end.

        Args:
            empty: the first one runs only where a tensor has no element.
        """
        names, heap = dict(scope.names), dict(self.m.heap)
        ends: list[tuple[dict[str, Value], dict[object, int]]] = []
        for position, (branch, _) in enumerate(branches):
            scope.names.clear()
            scope.names.update(names)
            self.m.heap = dict(heap)
            with self.m.around(branches=1, empty=int(empty and not position)):
                if self._orelse(branch, scope):
                    ends.append((dict(scope.names), self.m.heap))  # type: ignore[arg-type]
        scope.names.clear()
        scope.names.update(names)
        if not ends:
            return False
        merged_heap = ends[0][1]
        for _, other in ends[1:]:
            merged_heap = join(merged_heap, other)  # type: ignore[arg-type, assignment]
        self.m.heap = merged_heap  # type: ignore[assignment]
        for name in {name for end, _ in ends for name in end}:
            scope.names[name] = union([end[name] for end, _ in ends if name in end])
        return True

    def _for(self, node: cst.For, scope: Scope) -> bool:
        iterated = self.m.expressions.evaluate(node.iter, scope)
        item = self.m.expressions.item_of(iterated)
        self._deny_loop(node, scope)
        if isinstance(iterated, Container) and iterated.complete and not iterated.members():
            return self._orelse(node.orelse, scope)
        self._repeat(node.body, scope, lambda: self.assign(node.target, item, scope))
        return self._orelse(node.orelse, scope)

    def _while(self, node: cst.While, scope: Scope) -> bool:
        truth = self.m.expressions.truth(self.m.expressions.evaluate(node.test, scope))
        if truth is False:
            return self._orelse(node.orelse, scope)
        self._deny_loop(node, scope)
        self._repeat(node.body, scope, lambda: self.m.expressions.evaluate(node.test, scope))
        return self._orelse(node.orelse, scope)

    def _deny_loop(self, node: cst.For | cst.While, scope: Scope) -> None:
        if self.m.phase == "forward" and not self.m.policy.allows("loops"):
            head = node.iter if isinstance(node, cst.For) else node.test
            self.m.deny(head, scope.source, "the policy allows no loop in forward")

    def _repeat(self, suite: cst.BaseSuite, scope: Scope, before: object) -> None:
        """Execute a loop's body twice, and again while names get further functions: each pass starts where one ended.

        It may also not run at all, unless it launches kernels where the policy allows that: a model's layers, a series' steps.
        """
        names, heap, launches = dict(scope.names), dict(self.m.heap), len(self.m.launches)
        known: set[tuple[str, object]] = set()
        for turn in range(_MOST_TURNS):
            with self.m.around(loops=1, branches=1):
                before()  # type: ignore[operator]
                self.body(suite, scope)
            found = _callables(scope)
            if turn and found <= known:
                break
            known |= found
            if len(self.m.launches) > launches and self.m.policy.allows("in_loops"):
                continue
            for name, value in names.items():
                scope.names[name] = union([value, scope.names.get(name, value)])
            self.m.heap = join(heap, self.m.heap)

    def _try(self, node: cst.Try | cst.TryStar, scope: Scope) -> bool:
        fallback = self.m.imports.fallback(node, scope.source) if self.m.phase == "import" else None
        if fallback is not None:
            if fallback.name is not None:
                self.assign(fallback.name.name, Unknown("an exception"), scope)
            reached = self.body(fallback.body, scope)
            return self._orelse(node.finalbody, scope) and reached
        names, heap = dict(scope.names), dict(self.m.heap)
        meanwhile: dict[str, list[Value]] = {}
        self._tries.append((scope, meanwhile))
        reached = self.body(node.body, scope)
        self._tries.pop()
        if reached and node.orelse is not None:
            reached = self._orelse(node.orelse, scope)
        after_names, after_heap = dict(scope.names), self.m.heap
        for handler in node.handlers:
            for name in {**names, **meanwhile}:  # an exception may come after any of its statements
                told = [one[name] for one in (names, after_names) if name in one]
                scope.names[name] = union([*told, *meanwhile.get(name, ())])
            self.m.heap = dict(heap)
            if handler.type is not None:
                self.m.expressions.evaluate(handler.type, scope)
            if handler.name is not None:
                self.assign(handler.name.name, Unknown("an exception"), scope)
            with self.m.around(dead=1, branches=1):
                handled = self.body(handler.body, scope)
            if handled and not reached:
                reached, after_names, after_heap = True, dict(scope.names), self.m.heap
            elif handled:
                for name, value in scope.names.items():
                    after_names[name] = union([after_names.get(name, value), value])
        scope.names.update(after_names)
        self.m.heap = after_heap
        if node.finalbody is not None:
            return self._orelse(node.finalbody, scope) and reached
        return reached

    # -- classes and imports -------------------------------------------------------------------------------------------

    def _class(self, node: cst.ClassDef, scope: Scope) -> Value:
        bases: list[Value] = []
        for argument in node.bases:
            bases += options(self.m.expressions.evaluate(argument.value, scope))
        for keyword in node.keywords:
            made_by = self.m.expressions.evaluate(keyword.value, scope)
            if not (isinstance(made_by, Ext) and self.m.policy.computes_on_host(made_by.name)):
                self.m.deny(keyword, scope.source, "a metaclass or class argument runs code that the class does not show")
        inner = Scope({}, scope, scope.source, is_class=True)
        value = ClassValue(node.name.value, bases, inner.names, scope, inner.fields)
        self.body(node.body, inner)
        for name in sorted(_UNSEEN & inner.names.keys()):
            call = f"{node.name.value}.{name}"
            self.m.deny(node.name, scope.source, f"`{name}` runs where no call of it is written", call=call)
        for function in inner.names.values():
            if isinstance(function, Function) and function.owner is None:
                function.owner = value
        result: Value = value
        for decorator in reversed(node.decorators):
            result = self.m.calls.decorate(
                self.m.expressions.evaluate(decorator.decorator, scope), result, decorator, scope.source
            )
        return result


def _callables(scope: Scope) -> set[tuple[str, object]]:
    """Return which functions, classes and names of libraries each name may stand for."""
    found: set[tuple[str, object]] = set()
    for name, value in scope.names.items():
        for option in options(value):
            if isinstance(option, Ext):
                found.add((name, option.name))
            elif isinstance(option, Function):
                found.add((name, id(option.node)))
            elif isinstance(option, ClassValue):
                found.add((name, id(option)))
    return found


def _is_class_variable(annotation: cst.BaseExpression) -> bool:
    named = annotation.value if isinstance(annotation, cst.Subscript) else annotation
    return (named.attr if isinstance(named, cst.Attribute) else named).deep_equals(cst.Name("ClassVar"))
