"""What the graph writes back: which kernel parameter, from which expression."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from pypto_op_lint.facts.flow import bindings_of
from pypto_op_lint.facts.values import Const, Func
from pypto_op_lint.tree import Binding, Function, Parameter, Site

if TYPE_CHECKING:
    from pypto_op_lint.facts import Facts

_IN_PLACE_CALLS = {"pypto.index_add_": 3, "pypto.index_put_": 2, "pypto.scatter_": 3}
"""In-place functions of pypto, and the position of their source."""

_IN_PLACE_METHODS = {
    "move": 0, "assemble": 0, "fill_": 0, "index_add_": 2, "scatter_": 2, "index_put_": 1, "tril_": None, "triu_": None,
}  # fmt: skip
_COPIES = {
    "view", "reshape", "clone", "expand_clone", "expand", "squeeze", "unsqueeze", "cast", "assemble", "contiguous",
}  # fmt: skip
_FILLS = {"pypto.zeros", "pypto.ones", "pypto.full", "pypto.tensor", "pypto.empty", "pypto.Tensor"}
_NEUTRAL = {
    "mul": 1, "div": 1, "add": 0, "sub": 0, "maximum": None, "minimum": None, "pow": 1,
}  # fmt: skip
_INTEGERS = ("pypto.DT_INT", "pypto.DT_UINT")
_MOST_DEPTH = 30


@dataclass(frozen=True, eq=False)
class Write:
    """One write-back."""

    site: Site  # where it stands
    target: cst.BaseExpression  # the expression that is written into
    source: cst.BaseExpression | None  # what is written; None when the operation works on the target alone


class Writes:
    """The write-backs of a file's graph."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        _ = facts.calls
        self.all = sorted(self._find(), key=lambda w: w.site.order)  # every one, in source order
        self._busy: set[int] = set()

    def outputs(self) -> dict[str, list[Write]]:
        """Return the kernel's tensor parameters that are written, each with its writes, by name."""
        found: dict[str, list[Write]] = {}
        for write in self.all:
            for name in self.roots(write.target):
                found.setdefault(name, []).append(write)
        return found

    def roots(self, node: cst.CSTNode, depth: int = 0) -> set[str]:
        """Return the names of the kernel parameters that `node` may be, or be a view of."""
        facts = self._facts
        if depth > _MOST_DEPTH:
            return set()
        if isinstance(node, cst.Subscript):
            return self.roots(node.value, depth + 1)
        if isinstance(node, (cst.List, cst.Tuple)):
            return {name for element in node.elements for name in self.roots(element.value, depth + 1)}
        if isinstance(node, cst.Call):
            base = _copied(facts, node)
            return self.roots(base, depth + 1) if base is not None else set()
        if not isinstance(node, cst.Name):
            return set()
        names: set[str] = set()
        for binding, function in bindings_of(facts.tree, node):
            if binding.kind == "parameter" and function is not None and isinstance(binding.value, cst.Param):
                parameter = function.parameter(binding.value.name.value)
                if parameter is None:
                    continue
                if facts.is_kernel(function):
                    names.add(parameter.name)
                for argument in _arguments(facts, function, parameter):
                    names |= self.roots(argument, depth + 1)
            elif binding.kind in ("assign", "annotation") and (value := element_of(binding)) is not None:
                names |= self.roots(value, depth + 1)
        return names

    def is_trivial(self, node: cst.CSTNode | None, depth: int = 0) -> bool:
        """Whether `node` computes nothing: an input, a view or copy of one, a constant, or one of those times 1."""
        facts = self._facts
        if node is None or depth > _MOST_DEPTH:
            return False
        if isinstance(node, (cst.Integer, cst.Float)):
            return True
        if isinstance(node, cst.Name):
            return self._trivial_name(node, depth)
        if isinstance(node, cst.Subscript):
            return self.is_trivial(node.value, depth + 1)
        if isinstance(node, cst.BinaryOperation):
            return self._trivial_arithmetic(node, depth)
        if not isinstance(node, cst.Call):
            return False
        functions = [v.function for v in facts.ev.values(node.func) if isinstance(v, Func)]
        if functions:
            return all(self._trivial_result(f, depth) for f in functions)
        if facts.callee_names(node) & _FILLS:
            return True
        base = _copied(facts, node)
        if base is not None:
            return self.is_trivial(base, depth + 1)
        return self._trivial_operation(node, depth)

    # -- finding --------------------------------------------------------------------------------------------

    def _find(self) -> Iterator[Write]:
        facts = self._facts
        for site in facts.graph_sites(cst.Assign, cst.AugAssign, cst.AnnAssign):
            yield from _stores(site)
        for site in facts.graph_sites(cst.Call):
            node = site.node
            assert isinstance(node, cst.Call)
            names = facts.callee_names(node)
            if "pypto.assemble" in names:
                yield from _assembled(site, node)
            elif names & set(_IN_PLACE_CALLS):
                place = _IN_PLACE_CALLS[next(iter(names & set(_IN_PLACE_CALLS)))]
                if node.args:
                    yield Write(site, node.args[0].value, _argument(node, place))
            elif isinstance(node.func, cst.Attribute) and node.func.attr.value in _IN_PLACE_METHODS and not names:
                where = _IN_PLACE_METHODS[node.func.attr.value]
                yield Write(site, node.func.value, _argument(node, where) if where is not None else None)

    # -- triviality -----------------------------------------------------------------------------------------

    def _trivial_name(self, node: cst.Name, depth: int) -> bool:
        facts = self._facts
        found = bindings_of(facts.tree, node)
        if not found:
            return False
        return all(self._trivial_binding(b, f, node.value, depth) for b, f in found)

    def _trivial_binding(self, binding: Binding, function: Function | None, name: str, depth: int) -> bool:
        facts = self._facts
        if id(binding) in self._busy:
            return True  # decided by the other bindings
        if binding.kind == "parameter" and function is not None and isinstance(binding.value, cst.Param):
            if facts.is_kernel(function):
                return True
            parameter = function.parameter(binding.value.name.value)
            arguments = _arguments(facts, function, parameter) if parameter is not None else []
            return bool(arguments) and all(self.is_trivial(a, depth + 1) for a in arguments)
        value = element_of(binding)
        if binding.kind not in ("assign", "annotation") or value is None:
            return False
        self._busy.add(id(binding))
        try:
            return self.is_trivial(value, depth + 1) and all(
                self.is_trivial(w.source, depth + 1) for w in self._into(name, function)
            )
        finally:
            self._busy.discard(id(binding))

    def _into(self, name: str, function: Function | None) -> Iterable[Write]:
        """Writes into a local tensor, so that a state that is filled later does not count as a constant."""
        facts = self._facts
        for write in self.all:
            base = write.target
            while isinstance(base, cst.Subscript):
                base = base.value
            if write.site.function is function and isinstance(base, cst.Name) and base.value == name:
                yield write
        for call in facts.calls.calls_from(function) if function is not None else facts.calls.calls_in(facts.tree.module_sites):
            handed = [p for p in call.function.parameters if isinstance(a := call.argument(p), cst.Name) and a.value == name]
            for parameter in handed:
                if call.function is not function:
                    yield from self._into(parameter.name, call.function)

    def _trivial_arithmetic(self, node: cst.BinaryOperation, depth: int) -> bool:
        neutral = {cst.Multiply: 1, cst.Divide: 1, cst.Add: 0, cst.Subtract: 0, cst.Power: 1}.get(type(node.operator))
        if neutral is None:
            return False
        if isinstance(node.operator, cst.Multiply) and self._is_zero(node):
            return True
        if isinstance(node.operator, cst.Add) and (self._is_zero(node.left) or self._is_zero(node.right)):
            return self.is_trivial(node.right if self._is_zero(node.left) else node.left, depth + 1)
        left, right = self._facts.ev.constant(node.left), self._facts.ev.constant(node.right)
        if _is(right, neutral):
            return self.is_trivial(node.left, depth + 1)
        commutes = isinstance(node.operator, (cst.Multiply, cst.Add))
        return commutes and _is(left, neutral) and self.is_trivial(node.right, depth + 1)

    def _is_zero(self, node: cst.CSTNode) -> bool:
        """`0.0`, `anything * 0.0`."""
        if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Multiply):
            return self._is_zero(node.left) or self._is_zero(node.right)
        return _is(self._facts.ev.constant(node), 0)

    def _trivial_operation(self, node: cst.Call, depth: int) -> bool:
        """`pypto.mul(x, 1.0)`, `x.add(0)`, `pypto.maximum(x, x)`."""
        operands = [a.value for a in node.args if not a.star]
        names = {n.rpartition(".")[2] for n in self._facts.callee_names(node) if n.startswith("pypto.")}
        if isinstance(node.func, cst.Attribute) and not names:
            names = {node.func.attr.value}
            operands = [node.func.value, *operands]
        neutral = {_NEUTRAL[n] for n in names if n in _NEUTRAL}
        if len(neutral) != 1 or len(operands) < 2:
            return False
        if None in neutral:
            return operands[0].deep_equals(operands[1]) and self.is_trivial(operands[0], depth + 1)
        return _is(self._facts.ev.constant(operands[1]), neutral.pop()) and self.is_trivial(operands[0], depth + 1)

    def _trivial_result(self, function: Function, depth: int) -> bool:
        if isinstance(function.node, cst.Lambda):
            return self.is_trivial(function.node.body, depth + 1)
        results = function.returned
        return bool(results) and all(self.is_trivial(value, depth + 1) for value in results)


