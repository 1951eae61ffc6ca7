"""Abstract evaluation: what an expression may be, through names, imports, arithmetic, classes, factories and closures.

Nothing is executed. A name with several bindings stands for all that can reach its use; what cannot be followed is `UNKNOWN`.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable

import libcst as cst

from pypto_op_lint import constants
from pypto_op_lint.facts import arithmetic, foreign, objects
from pypto_op_lint.facts.callsite import CallSite
from pypto_op_lint.facts.flow import visible
from pypto_op_lint.facts.values import (
    ANY,
    NOTHING_KNOWN,
    UNKNOWN,
    Cls,
    Const,
    Func,
    Instance,
    Member,
    Param,
    Path,
    Result,
    Seq,
    Table,
    Value,
)
from pypto_op_lint.tree import Binding, Function, Parameter, Scope, Site, Tree

_MOST_VALUES = 24
_MOST_DEPTH = 60
_DATA = frozenset({
    cst.Integer, cst.Float, cst.SimpleString, cst.ConcatenatedString, cst.FormattedString, cst.List, cst.Tuple, cst.Set,
    cst.Dict, cst.ListComp, cst.SetComp, cst.DictComp, cst.GeneratorExp, cst.BinaryOperation, cst.UnaryOperation,
    cst.Comparison,
})  # fmt: skip
"""Expressions that are never a function or a foreign name, so that nobody evaluates them to learn that."""
_TAKEN_AS_IMPORTED = {"pypto", "torch", "torch_npu"}
"""Code blocks of a document do not repeat their imports."""
Values = tuple[Value, ...]


class Evaluator:
    """Evaluates expressions of one tree; results are kept.

    `arguments` is filled in by the call graph: for each function, where it is called from; `decorated`: what it
    decorates; `ops` by `custom_ops`. Of an open function, a kernel,
    the arguments are values of the run and stay unknown even when the file passes constants. An exported one, a wrapper,
    has callers outside the file: what the file itself passes is not all.
    """

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.arguments: dict[int, list[CallSite]] = {}
        self.decorated: dict[int, list[Func]] = {}
        self.open_functions: set[int] = set()
        self.exported_functions: set[int] = set()
        self._kept: dict[int, Values] = {}
        self._running: set[int] = set()
        self._returns: dict[int, Values] = {}
        self._unsettled: set[int] = set()
        self._asked_parameters = 0
        self._depth = 0
        self.ops: dict[str, list[Func]] | None = None
        self.attribute_stores = objects.attribute_stores(tree)
        self.changed_containers = objects.changed_containers(tree)

    def forget(self) -> None:
        """Drop what depends on a parameter, because more is known about arguments now."""
        for key in self._unsettled:
            self._kept.pop(key, None)
        self._unsettled.clear()
        self._returns.clear()
        self.ops = None

    def values(self, node: cst.CSTNode | None) -> Values:
        """Return everything `node` may stand for; never empty."""
        if node is None:
            return NOTHING_KNOWN
        key = id(node)
        kept = self._kept.get(key)
        if kept is not None:
            self._asked_parameters += key in self._unsettled
            return kept
        if key in self._running or self._depth > _MOST_DEPTH:
            self._asked_parameters += 1
            return NOTHING_KNOWN
        asked = self._asked_parameters
        self._running.add(key)
        self._depth += 1
        try:
            handler = _HANDLERS.get(type(node))
            found = _distinct(handler(self, node)) if handler else NOTHING_KNOWN
        finally:
            self._running.discard(key)
            self._depth -= 1
        self._kept[key] = found
        if self._asked_parameters != asked:
            self._unsettled.add(key)
        return found

    def paths(self, node: cst.CSTNode | None) -> set[str]:
        """Return the foreign dotted names that `node` may stand for."""
        return set() if node.__class__ in _DATA else {v.name for v in self.values(node) if v.__class__ is Path}

    def functions(self, node: cst.CSTNode | None) -> list[Func]:
        """Return the functions of the file that `node` may stand for."""
        return [] if node.__class__ in _DATA else [v for v in self.values(node) if v.__class__ is Func]

    def constant(self, node: cst.CSTNode | None) -> Const | None:
        """Return the one constant that `node` stands for; None when it is not known or not the same everywhere."""
        found = self.values(node)
        return found[0] if len(found) == 1 and isinstance(found[0], Const) else None

    # -- names ----------------------------------------------------------------------------------------------

    def _name(self, node: cst.Name) -> Iterable[Value]:
        if node.value in constants.NAMED:
            return (Const.of(constants.NAMED[node.value]),)
        site = self.tree.site(node)
        return self.named(node.value, site.scope, site) if site is not None else NOTHING_KNOWN

    def named(self, name: str, scope: Scope, use: Site | None) -> Values:
        """Return what `name` may stand for at `use` in `scope`."""
        found = scope.lookup(name)
        if found is None:
            stars = self.tree.module.bindings.get("*", [])
            if hasattr(builtins, name):
                return (Path(f"builtins.{name}"),)
            if name in _TAKEN_AS_IMPORTED and not stars:
                return (Path(name),)
            return tuple(Path.of(f"{star.target}.{name}") for star in stars) or NOTHING_KNOWN
        home, bindings = found
        if use is not None:
            bindings = visible(home, bindings, use)
        values = [value for binding in bindings for value in self.bound(binding, home)]
        if name in self.changed_containers and self._is_changed(name, home):
            values = [objects.changed(self, v, name) for v in values]
        return _distinct(values) if values else NOTHING_KNOWN

    def _is_changed(self, name: str, home: Scope) -> bool:
        """Whether the file stores into the container that `name` stands for, or calls a method that changes it."""
        changes = (c.scope.lookup(name) for c in self.changed_containers[name] if isinstance(c.owner, cst.Name))
        return any(found is not None and found[0] is home for found in changes)

    def bound(self, binding: Binding, home: Scope) -> Iterable[Value]:
        """Return what one binding binds."""
        if binding.kind == "import":
            return (Path.of(binding.target),)
        if binding.kind == "function" and binding.function is not None:
            return self._definition(binding.function)
        if binding.kind == "class":
            return self._class_value(binding.site)
        if binding.kind == "parameter":
            return self._parameter_binding(binding, home)
        if binding.kind == "assign":
            return self._unpacked(self.values(binding.value), binding.path)
        if binding.kind == "loop":
            items = [v for value in self.values(binding.value) for v in self.items_of(value)]
            return self._unpacked(_distinct(items), binding.path) if items else NOTHING_KNOWN
        if binding.kind == "annotation":
            return ()
        return NOTHING_KNOWN

    def _parameter_binding(self, binding: Binding, home: Scope) -> Iterable[Value]:
        if home.function is None or not isinstance(binding.value, cst.Param):
            return NOTHING_KNOWN
        parameter = home.function.parameter(binding.value.name.value)
        return self.parameter_values(home.function, parameter) if parameter else NOTHING_KNOWN

    def _class_value(self, site: Site) -> Iterable[Value]:
        assert isinstance(site.node, cst.ClassDef)
        scope = next((s for s in self.tree.scopes if s.site is site), None)
        return (Cls(site.node, scope),) if scope is not None else NOTHING_KNOWN

    def _definition(self, function: Function) -> Iterable[Value]:
        """A decorated name is the function, and also what a decorator of this file made of it."""
        found: list[Value] = [Func(function)]
        for decorator in function.decorators:
            for value in self.values(decorator):
                if isinstance(value, Func):
                    found.extend(v for v in self.returned(value.function) if isinstance(v, Func))
        return found

    def _unpacked(self, values: Values, path: tuple[int | str, ...]) -> Values:
        for step in path:
            inner: list[Value] = []
            for value in values:
                items = value.items if isinstance(value, Seq) else None
                if items is not None and isinstance(step, int) and -len(items) <= step < len(items):
                    inner.extend(items[step])
                else:
                    inner.append(Member(value, "[]"))
            values = _distinct(inner)
        return values

    def items_of(self, value: Value) -> Iterable[Value]:
        """Return what iterating over `value` may give."""
        if isinstance(value, Seq):
            return [v for item in value.items for v in item]
        if isinstance(value, Table):
            return [objects.key_value(key) for key in value.entries]
        if isinstance(value, Result):
            numbers = arithmetic.range_numbers(value, self)
            if numbers is not None:
                return [Const.of(number) for number in numbers[:_MOST_VALUES]]
        return (Member(value, "[]"),)

    # -- parameters -----------------------------------------------------------------------------------------

    def parameter_values(self, function: Function, parameter: Parameter) -> Values:
        """Return what the callers in this file pass for `parameter`; the parameter itself where that is not all."""
        self._asked_parameters += 1
        if id(function) in self.open_functions:
            return (Param(function, parameter),)
        sites = self.arguments.get(id(function), [])
        found: list[Value] = list(self.decorated.get(id(function), ())) if parameter.index == 0 else []
        if not sites and not found:
            found.append(self._implied(function, parameter))
        for site in sites:
            argument = site.argument(parameter)
            if argument is not None:
                found.extend(self.values(argument))
            elif parameter.node.default is not None and not site.hides(parameter):
                found.extend(self.values(parameter.node.default))
            elif parameter.kind == "args" and not site.hides(parameter):
                rest = site.rest(parameter)
                found.append(Seq("tuple", tuple(self.values(node) for node in rest)))
            else:
                found.append(self._implied(function, parameter))
        if id(function) in self.exported_functions and not all(isinstance(v, (Func, Cls)) for v in found):
            found.append(Param(function, parameter))
        return _distinct(found)

    def _implied(self, function: Function, parameter: Parameter) -> Value:
        """`self` of a method is an instance of its class; anything else is only a parameter."""
        scope = function.site.scope
        if parameter.index == 0 and scope.kind == "class" and scope.site is not None:
            assert isinstance(scope.site.node, cst.ClassDef)
            decorators = {path for d in function.decorators for path in self.paths(d)}
            if "builtins.classmethod" in decorators:
                return Cls(scope.site.node, scope)
            if "builtins.staticmethod" not in decorators:
                return Instance(Cls(scope.site.node, scope))
        return Param(function, parameter)

    # -- calls ----------------------------------------------------------------------------------------------

    def returned(self, function: Function) -> Values:
        """Return what calling `function` may give."""
        key = id(function)
        self._asked_parameters += 1
        if key in self._returns:
            return self._returns[key]
        self._returns[key] = NOTHING_KNOWN
        node = function.node
        if isinstance(node, cst.Lambda):
            found = self.values(node.body)
        elif function.of(cst.Yield):
            found = NOTHING_KNOWN
        else:
            found = _distinct(v for result in function.returned if result is not None for v in self.values(result))
            found = found or (Const.of(None),)
        if self._depth < _MOST_DEPTH:
            self._returns[key] = found
        return found

    def _call(self, node: cst.Call) -> Iterable[Value]:
        known = tuple(arithmetic.method_call(self, node))
        if known:
            return known
        found: list[Value] = []
        for callee in self.values(node.func):
            found.extend(self._called(callee, node))
        return [*found, *objects.taken(self, node)]

    def _called(self, callee: Value, node: cst.Call) -> Iterable[Value]:
        if isinstance(callee, Func):
            return NOTHING_KNOWN if callee.via_jit else self.returned(callee.function)
        if isinstance(callee, Cls):
            return objects.named_tuple(self, callee, node) or (Instance(callee, node),)
        if isinstance(callee, Instance):
            # torch.nn.Module's own `__call__` runs `forward`.
            method = [m for name in ("__call__", "forward") for m in objects.attribute(self, callee, name)]
            return [v for m in method if isinstance(m, Func) for v in self.returned(m.function)] or NOTHING_KNOWN
        if isinstance(callee, Path):
            return foreign.called(self, callee.name, node)
        if isinstance(callee, Result):
            return foreign.made_by_call(self, callee, node)
        return NOTHING_KNOWN

    # -- the rest -------------------------------------------------------------------------------------------

    def attribute(self, base: Value, name: str) -> Iterable[Value]:
        """Return what `base.name` may be."""
        return objects.attribute(self, base, name)

    def _attribute(self, node: cst.Attribute) -> Iterable[Value]:
        return [v for base in self.values(node.value) for v in self.attribute(base, node.attr.value)]

    def _subscript(self, node: cst.Subscript) -> Iterable[Value]:
        return objects.subscript(self, node)

    def _sequence(self, node: cst.List | cst.Tuple | cst.Set) -> Iterable[Value]:
        items: list[Values] = []
        for element in node.elements:
            if isinstance(element, cst.StarredElement):
                spread = self.values(element.value)
                if len(spread) == 1 and isinstance(spread[0], Seq):
                    items.extend(spread[0].items)
                else:
                    return (Member(UNKNOWN, "[*]"),)
            else:
                items.append(self.values(element.value))
        return (Seq(type(node).__name__.lower(), tuple(items)),)

    def _dict(self, node: cst.Dict) -> Iterable[Value]:
        entries: dict[object, Values] = {}
        for element in node.elements:
            if not isinstance(element, cst.DictElement):
                return NOTHING_KNOWN
            key = objects.table_key(self, element.key)
            entries[key] = (*entries.get(key, ()), *self.values(element.value)) if key is ANY else self.values(element.value)
        return (Table(entries),)

    def _dict_comprehension(self, node: cst.DictComp) -> Iterable[Value]:
        return (Table({ANY: self.values(node.value)}),)

    def _if_expression(self, node: cst.IfExp) -> Iterable[Value]:
        test = self.constant(node.test)
        if test is not None:
            return self.values(node.body if test.value else node.orelse)
        return (*self.values(node.body), *self.values(node.orelse))

    def _boolean(self, node: cst.BooleanOperation) -> Iterable[Value]:
        left = self.constant(node.left)
        if left is not None:
            takes_right = bool(left.value) == isinstance(node.operator, cst.And)
            return self.values(node.right) if takes_right else (left,)
        return (*self.values(node.left), *self.values(node.right))

    def _lambda(self, node: cst.Lambda) -> Iterable[Value]:
        function = next((f for f in self.tree.functions if f.node is node), None)
        return (Func(function),) if function is not None else NOTHING_KNOWN

    def _inner_value(self, node: cst.NamedExpr | cst.Await) -> Iterable[Value]:
        return self.values(node.value if isinstance(node, cst.NamedExpr) else node.expression)

    def _comprehension(self, node: cst.ListComp | cst.SetComp | cst.GeneratorExp) -> Iterable[Value]:
        return arithmetic.comprehension(self, node)


def _distinct(values: Iterable[Value]) -> Values:
    found = tuple(values)
    if len(found) < 2:
        return found
    found = tuple(dict.fromkeys(found))
    return found if len(found) <= _MOST_VALUES else (*found[:_MOST_VALUES], UNKNOWN)


_HANDLERS: dict[type, Callable[..., Iterable[Value]]] = {
    cst.Name: Evaluator._name,
    cst.Attribute: Evaluator._attribute,
    cst.Call: Evaluator._call,
    cst.Subscript: Evaluator._subscript,
    cst.List: Evaluator._sequence,
    cst.Tuple: Evaluator._sequence,
    cst.Set: Evaluator._sequence,
    cst.Dict: Evaluator._dict,
    cst.DictComp: Evaluator._dict_comprehension,
    cst.IfExp: Evaluator._if_expression,
    cst.BooleanOperation: Evaluator._boolean,
    cst.Lambda: Evaluator._lambda,
    cst.NamedExpr: Evaluator._inner_value,
    cst.Await: Evaluator._inner_value,
    cst.ListComp: Evaluator._comprehension,
    cst.SetComp: Evaluator._comprehension,
    cst.GeneratorExp: Evaluator._comprehension,
    cst.Integer: arithmetic.literal,
    cst.Float: arithmetic.literal,
    cst.SimpleString: arithmetic.literal,
    cst.ConcatenatedString: arithmetic.literal,
    cst.FormattedString: arithmetic.formatted,
    cst.BinaryOperation: arithmetic.binary,
    cst.UnaryOperation: arithmetic.unary,
    cst.Comparison: arithmetic.comparison,
}
