"""Kinds of values: what the static check knows about an expression instead of its value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import libcst as cst

from pypto_op_lint.constants import NOTHING

if TYPE_CHECKING:
    from pypto_op.triton.static.source import SourceFile


_MOST_OPTIONS = 48


class Value:
    """Base of all kinds."""


@dataclass(eq=False)
class Host(Value):
    """A number, string, shape, dtype, device: anything that holds no tensor data."""

    const: Any = NOTHING  # the Python constant, or NOTHING
    data: bool = False  # it was read out of a tensor (`item`, `tolist`), so arithmetic on it is computation
    is_slice: bool = False  # it is `a:b` between brackets
    bounds: slice | None = None  # of such a slice, where all of them are known
    # `device` for a device of PyTorch's, `device type` for the word that it says of itself ("cuda"); "" for others
    kind: str = ""


@dataclass(eq=False)
class Ext(Value):
    """A name of a module that is not analysed: `torch.softmax`, `math`, `builtins.len`."""

    name: str


@dataclass(eq=False)
class ExtInstance(Value):
    """What calling a class of such a module returned: `torch.nn.Linear(...)`, `pathlib.Path(...)`."""

    name: str  # the class, dotted
    hooks: tuple[Value, ...] = ()  # functions of the file that it holds and somebody calls later (`Config(pre_hook=...)`)


@dataclass(eq=False)
class Buffer:
    """A piece of memory."""

    # input, weight, fresh (allocated), copy (a copy of something unwritten), computed (by PyTorch; a finding exists) or unknown
    origin: str
    constant: bool = True  # nothing was written into it that may come from an input or a weight


@dataclass(eq=False)
class Tensor(Value):
    """A tensor, or a view of one: it may lie in any of `buffers`."""

    buffers: frozenset[Buffer]


@dataclass(eq=False)
class TensorMethod(Value):
    """A bound method of a tensor that has not been called yet."""

    tensor: Tensor
    name: str


@dataclass(eq=False)
class Storage(Value):
    """What `untyped_storage` of a tensor returns: its size and its address are no data, the rest is."""

    tensor: Tensor


@dataclass(eq=False)
class Scope:
    """Names of a function, class or module, and where to look further."""

    names: dict[str, Value]
    parent: Scope | None
    source: SourceFile
    is_class: bool = False
    outer: set[str] = field(default_factory=set)  # names that are declared global or nonlocal
    fields: list[str] = field(default_factory=list)  # names that a class's body annotates, in order
    fleeting: bool = False  # it belongs to a call that forward makes, so it ends with it
    is_comprehension: bool = False  # `:=` binds outside of it

    def lookup(self, name: str) -> Value | None:
        """Return what `name` stands for here; None when nothing binds it."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names and (scope is self or not scope.is_class):
                return scope.names[name]
            scope = scope.parent
        return None

    def home(self, name: str) -> Scope:
        """Return the scope that an assignment to `name` goes to."""
        if name not in self.outer:
            return self
        scope = self.parent
        while scope is not None and scope.parent is not None:
            if name in scope.names and not scope.is_class:
                return scope
            scope = scope.parent
        return scope or self


@dataclass(eq=False)
class Function(Value):
    """A function or lambda of an analysed file."""

    node: cst.FunctionDef | cst.Lambda
    scope: Scope
    name: str
    kind: str = "plain"  # or static, class, property, cached, context
    bound: Value | None = None
    owner: ClassValue | None = None
    arguments: tuple[Value, ...] = ()
    keywords: Mapping[str, Value] = field(default_factory=dict)
    defaults: dict[str, Value] = field(default_factory=dict)


@dataclass(eq=False)
class ClassValue(Value):
    """A class of an analysed file; `fields` are the names that its body annotates."""

    name: str
    bases: list[Value]
    names: dict[str, Value]
    scope: Scope
    fields: list[str] = field(default_factory=list)

    def lineage(self) -> Iterator[ClassValue | Ext]:
        """Yield the class and its bases, depth first; bases that are not analysed as Ext."""
        yield self
        for base in self.bases:
            if isinstance(base, ClassValue):
                yield from base.lineage()
            elif isinstance(base, Ext):
                yield base

    def find(self, name: str) -> tuple[Value, ClassValue] | None:
        """Return the attribute `name` and the analysed class that defines it."""
        for owner in self.lineage():
            if isinstance(owner, ClassValue) and name in owner.names:
                return owner.names[name], owner
        return None

    def extends(self, *prefixes: str) -> bool:
        """Whether a base that is not analysed has one of these names."""
        return any(isinstance(base, Ext) and base.name.startswith(prefixes) for base in self.lineage())


