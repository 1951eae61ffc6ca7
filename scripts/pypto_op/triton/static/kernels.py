"""What a Triton kernel writes: which of its parameters reach a store. A kernel that stores nothing is an empty shell."""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import libcst as cst

from pypto_op.triton.program import HELD_METHODS, Program, program_of
from pypto_op.triton.static.source import SourceFile
from pypto_op.triton.static.values import (
    ClassValue,
    Container,
    Ext,
    ExtInstance,
    Function,
    Host,
    Instance,
    Tensor,
    TensorMethod,
    Unknown,
    Value,
    options,
)
from pypto_op_lint.liveness import constant_truth, live_statements
from pypto_op_lint.nodes import children, inside, names_in


@dataclass(eq=False)
class KernelFacts:
    """A jit function of an analysed file.

    Attributes:
        name: its name.
        source, node: where it stands.
        resolve: what an expression in its module stands for.
        stores: names of the store operations, dotted.
    """

    name: str
    source: SourceFile
    node: cst.FunctionDef
    resolve: Callable[[cst.BaseExpression], Value | None]
    stores: frozenset[str]
    _stored: frozenset[str] | None = field(default=None)
    _busy: bool = False

    @property
    def parameters(self) -> list[str]:
        """Names of its parameters, in order."""
        parameters = self.node.params
        return [p.name.value for p in (*parameters.posonly_params, *parameters.params, *parameters.kwonly_params)]

    @property
    def stored(self) -> frozenset[str]:
        """Parameters that a store may write through."""
        if self._stored is None:
            if self._busy:
                return frozenset()
            self._busy = True
            self._stored = self._find_stored()
            self._busy = False
        return self._stored

    @functools.cached_property
    def follows_addresses(self) -> bool:
        """Whether it, or a function that it calls, makes pointers of numbers, and so may write to what it was not given."""
        others = (value.facts for value in self.device_functions() if isinstance(value, Kernel) and value.facts is not self)
        named = (node.attr if isinstance(node, cst.Attribute) else node for node in inside(self.node.body))
        here = any(isinstance(node, cst.Name) and node.value == _MAKES_POINTERS for node in named)
        return here or any(facts.follows_addresses for facts in others)

    @functools.cached_property
    def pointers(self) -> frozenset[str]:
        """Parameters that may be pointers: they lie in an address that is read or written, or go on to another function."""
        found: set[str] = set()
        for call in _live_calls(self.node.body):
            callee = self.resolve(call.func)
            if not isinstance(callee, Ext):
                found |= names_in(call)
            elif callee.name.rpartition(".")[2].startswith(_ADDRESSED):
                found |= {name for argument in call.args[:1] for name in _summands(argument.value)}
        flows = [(names_in(target), _summands(value)) for target, value in _flows(self.node.body)]
        for _ in range(8):
            before = len(found)
            found |= {name for targets, names in flows if targets & found for name in names}
            if len(found) == before:
                break
        return frozenset(found & set(self.parameters))

    def device_functions(self) -> Iterator[Value]:
        """Yield what the body's names stand for where that is jitted, too: what it calls, or hands to a reduction."""
        for node in inside(self.node):
            if isinstance(node, (cst.Name, cst.Attribute)):
                yield from (value for value in _options(self.resolve(node)) if isinstance(value, Kernel))

    def program(self) -> Program:
        """Return the function as its text says it."""
        return program_of(self.source.path, self.name, self.source.module.code_for_node(self.node))

    def outside(self) -> Iterator[tuple[cst.CSTNode, str]]:
        """Yield what the body uses that a device cannot: other libraries, Python functions, lists. The interpreter can."""
        bound = {name for target, _ in _flows(self.node.body) for name in names_in(target)} | set(self.parameters)
        bound |= _raised(self.node.body)
        for call in _live_calls(self.node.body):
            for callee in self._callees(call):
                told = _no_device_function(callee)
                if told:
                    yield call, told
            if isinstance(call.func, cst.Name) and call.func.value not in bound | _BUILTINS and not list(self._callees(call)):
                yield call, f"`{call.func.value}`"
            elif isinstance(call.func, cst.Name) and call.func.value == "getattr" and not _plain_attribute(call):
                yield call, "an attribute whose name is computed, or the interpreter's"
        for node in inside(self.node.body):
            if isinstance(node, _NO_KERNEL_CODE):
                yield node, f"`{type(node).__name__}`"
            elif isinstance(node, cst.Attribute) and node.attr.value in _INTERPRETERS:
                yield node, f"the interpreter's `{node.attr.value}`"
        for name in sorted((names_in(self.node.body) | names_in(self.node.params)) - bound):
            for value in _options(self.resolve(cst.Name(name))):
                if isinstance(value, Container) and value.kind in ("list", "dict", "set"):
                    yield self.node, f"the {value.kind} `{name}` of the module"
                elif isinstance(value, (Instance, ExtInstance, Tensor, Function)) or _python_in(value):
                    yield self.node, f"the Python object `{name}` of the module"
                elif isinstance(value, Ext) and f"{value.name}.".startswith(_NUMERIC):
                    yield self.node, f"`{value.name}`"

    def takes(self, name: str, value: Value) -> bool:
        """Whether a device can take a value for a parameter: no Python function, no object with operators."""
        if name in self._called and any(isinstance(o, Ext) and not o.name.startswith("triton.") for o in _options(value)):
            return False
        return not _python_in(value)

    @functools.cached_property
    def _called(self) -> frozenset[str]:
        """Parameters that the body calls, or looks up what it calls in."""
        return frozenset(name for call in _live_calls(self.node.body) for name in names_in(call.func)) & set(self.parameters)

    def _callees(self, call: cst.Call) -> tuple[Value, ...]:
        """Return what a call may call; for something out of a container or an object, what that holds or is."""
        node: cst.BaseExpression = call.func
        found = self.resolve(node)
        while found is None and isinstance(node, (cst.Subscript, cst.Attribute)):
            node = node.value
            found = self.resolve(node)
        if node is call.func:
            return _options(found)
        held = [member for value in _options(found) for member in (value.members() if isinstance(value, Container) else [value])]
        return tuple(Host() if isinstance(value, ClassValue) else value for value in held if not isinstance(value, (Ext, Kernel)))

    def _find_stored(self) -> frozenset[str]:
        origins = self._origins()
        stored: set[str] = set()
        for call in _live_calls(self.node.body):
            for expression in self._written_by(call):
                for name in names_in(expression):
                    stored |= origins.get(name, set())
        return frozenset(stored)

    def _written_by(self, call: cst.Call) -> Iterator[cst.BaseExpression]:
        """Yield the pointer expressions that a call writes through."""
        callee = self.resolve(call.func)
        if isinstance(callee, Ext) and callee.name in self.stores:
            pointer = [a.value for a in call.args if a.keyword is None or a.keyword.value in ("pointer", "desc")]
            yield from pointer[:1]
        elif isinstance(callee, Kernel):
            for position, argument in enumerate(call.args):
                names = callee.facts.parameters
                name = argument.keyword.value if argument.keyword else names[position] if position < len(names) else ""
                if name in callee.facts.stored:
                    yield argument.value
        elif isinstance(call.func, cst.Attribute) and call.func.attr.value in _METHODS and callee is None:
            yield call.func.value

    def _origins(self) -> dict[str, set[str]]:
        """Return for each local name the parameters that its value is made from."""
        origins = {name: {name} for name in self.parameters}
        flows = list(_flows(self.node.body))
        for _ in range(8):
            before = sum(len(found) for found in origins.values())
            for target, value in flows:
                found: set[str] = set()
                for name in names_in(value):
                    found |= origins.get(name, set())
                for name in names_in(target):
                    origins.setdefault(name, set()).update(found)
            if sum(len(found) for found in origins.values()) == before:
                break
        return origins