def element_of(binding: Binding) -> cst.BaseExpression | None:
    """Return what a name is bound to, also by `a, b = one, two`; None where the file does not tell."""
    value = binding.value
    for step in binding.path:
        if not isinstance(value, (cst.Tuple, cst.List)) or not isinstance(step, int) or not 0 <= step < len(value.elements):
            return None
        value = value.elements[step].value
    return value if isinstance(value, cst.BaseExpression) else None


def _is(constant: Const | None, number: int | None) -> bool:
    return constant is not None and constant.kind in ("int", "float") and constant.value == number


def _argument(node: cst.Call, place: int) -> cst.BaseExpression | None:
    plain = [a.value for a in node.args if a.keyword is None and not a.star]
    return plain[place] if len(plain) > place else None


def _stores(site: Site) -> Iterator[Write]:
    node = site.node
    if isinstance(node, cst.Assign):
        for target in node.targets:
            if isinstance(target.target, cst.Subscript):
                yield Write(site, target.target.value, node.value)
            elif isinstance(target.target, cst.Tuple) and isinstance(node.value, cst.Tuple):
                for element, value in zip(target.target.elements, node.value.elements, strict=False):
                    if isinstance(element.value, cst.Subscript):
                        yield Write(site, element.value.value, value.value)
    elif isinstance(node, (cst.AugAssign, cst.AnnAssign)) and isinstance(node.target, cst.Subscript):
        # `out[:] += y` reads and adds: never trivial, so its source is left open.
        yield Write(site, node.target.value, node.value if isinstance(node, cst.AnnAssign) else None)


