"""A kernel's file as mutation sees it: which code is the kernel's, and what the names in it stand for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import libcst as cst
from libcst.metadata import CodeRange, MetadataWrapper, PositionProvider

from pypto_op.errors import ContractError
from pypto_op_lint.parsing import parse_contract

SCHEDULING = ("set_", "name", "idx_name", "unroll")
"""Beginnings of calls and keywords that say how a kernel is run, not what it computes."""

_TENSOR_CALLS = """
abs add amax amin arange cast ceil clip concat cos cumsum div eq exp exp2 expand_clone expm1 floor full gather ge gt le log
log1p log2 logical_and logical_not logical_or lt matmul maximum minimum mul ne neg ones prod reciprocal relu reshape round
rsqrt scatter sigmoid sign sin softmax sqrt sub sum tanh topk transpose tril triu unsqueeze view where zeros
"""
TENSOR_CALLS = frozenset(_TENSOR_CALLS.split())
"""Functions of pypto that return a tensor."""


@dataclass(frozen=True)
class Site:
    """A node of the kernel's code at its place."""

    node: cst.CSTNode  # the node
    parents: tuple[cst.CSTNode, ...]  # the nodes around it, innermost last
    function: Function  # the function whose body holds it
    program: Program  # the file

    @property
    def parent(self) -> cst.CSTNode:
        """The node around it."""
        return self.parents[-1]


@dataclass
class Function:
    """One function of the file."""

    node: cst.FunctionDef  # its definition
    on_device: bool  # it is the jit entry, or called from it
    indices: list[str] = field(default_factory=list)  # names that `pypto.loop` binds in it
    tensors: set[str] = field(default_factory=set)  # names that hold tensors in it, as far as the text tells

    @property
    def name(self) -> str:
        """Its name."""
        return self.node.name.value

    @cached_property
    def parameters(self) -> list[str]:
        """The names of its positional parameters, in order."""
        return [parameter.name.value for parameter in self.node.params.params]


class Program:
    """One implementation file.

    Args:
        file: where the text stands, for what is said of it.

    Raises:
        ContractError: the file does not parse, or has no kernel or no wrapper.
    """

    def __init__(self, source: str, wrapper: str, file: Path | None = None) -> None:
        parsed = parse_contract(source, file=file or "the implementation", remedy="mend it first")
        self._wrapper = MetadataWrapper(parsed, unsafe_skip_copy=True)
        self.source = source
        self.module = self._wrapper.module
        self._nodes = {node.name.value: node for node in below(self.module) if isinstance(node, cst.FunctionDef)}
        self.entries = [node for node in self._nodes.values() if is_entry(node)]
        if not self.entries:
            raise ContractError("there is no @pypto.frontend.jit function", file=file, remedy="mutate a pypto kernel")
        if wrapper not in self._nodes:
            raise ContractError(f"there is no function {wrapper}", file=file, remedy="name it as the contract does")
        self.wrapper = self._nodes[wrapper]
        device = self._reached([entry.name.value for entry in self.entries])
        host = self._reached([wrapper]) - device
        self.functions = {
            name: self._described(node, name in device)
            for name, node in self._nodes.items()
            if name in device or (name in host and not _only_checks(node))
        }

    def with_edit(self, site: Site, old: cst.CSTNode, new: cst.CSTNode | cst.FlattenSentinel[cst.BaseStatement]) -> str | None:
        """Return the file's text with `new` in the place of `old`, a node at or below `site`; None if that is no code."""
        top = self._tops[site.parents[0]]
        try:
            changed = self.module.body[top].deep_replace(old, new)  # type: ignore[type-var]
            assert isinstance(changed, cst.CSTNode)
            text = "".join((*self._texts[: top + 1], self.module.code_for_node(changed), *self._texts[top + 2 :]))
            compile(text, "<mutant>", "exec", dont_inherit=True)
        except (cst.CSTValidationError, SyntaxError):
            return None
        return text

    @cached_property
    def _texts(self) -> list[str]:
        """The file in pieces: header, one piece per statement, footer. Only one of them differs in a mutant."""
        pieces = [self.module.code_for_node(statement) for statement in self.module.body]
        whole = self.module.with_changes(body=[]).code if not pieces else self.module.code
        start = whole.index(pieces[0]) if pieces else len(whole)
        return [whole[:start], *pieces, whole[start + sum(map(len, pieces)) :]]

    @cached_property
    def _tops(self) -> dict[cst.CSTNode, int]:
        """A function, or a statement of the module -> the position of the module's statement that holds it."""
        found: dict[cst.CSTNode, int] = {}
        for i, statement in enumerate(self.module.body):
            found |= {node: i for node in below(statement) if node is statement or isinstance(node, cst.FunctionDef)}
        return found

    def line(self, node: cst.CSTNode) -> int:
        """Return the line that a node of this file starts on."""
        position: CodeRange = self._positions[node]
        return position.start.line

    def sites(self) -> Iterator[Site]:
        """Yield every node of the kernel's code: what may be mutated, in source order."""
        for function in sorted(self.functions.values(), key=lambda f: self.line(f.node)):
            yield from self._below(function.node.body, (function.node,), function)
        for statement in self.module.body:
            if self._constant(statement):
                function = next(iter(self.functions.values()))
                for child in statement.children:
                    yield from self._below(child, (statement,), function)

    @cached_property
    def _positions(self) -> dict[cst.CSTNode, CodeRange]:
        return dict(self._wrapper.resolve(PositionProvider))

    def _constant(self, statement: cst.CSTNode) -> bool:
        """Whether a statement of the module gives a float its name: a constant of the mathematics."""
        match statement:
            case cst.SimpleStatementLine(body=[cst.Assign(value=value)]):
                inner = value.expression if isinstance(value, cst.UnaryOperation) else value
                return isinstance(inner, cst.Float)
        return False

    def _below(self, node: cst.CSTNode, parents: tuple[cst.CSTNode, ...], function: Function) -> Iterator[Site]:
        if _left_out(node, parents, function):
            return
        yield Site(node, parents, function, self)
        for child in node.children:
            yield from self._below(child, (*parents, node), function)

    def _reached(self, names: list[str]) -> set[str]:
        """Return the functions of this file that are named from within `names`, and these."""
        found: set[str] = set()
        waiting = list(names)
        while waiting:
            name = waiting.pop()
            if name not in found:
                found.add(name)
                waiting += [other for other in names_in(self._nodes[name].body) if other in self._nodes]
        return found

    def _described(self, node: cst.FunctionDef, on_device: bool) -> Function:
        function = Function(node, on_device)
        assigned: list[tuple[str, cst.BaseExpression]] = []
        for inner in below(node.body):
            match inner:
                case cst.For(target=cst.Name(value=name), iter=cst.Call() as call) if called(call) == "loop":
                    function.indices.append(name)
                case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))], value=value):
                    assigned.append((name, value))
        size = -1
        while size != len(function.tensors):
            size = len(function.tensors)
            function.tensors |= {name for name, value in assigned if self.is_tensor(value, function)}
        return function

    def is_tensor(self, value: cst.BaseExpression, function: Function) -> bool:
        """Whether an expression's value is a tensor, as far as the text tells."""
        match value:
            case cst.Name(value=name):
                return name in function.tensors
            case cst.BinaryOperation(left=left, right=right):
                return self.is_tensor(left, function) or self.is_tensor(right, function)
            case cst.UnaryOperation(expression=inner):
                return self.is_tensor(inner, function)
            case cst.Call(func=cst.Name(value=name)):
                return function.on_device and name in self._nodes
            case cst.Call():
                return called(value) in TENSOR_CALLS
            case cst.IfExp(body=body, orelse=orelse):
                return self.is_tensor(body, function) or self.is_tensor(orelse, function)
        return False