@dataclass(eq=False)
class Kernel(Value):
    """A function under `triton.jit`; `hooks` are functions that each launch of it calls on the host."""

    facts: KernelFacts
    hooks: tuple[Value, ...] = ()


@dataclass(eq=False)
class Launcher(Value):
    """`kernel[grid]`, or `kernel.run`; `arguments` were bound by functools.partial."""

    kernel: Kernel
    grid: Value | None = None
    arguments: tuple[Value, ...] = ()
    keywords: Mapping[str, Value] = field(default_factory=dict)


_LIBRARIES = (
    "torch.",
    "torch_npu.",
    "numpy.",
    "scipy.",
    "cupy.",
    "os.",
    "sys.",
    "builtins.exec",
    "builtins.eval",
    "builtins.getattr",
)
_NO_KERNEL_CODE = (
    cst.Import, cst.ImportFrom, cst.ClassDef, cst.FunctionDef, cst.Lambda, cst.With, cst.Try, cst.TryStar, cst.Global,
    cst.Nonlocal, cst.Del, cst.Yield, cst.Await, cst.Match,
)  # fmt: skip
"""What Triton's compiler refuses in a kernel, and the interpreter, which runs Python, does not."""

_INTERPRETERS = frozenset({"handle", "data", "__class__", "__dict__", "__globals__"})
"""Attributes that lead from a kernel's value to the NumPy array behind it, or from code to its surroundings."""

