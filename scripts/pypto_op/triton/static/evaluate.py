"""Expressions: from syntax to kinds of values."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import libcst as cst

from pypto_op.triton.static import answers, emptiness, storages
from pypto_op.triton.static.comprehensions import Comprehensions
from pypto_op.triton.static.kernels import Kernel, Launcher
from pypto_op.triton.static.machine import Machine, Recursion
from pypto_op.triton.static.slices import bounds_of, part_of
from pypto_op.triton.static.source import SourceFile, nodes_in
from pypto_op.triton.static.values import (
    ClassValue,
    Container,
    Ext,
    ExtInstance,
    Function,
    Host,
    Instance,
    Scope,
    Storage,
    Tensor,
    Unknown,
    Value,
    holds_data,
    likely,
    options,
    union,
)
from pypto_op_lint import constants
from pypto_op_lint.constants import NOTHING

_LAUNCHERS = ("triton.KernelInterface", "triton.runtime.KernelInterface", "triton.runtime.jit.KernelInterface")
_FOLDED = {kind.__name__: function for kind, function in (*constants.BINARY.items(), *constants.COMPARE.items())}


class Expressions:
    """Evaluates expressions to kinds of values."""

    def __init__(self, machine: Machine) -> None:
        self.m = machine
        comprehension = Comprehensions(machine).evaluate
        self._by_type: dict[type, Callable[[Any, Scope], Value]] = {
            cst.Name: self._name,
            cst.Attribute: self._attribute,
            cst.Call: lambda node, scope: self.m.calls.evaluate(node, scope),
            cst.Integer: lambda node, scope: Host(constants.literal(node)),
            cst.Float: lambda node, scope: Host(constants.literal(node)),
            cst.Imaginary: lambda node, scope: Host(),
            cst.SimpleString: lambda node, scope: Host(constants.literal(node)),
            cst.ConcatenatedString: lambda node, scope: self._joined(node, scope),
            cst.FormattedString: self._formatted,
            cst.Tuple: self._sequence,
            cst.List: self._sequence,
            cst.Set: self._sequence,
            cst.Dict: self._dict,
            cst.BinaryOperation: self._binary,
            cst.UnaryOperation: self._unary,
            cst.BooleanOperation: self._boolean,
            cst.Comparison: self._comparison,
            cst.IfExp: self._conditional,
            cst.Subscript: self._subscript,
            cst.Lambda: lambda node, scope: self.m.calls.define(node, scope),
            cst.NamedExpr: self._named,
            cst.ListComp: comprehension,
            cst.SetComp: comprehension,
            cst.GeneratorExp: comprehension,
            cst.DictComp: comprehension,
            cst.Await: lambda node, scope: self.evaluate(node.expression, scope),
            cst.Yield: self._yield,
        }

    def evaluate(self, node: cst.CSTNode, scope: Scope) -> Value:
        """Return what an expression stands for."""
        self.m.step()
        handler = self._by_type.get(type(node))
        return handler(node, scope) if handler is not None else Host()

    def annotation(self, note: cst.Annotation, scope: Scope) -> None:
        """Evaluate an annotation that calls or binds something; Python does so where it is written."""
        if nodes_in(note, cst.Call, cst.NamedExpr):
            self.evaluate(note.annotation, scope)

    def truth(self, value: Value) -> bool | None:
        """Return whether a value is true; None when that is not known."""
        if isinstance(value, Host):
            return None if value.const is NOTHING else bool(value.const)
        if isinstance(value, (Kernel, Launcher, Function, ClassValue, Ext)):
            return None if isinstance(value, Ext) else True
        if isinstance(value, Container) and value.complete:
            return bool(value.members())
        return None

    def item_of(self, value: Value) -> Value:
        """Return what iterating over a value, or indexing it with an unknown index, yields."""
        items: list[Value] = []
        for option in options(value):
            if isinstance(option, Container):
                items += option.members() or [Host()]
            elif isinstance(option, (Host, Storage)):
                items.append(emptiness.part(option))
            elif isinstance(option, (Tensor, Unknown)):
                items.append(option)
            elif isinstance(option, Instance) and self.m.records.as_tuple(option) is not option:
                items.append(self.item_of(self.m.records.as_tuple(option)))
            else:
                items.append(Unknown(f"an element of {type(option).__name__}"))
        return union(items)

    def combine(self, node: cst.CSTNode, source: SourceFile, left: Value, right: Value, name: str) -> Value:
        """Return the result of a binary operator; one on a tensor's data is denied in forward."""
        if isinstance(left, (Instance, Unknown)) or isinstance(right, (Instance, Unknown)):
            special = self._special(node, source, left, right, name)
            if special is not None:
                return special
        if _direct(left) or _direct(right):
            number = self.m.suspects.as_number([left, right])
            if number is not None:
                if any(isinstance(side, Host) and isinstance(side.const, str) for side in (left, right)):
                    self.m.suspects.confirm([number])
                return number
            if self.m.phase == "forward":
                word = "an operator" if name not in ("MatrixMultiply", "MatrixMultiplyAssign") else "`@`"
                self.m.deny(node, source, f"{word} on a tensor's data is computed by PyTorch or Python, not by a kernel")
            return self.m.computed()
        if isinstance(left, Container) and isinstance(right, Container):
            complete = left.complete and right.complete
            return Container(left.kind, [*left.items, *right.items], {**left.keyed, **right.keyed}, complete)
        if isinstance(left, Container) or isinstance(right, Container):
            kept = left if isinstance(left, Container) else right
            assert isinstance(kept, Container)
            return Container(kept.kind, kept.members(), complete=False)
        function = _FOLDED.get(name.removesuffix("Assign"))
        if isinstance(left, Host) and isinstance(right, Host) and function is not None:
            known = left.const is not NOTHING and right.const is not NOTHING
            return Host(constants.fold(function, left.const, right.const)) if known else emptiness.combined(left, right, name)
        return Host()

    def _special(self, node: cst.CSTNode, source: SourceFile, left: Value, right: Value, name: str) -> Value | None:
        method = _SPECIAL_METHODS.get(name.removesuffix("Assign"))
        reflected = f"__r{method[2:]}" if method else None
        for owner, other, called in ((left, right, method), (right, left, reflected)):
            if isinstance(owner, Instance) and called and owner.cls.find(called):
                return self.m.calls.call(self.m.members.get(owner, called, node, source), [other], {}, node, source)
        return None

    def index(self, slices: Any, scope: Scope) -> Value:
        """Return the value between the brackets of a subscript."""
        parts: list[Value] = []
        for element in slices:
            part = element.slice
            if isinstance(part, cst.Index):
                parts.append(self.evaluate(part.value, scope))
            else:
                ends = [Host(None) if end is None else self.evaluate(end, scope) for end in (part.lower, part.upper, part.step)]
                parts.append(Host(data=any(map(holds_data, ends)), is_slice=True, bounds=bounds_of(ends)))
        return parts[0] if len(parts) == 1 else Container("tuple", parts)

    def select(self, owner: Value, key: Value, node: cst.CSTNode, source: SourceFile) -> Value:
        """Return `owner[key]`."""
        results: list[Value] = []
        for option in likely(owner):
            results.append(self._select_one(option, key, node, source))
        return union(results)

    def _select_one(self, owner: Value, key: Value, node: cst.CSTNode, source: SourceFile) -> Value:
        if isinstance(owner, Kernel):
            return Launcher(owner, key)
        if isinstance(owner, Tensor):
            if self.m.phase == "forward" and (holds_data(key) or _is_list(key)):
                self.m.deny(node, source, "indexing with a tensor or a list gathers in PyTorch; load it in a kernel")
                return self.m.computed()
            return owner
        if isinstance(owner, Instance) and owner.cls.extends(*TUPLES):
            owner = self.m.records.as_tuple(owner)
        if isinstance(owner, Container):
            return self._element(owner, key)
        if isinstance(owner, Host):
            self.m.suspects.confirm([key])
            return emptiness.part(owner, key)
        if isinstance(owner, Instance):
            getter = self.m.members.find(owner, "__getitem__")
            if getter is not None:
                return self.m.calls.call(getter, [key], {}, node, source)
            launches = self.m.members.find(owner, "run") if owner.cls.extends(*_LAUNCHERS) else None
            if launches is not None:  # the base's `__getitem__` calls it, with the grid
                return self.m.calls.bind_early(launches, [], {"grid": key, "warmup": Host(False)}, node, source)
            return Unknown(f"an element of {owner.cls.name}")
        if isinstance(owner, Ext):
            self.m.members.check(owner.name, node, source)
            return Ext(f"{owner.name}[]")
        if isinstance(owner, ExtInstance):
            return ExtInstance(f"{owner.name}[]")
        if isinstance(owner, Function) and owner.kind == "plain":
            return Host()
        if isinstance(owner, Storage):
            return storages.method(self.m, owner, "__getitem__", node, source)
        return Unknown("an element of something unknown") if not isinstance(owner, ClassValue) else owner

    def _element(self, owner: Container, key: Value) -> Value:
        const = key.const if isinstance(key, Host) else NOTHING
        if isinstance(key, Host) and key.is_slice and owner.kind in ("list", "tuple"):
            return part_of(owner, key.bounds)
        if const is not NOTHING and not isinstance(const, (list, dict, set)) and const in owner.keyed:
            return union([owner.keyed[const], *([] if owner.kind == "arguments" else owner.items)])
        if owner.kind == "arguments" and const is not NOTHING:
            return Host()
        if isinstance(const, int) and owner.complete and owner.kind != "dict" and -len(owner.items) <= const < len(owner.items):
            return owner.items[const]
        if isinstance(key, Host) and const is NOTHING and owner.kind in ("list", "tuple") and owner.complete and owner.items:
            return union([*owner.items])
        if owner.complete and not owner.members():
            return Host(None)  # it raises, or there is none
        return union(owner.members()) if owner.members() else Unknown("an element of an empty container")

    # -- one handler per kind of node ------------------------------------------------------------------------------

    def _name(self, node: cst.Name, scope: Scope) -> Value:
        if node.value.startswith("__") and not node.value.endswith("__") and _in_class(scope):
            self.m.deny(node, scope.source, "Python gives this name another spelling inside a class")
        found = scope.lookup(node.value)
        if found is not None:
            return found
        if node.value in constants.NAMED:
            return Host(constants.NAMED[node.value])
        if node.value in ("TYPE_CHECKING", "__debug__"):
            return Host(node.value == "__debug__")
        return Ext(f"builtins.{node.value}")

    def _attribute(self, node: cst.Attribute, scope: Scope) -> Value:
        return self.m.members.get(self.evaluate(node.value, scope), node.attr.value, node, scope.source)

    def _joined(self, node: cst.ConcatenatedString, scope: Scope) -> Value:
        left, right = self.evaluate(node.left, scope), self.evaluate(node.right, scope)
        return self.combine(node, scope.source, left, right, "Add")

    def _formatted(self, node: cst.FormattedString, scope: Scope) -> Value:
        text: Any = ""
        for part in node.parts:
            piece: Any = NOTHING
            if isinstance(part, cst.FormattedStringText):
                piece = part.value if "\\" not in part.value else NOTHING
            elif isinstance(part, cst.FormattedStringExpression):
                value = self.evaluate(part.expression, scope)
                for inner in part.format_spec or ():
                    if isinstance(inner, cst.FormattedStringExpression):
                        self.evaluate(inner.expression, scope)
                if isinstance(value, Host) and isinstance(value.const, (str, int)) and not (part.format_spec or part.conversion):
                    piece = value.const
            text = NOTHING if text is NOTHING or piece is NOTHING else f"{text}{piece}"
        return Host(text)

    def _sequence(self, node: cst.Tuple | cst.List | cst.Set, scope: Scope) -> Value:
        container = Container(type(node).__name__.lower())
        for element in node.elements:
            value = self.evaluate(element.value, scope)
            if isinstance(element, cst.StarredElement):
                value = self.m.records.as_tuple(value)
                known = isinstance(value, Container) and value.complete and not value.keyed
                container.items += value.members() if isinstance(value, Container) else [self.item_of(value)]
                container.complete = container.complete and known
            else:
                container.items.append(value)
        return container

    def _dict(self, node: cst.Dict, scope: Scope) -> Value:
        container = Container("dict")
        for element in node.elements:
            value = self.evaluate(element.value, scope)
            if isinstance(element, cst.StarredDictElement):
                if isinstance(value, Container):
                    container.keyed.update(value.keyed)
                    container.items += value.items
                else:  # it may have any key
                    hidden = Unknown("an element of what `**` adds")
                    container.keyed = {key: union([known, hidden]) for key, known in container.keyed.items()}
                    container.items.append(hidden)
                continue
            assert isinstance(element, cst.DictElement)
            key = self.evaluate(element.key, scope)
            if isinstance(key, Host) and key.const is not NOTHING:
                container.keyed[key.const] = value
            else:
                container.items.append(value)
        return container

    def _binary(self, node: cst.BinaryOperation, scope: Scope) -> Value:
        left, right = self.evaluate(node.left, scope), self.evaluate(node.right, scope)
        return self.combine(node, scope.source, left, right, type(node.operator).__name__)

    def _unary(self, node: cst.UnaryOperation, scope: Scope) -> Value:
        value = self.evaluate(node.expression, scope)
        if isinstance(node.operator, cst.Not):
            truth = self.truth(value)
            return emptiness.negated(value) if truth is None else Host(not truth)
        if _direct(value):
            return self.combine(node, scope.source, value, Host(), "unary")
        if isinstance(node.operator, cst.Minus) and isinstance(value, Host) and isinstance(value.const, (int, float)):
            return Host(-value.const)
        return Host()

    def _boolean(self, node: cst.BooleanOperation, scope: Scope) -> Value:
        left = self.evaluate(node.left, scope)
        truth = self.truth(left)
        is_and = isinstance(node.operator, cst.And)
        if truth is not None and truth is not is_and:
            return left
        with self.m.around(branches=0 if truth is not None else 1):
            right = self.evaluate(node.right, scope)
        return right if truth is not None else union([left, right])

    def _comparison(self, node: cst.Comparison, scope: Scope) -> Value:
        left = self.evaluate(node.left, scope)
        result: Value = Host()
        for comparison in node.comparisons:
            right = self.evaluate(comparison.comparator, scope)
            name = type(comparison.operator).__name__
            if name in ("Is", "IsNot"):
                result = answers.identity(left, right, name == "Is")
            elif name in ("In", "NotIn"):
                if _direct(right) or (_direct(left) and isinstance(right, Container) and right.members()):
                    self.combine(node, scope.source, self.m.fresh(), right, name)
                result = emptiness.found_in(left, right, answers.is_in(left, right, name == "In"), name)
            else:
                result = self.combine(node, scope.source, left, right, name)
            left = right
        return result if len(node.comparisons) == 1 else Host()

    def _conditional(self, node: cst.IfExp, scope: Scope) -> Value:
        test = self.evaluate(node.test, scope)
        truth = self.truth(test)
        if truth is not None:
            return self.evaluate(node.body if truth else node.orelse, scope)
        found: list[Value] = []
        with self.m.around(branches=1):
            for side in (node.body, node.orelse):
                with contextlib.suppress(Recursion):
                    found.append(self.evaluate(side, scope))
                if side is node.body and found:
                    found = [emptiness.answer(self.m, test, found[0])]
        if not found:
            raise Recursion
        return union(found)

    def _subscript(self, node: cst.Subscript, scope: Scope) -> Value:
        owner = self.evaluate(node.value, scope)
        return self.select(owner, self.index(node.slice, scope), node, scope.source)

    def _named(self, node: cst.NamedExpr, scope: Scope) -> Value:
        value = self.evaluate(node.value, scope)
        outside, kept = scope, value
        while outside.is_comprehension and outside.parent is not None:
            outside = outside.parent
        if outside is not scope and isinstance(node.target, cst.Name):  # how often a comprehension runs may be unknown
            earlier = outside.lookup(node.target.value)
            kept = value if earlier is None else union([earlier, value])
        self.m.statements.assign(node.target, kept, outside)
        return value

    def _yield(self, node: cst.Yield, scope: Scope) -> Value:
        value = node.value.item if isinstance(node.value, cst.From) else node.value
        result = Host(None) if value is None else self.evaluate(value, scope)
        result = self.item_of(result) if isinstance(node.value, cst.From) else result
        if self.m.frames:
            self.m.frames[-1].returns.append((result, dict(self.m.heap), node, True))
        return Host()


TUPLES = ("typing.NamedTuple", "builtins.tuple")
_SPECIAL_METHODS = {
    "Add": "__add__", "Subtract": "__sub__", "Multiply": "__mul__", "MatrixMultiply": "__matmul__", "Divide": "__truediv__",
    "Power": "__pow__", "RightShift": "__rshift__", "LeftShift": "__lshift__", "BitOr": "__or__", "BitAnd": "__and__",
    "Modulo": "__mod__", "FloorDivide": "__floordiv__", "Equal": "__eq__", "LessThan": "__lt__", "GreaterThan": "__gt__",
}  # fmt: skip


def _in_class(scope: Scope) -> bool:
    around: Scope | None = scope
    while around is not None and not around.is_class:
        around = around.parent
    return around is not None


def _direct(value: Value) -> bool:
    """Whether a value itself is a tensor or was read out of one (a list that holds tensors is not)."""
    return any(isinstance(o, Tensor) or (isinstance(o, Host) and o.data) for o in options(value))


def _is_list(value: Value) -> bool:
    parts = value.members() if isinstance(value, Container) and value.kind == "tuple" else [value]
    return any(isinstance(o, Container) and o.kind == "list" for part in parts for o in options(part))