@dataclass(eq=False)
class Instance(Value):
    """An object of an analysed class; `past` holds what its attributes were before."""

    cls: ClassValue
    attributes: dict[str, Value] = field(default_factory=dict)
    past: dict[str, list[Value]] = field(default_factory=dict)


@dataclass(eq=False)
class Super(Value):
    """`super()` inside a method."""

    instance: Value
    after: ClassValue


@dataclass(eq=False)
class Container(Value):
    """A tuple, list, set or dict. `keyed` holds the values whose constant keys are known."""

    kind: str
    items: list[Value] = field(default_factory=list)
    keyed: dict[Any, Value] = field(default_factory=dict)
    complete: bool = True  # `items` are all items, in order

    def members(self) -> list[Value]:
        """Return every value in it."""
        return [*self.items, *self.keyed.values()]


@dataclass(eq=False)
class Member(Value):
    """A bound method of a container, class or kernel that has not been called yet."""

    owner: Value
    name: str


@dataclass(eq=False)
class Wrapping(Value):
    """A decorator that leaves what it decorates as it is (`autotune(...)`), or makes a kernel of it (`jit`)."""

    makes_kernel: bool = False
    operator: str = ""  # what it decorates can be called as this operator of PyTorch's, too ("space::name")
    kind: str | None = None
    hooks: tuple[Value, ...] = ()  # functions of the file that a launch of the kernel calls (`heuristics`, `pre_hook`)


@dataclass(eq=False)
class Union(Value):
    """One of several."""

    options: tuple[Value, ...]


@dataclass(eq=False)
class Unknown(Value):
    """Nothing is known; `why` says where it came from, `denied` why it may not even be called."""

    why: str
    denied: str = ""


def union(values: list[Value]) -> Value:
    """Return one value that stands for any of `values`."""
    flat: list[Value] = []
    for value in values:
        for option in value.options if isinstance(value, Union) else (value,):
            if not any(option is other or _same(option, other) for other in flat):
                flat.append(option)
    if not flat:
        return Host(None)
    if len(flat) > _MOST_OPTIONS:
        plain = [option for option in flat if isinstance(option, Host)]
        flat = [option for option in flat if not isinstance(option, Host)]
        flat = [*flat, *([Host(data=any(option.data for option in plain))] if plain else [])]
    if len(flat) > _MOST_OPTIONS:
        flat = [*flat[:_MOST_OPTIONS], Unknown("one of very many values")]
    return flat[0] if len(flat) == 1 else Union(tuple(flat))


def _same(left: Value, right: Value) -> bool:
    if isinstance(left, Host) and isinstance(right, Host):
        same = left.const is right.const if left.const is NOTHING or right.const is NOTHING else left.const == right.const
        return same and (left.data, left.kind) == (right.data, right.kind) and type(left.const) is type(right.const)
    if isinstance(left, Ext) and isinstance(right, Ext):
        return left.name == right.name
    return isinstance(left, Tensor) and isinstance(right, Tensor) and left.buffers == right.buffers


def likely(value: Value) -> tuple[Value, ...]:
    """Return what a value may be where None would raise: it has no attribute, no element, and nobody can call it."""
    found = options(value)
    some = tuple(option for option in found if not (isinstance(option, Host) and option.const is None))
    return some or found


def options(value: Value) -> tuple[Value, ...]:
    """Return what a value may be."""
    return value.options if isinstance(value, Union) else (value,)


def tensors_in(value: Value, depth: int = 6) -> list[Tensor]:
    """Return every tensor that a value is or holds."""
    if isinstance(value, Tensor):
        return [value]
    if depth == 0:
        return []
    parts: list[Value] = []
    if isinstance(value, Union):
        parts = list(value.options)
    elif isinstance(value, Container):
        parts = value.members()
    elif isinstance(value, (TensorMethod, Storage)):
        parts = [value.tensor]
    elif isinstance(value, Instance) and not value.cls.extends("torch.nn."):
        parts = list(value.attributes.values())
    return [tensor for part in parts for tensor in tensors_in(part, depth - 1)]


def holds_data(value: Value) -> bool:
    """Whether a value is, holds or was read out of a tensor."""
    if isinstance(value, Host):
        return value.data
    if isinstance(value, Union):
        return any(holds_data(option) for option in value.options)
    if isinstance(value, Container):
        return any(holds_data(item) for item in value.members())
    return bool(tensors_in(value))