_ADDRESSED = ("load", "store", "atomic_", "make_block_ptr", "make_tensor_descriptor", "advance", "experimental", "_experimental")
"""Operations whose first argument is an address, by the beginning of their names."""


_MAKES_POINTERS = "pointer_type"
"""The name by which a kernel turns a number into an address."""

_BUILTINS = frozenset({"len", "list", "range", "float", "int", "isinstance", "getattr", "hasattr", "min", "max", "print", "abs",
                       "bool", "tuple", "str", "zip", "enumerate", "reversed"})  # fmt: skip
"""Builtins that Triton's compiler knows, or that do no harm."""

_NUMERIC = ("numpy.", "scipy.", "cupy.", "torch_npu.", "os.", "sys.", "ctypes.")


def _options(value: Value | None) -> tuple[Value, ...]:
    return () if value is None else options(value)


def _no_device_function(callee: Value) -> str:
    """Return what a kernel's callee is that no device can execute; "" for a function of Triton's."""
    if isinstance(callee, Ext) and callee.name.startswith(_LIBRARIES):
        return f"`{callee.name}`"
    if isinstance(callee, Function):
        return f"the Python function {callee.name}"
    if isinstance(callee, (Host, Instance, ExtInstance, TensorMethod)):
        return "what is no function of Triton's"
    return f"{callee.why}" if isinstance(callee, Unknown) and callee.why.startswith("what forward puts") else ""


def _plain_attribute(call: cst.Call) -> bool:
    """Whether a call of getattr names an attribute that does not lead behind the kernel's value."""
    name = call.args[1].value if len(call.args) > 1 else None
    return isinstance(name, cst.SimpleString) and name.evaluated_value not in _INTERPRETERS


def _python_in(value: Value | None) -> bool:
    """Whether a value is or holds a Python function, or an object whose operators are Python functions."""
    for option in _options(value):
        if isinstance(option, (Function, TensorMethod)):
            return True
        if isinstance(option, Container) and any(map(_python_in, option.members())):
            return True
        if isinstance(option, Instance) and any(
            isinstance(method, Function) and name.startswith("__") and name not in HELD_METHODS
            for owner in option.cls.lineage()
            if isinstance(owner, ClassValue)
            for name, method in owner.names.items()
        ):
            return True
    return False


_METHODS = frozenset({"store", "scatter", "atomic_add", "atomic_max", "atomic_min", "atomic_and", "atomic_or", "atomic_xor"})


def _raised(body: cst.CSTNode) -> set[str]:
    """Return the names of Python's exceptions that a body only raises: the compiler drops a branch that no constant takes."""
    calls = (node.exc for node in inside(body) if isinstance(node, cst.Raise))
    names = {call.func.value for call in calls if isinstance(call, cst.Call) and isinstance(call.func, cst.Name)}
    return {name for name in names if isinstance(kind := getattr(builtins, name, None), type) and issubclass(kind, Exception)}


def _live_calls(node: cst.CSTNode) -> Iterator[cst.Call]:
    """Yield the calls in a body, without those under `if False` and after a `return`."""
    if isinstance(node, cst.If) and constant_truth(node.test) is False:
        if node.orelse is not None:
            yield from _live_calls(node.orelse)
        return
    if isinstance(node, cst.Call):
        yield node
    for child in live_statements(node.body) if isinstance(node, cst.IndentedBlock) else children(node):
        yield from _live_calls(child)


def _summands(node: cst.CSTNode) -> set[str]:
    """Return the names that a sum is made of: a pointer is one of them, never a factor of one."""
    if isinstance(node, cst.BinaryOperation):
        additive = isinstance(node.operator, (cst.Add, cst.Subtract))
        return _summands(node.left) | _summands(node.right) if additive else set()
    if isinstance(node, cst.Subscript):
        return _summands(node.value)
    return names_in(node)


def _flows(node: cst.CSTNode) -> Iterator[tuple[cst.CSTNode, cst.CSTNode]]:
    """Yield (target, value) of every assignment and loop in a body."""
    if isinstance(node, cst.Assign):
        for target in node.targets:
            yield target.target, node.value
    elif isinstance(node, (cst.AugAssign, cst.NamedExpr)) or (isinstance(node, cst.AnnAssign) and node.value is not None):
        assert node.value is not None
        yield node.target, node.value
    elif isinstance(node, cst.For):
        yield node.target, node.iter
    for child in children(node):
        yield from _flows(child)