def called(call: cst.Call) -> str:
    """Return the last part of what is called: "view" for `pypto.view(x)` and for `x.view()`; "" for other callees."""
    match call.func:
        case cst.Attribute(attr=cst.Name(value=name)):
            return name
        case cst.Name(value=name):
            return name
    return ""


def is_method(call: cst.Call) -> bool:
    """Whether a call is of the form `x.sum(...)`, so that its first argument stands before the dot."""
    match call.func:
        case cst.Attribute(value=cst.Name(value=("pypto" | "torch"))):
            return False
        case cst.Attribute():
            return True
    return False


def argument(call: cst.Call, position: int, keyword: str) -> cst.Arg | None:
    """Return an argument of a call, by its keyword or by its position in the function form."""
    for arg in call.args:
        if arg.keyword is not None and arg.keyword.value == keyword:
            return arg
    place = position - 1 if is_method(call) else position
    positional = [arg for arg in call.args if arg.keyword is None and not arg.star]
    return positional[place] if 0 <= place < len(positional) else None


def below(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Yield a node and everything below it."""
    yield node
    for child in node.children:
        yield from below(child)


def names_in(node: cst.CSTNode) -> list[str]:
    """Return every name that stands below a node."""
    return [inner.value for inner in below(node) if isinstance(inner, cst.Name)]


def is_entry(node: cst.FunctionDef) -> bool:
    """Whether a function is a jit entry."""
    for decorator in node.decorators:
        target = decorator.decorator.func if isinstance(decorator.decorator, cst.Call) else decorator.decorator
        if isinstance(target, cst.Attribute) and target.attr.value == "jit":
            return True
        if isinstance(target, cst.Name) and target.value == "jit":
            return True
    return False


def _only_checks(node: cst.FunctionDef) -> bool:
    """Whether a function does nothing but refuse arguments: no right input tells its mutants apart."""
    statements = [s for s in node.body.body if not _is_docstring(s)]
    return bool(statements) and all(isinstance(s, cst.If) and _only_raises(s) for s in statements)


def _only_raises(statement: cst.If) -> bool:
    lines = list(statement.body.body)
    return all(isinstance(line, cst.SimpleStatementLine) and isinstance(line.body[0], cst.Raise) for line in lines)


def _is_docstring(statement: cst.CSTNode) -> bool:
    match statement:
        case cst.SimpleStatementLine(body=[cst.Expr(value=cst.SimpleString() | cst.ConcatenatedString())]):
            return True
    return False


def _left_out(node: cst.CSTNode, parents: tuple[cst.CSTNode, ...], function: Function) -> bool:
    """Whether a node decides nothing about the numbers: documentation, refusals, scheduling, nested definitions."""
    match node:
        case cst.FunctionDef() | cst.Annotation() | cst.Decorator() | cst.Raise() | cst.Return(value=None):
            return True
        case cst.If() if _only_raises(node):
            return True
        case cst.Call() if called(node).startswith("set_"):
            return True
        case cst.Arg(keyword=cst.Name(value=word)):
            return word.startswith(SCHEDULING)
        case cst.SimpleStatementLine():
            return _is_docstring(node)
    return False