def _assembled(site: Site, node: cst.Call) -> Iterator[Write]:
    """`assemble(source, offsets, destination)` and `assemble([(source, offsets), ...], destination)`."""
    plain = [a.value for a in node.args if a.keyword is None and not a.star]
    if len(plain) >= 3:
        yield Write(site, plain[2], plain[0])
    elif len(plain) == 2:
        sources = plain[0].elements if isinstance(plain[0], (cst.List, cst.Tuple)) else []
        for element in sources:
            pair = element.value
            if isinstance(pair, (cst.Tuple, cst.List)) and pair.elements:
                yield Write(site, plain[1], pair.elements[0].value)
        if not sources:
            yield Write(site, plain[1], None)


def _copied(facts: Facts, node: cst.Call) -> cst.BaseExpression | None:
    """Return what a call only views, reshapes or copies; None for any other call."""
    names = {n.rpartition(".")[2] for n in facts.callee_names(node) if n.startswith("pypto.")}
    if "cast" in names and any(p.startswith(_INTEGERS) for a in node.args for p in facts.ev.paths(a.value)):
        return None  # rounding is a computation
    if names & _COPIES and node.args:
        given = [a.value for a in node.args if a.keyword is None or a.keyword.value == "input"]
        return given[0] if given else None
    if isinstance(node.func, cst.Attribute) and node.func.attr.value in _COPIES and not names:
        return node.func.value
    return None


def _arguments(facts: Facts, function: Function, parameter: Parameter) -> list[cst.BaseExpression]:
    graph_calls = [c for c in facts.calls.calls_of(function) if facts.in_graph(c.site)]
    return [a for a in (call.argument(parameter) for call in graph_calls) if a is not None]
