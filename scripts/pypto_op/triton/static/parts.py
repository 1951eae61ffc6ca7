"""What the parts of the interpreter ask of one another. To read a part, read this module beside it.

A part is made by `interpreter.new_machine` and reaches the others through the machine that it was given, since expressions
hold calls, calls run statements, and statements hold expressions.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

import libcst as cst

from pypto_op.triton.static.source import SourceFile
from pypto_op.triton.static.values import Buffer, ClassValue, Container, Instance, Scope, Value, Wrapping


class Expressions(Protocol):
    """Says what kind of value an expression has (`evaluate`)."""

    def evaluate(self, node: cst.CSTNode, scope: Scope) -> Value:
        """Return the kind of value of an expression."""
        ...

    def annotation(self, note: cst.Annotation, scope: Scope) -> None:
        """Evaluate an annotation that calls or binds something."""

    def truth(self, value: Value) -> bool | None:
        """Return whether a condition holds; None when that is not known."""
        ...

    def item_of(self, value: Value) -> Value:
        """Return what iterating over a value yields."""
        ...

    def combine(self, node: cst.CSTNode, source: SourceFile, left: Value, right: Value, name: str) -> Value:
        """Return the result of an operator between two values."""
        ...

    def index(self, slices: Any, scope: Scope) -> Value:
        """Return the value between the brackets of a subscript."""
        ...

    def select(self, owner: Value, key: Value, node: cst.CSTNode, source: SourceFile) -> Value:
        """Return what a subscript yields."""
        ...


class Statements(Protocol):
    """Executes statements (`execute`)."""

    def module(self, source: SourceFile) -> Scope:
        """Execute a file; return its names."""
        ...

    def body(self, suite: cst.BaseSuite, scope: Scope) -> bool:
        """Execute a block; return whether its end can be reached."""
        ...

    def assign(self, target: cst.BaseExpression, value: Value, scope: Scope) -> None:
        """Bind a target."""
        ...

    def set_attribute(self, owner: Value, name: str, value: Value, node: cst.CSTNode, scope: Scope) -> None:
        """Bind an attribute."""
        ...

    def deny_keeping(self, node: cst.CSTNode, value: Value, scope: Scope) -> None:
        """Deny that a result is kept for a later call."""
        ...


class Calls(Protocol):
    """Calls functions, classes, kernels and libraries (`calls`, `builtin_calls`)."""

    def evaluate(self, node: cst.Call, scope: Scope) -> Value:
        """Return the result of a call expression."""
        ...

    def call(self, callee: Value, args: list[Value], kwargs: dict[str, Value], node: cst.CSTNode, source: SourceFile) -> Value:
        """Return the result of a call whose parts are known."""
        ...

    def define(self, node: cst.FunctionDef | cst.Lambda, scope: Scope) -> Value:
        """Return what a function definition binds."""
        ...

    def decorate(self, decorator: Value, value: Value, node: cst.CSTNode, source: SourceFile) -> Value:
        """Return what a decorator makes of a function or class."""
        ...

    def wrapping(self, name: str) -> Wrapping | None:
        """Return what a decorator of this name does; None when it is not known."""
        ...

    def entered(self, value: Value, node: cst.CSTNode, source: SourceFile) -> Value:
        """Return what `with` binds."""
        ...

    def bind_early(
        self, callee: Value, args: list[Value], kwargs: dict[str, Value], node: cst.CSTNode, source: SourceFile
    ) -> Value:
        """Return what `functools.partial` makes."""
        ...


class Members(Protocol):
    """Looks up attributes (`members`)."""

    def get(self, owner: Value, name: str, node: cst.CSTNode, source: SourceFile) -> Value:
        """Return an attribute."""
        ...

    def find(self, owner: Instance, name: str, node: cst.CSTNode | None = None, source: SourceFile | None = None) -> Value | None:
        """Return an instance's own attribute or its class's; None where there is none."""
        ...

    def check(self, name: str, node: cst.CSTNode, source: SourceFile) -> None:
        """Deny what the policy forbids by name."""
        ...


class Imports(Protocol):
    """Executes imports (`imports`)."""

    def module(self, name: str, node: cst.CSTNode, source: SourceFile) -> Value:
        """See `imports.Imports`."""
        ...

    def plain(self, alias: cst.ImportAlias, scope: Scope) -> None:
        """Bind `import name`."""
        ...

    def chosen(self, node: cst.ImportFrom, scope: Scope) -> None:
        """Bind `from name import ...`."""
        ...

    def fallback(self, node: cst.Try | cst.TryStar, source: SourceFile) -> cst.ExceptHandler | cst.ExceptStarHandler | None:
        """See `imports.Imports`."""
        ...


class Following(Protocol):
    """Executes what the file hands to code that is not followed (`following`)."""

    def callables(self, value: Value) -> list[Value]:
        """Return the functions and callable objects of the file in a value."""
        ...

    def hand_over(self, name: str, given: list[Value], node: cst.CSTNode, source: SourceFile) -> list[Value]:
        """Execute what a call of `name` may call back; return what comes back."""
        ...

    def launch(self, hooks: Iterable[Value], given: dict[str, Value], node: cst.CSTNode, source: SourceFile) -> None:
        """Execute what a launch calls on the host."""
        ...

    def rest(self) -> None:
        """Execute what Python and others may call unseen."""
        ...


class Records(Protocol):
    """Makes objects of the file's classes (`records`)."""

    def make(
        self, cls: ClassValue, args: list[Value], kwargs: dict[str, Value], node: cst.CSTNode, source: SourceFile
    ) -> Instance:
        """Return a new object."""
        ...

    def call(self, name: str, args: list[Value], kwargs: dict[str, Value], node: cst.CSTNode, source: SourceFile) -> Value | None:
        """Return the result of `namedtuple`, `SimpleNamespace`, `dataclasses.replace` and the like; None for another name."""
        ...

    def method(self, owner: Instance, name: str, kwargs: dict[str, Value]) -> Value:
        """Return the result of `_asdict` and the like."""
        ...

    def as_tuple(self, value: Value) -> Value:
        """Return a named tuple as a tuple, an object that can be iterated as a list, anything else as it is."""
        ...


class Gradients(Protocol):
    """Follows the file's own autograd functions (`gradients`)."""

    def apply(
        self, owner: ClassValue, args: list[Value], kwargs: dict[str, Value], node: cst.CSTNode, source: SourceFile
    ) -> Value | None:
        """Apply a class."""

    def save(self, context: Instance, tensors: list[Value]) -> None:
        """Keep tensors for backward."""

    def grad(self, args: list[Value], kwargs: dict[str, Value], node: cst.CSTNode, source: SourceFile) -> Value | None:
        """Ask for gradients."""


class Tables(Protocol):
    """Changes containers (`tables`)."""

    def put(self, owner: Container, key: Value, value: Value) -> None:
        """Bind an element."""

    def given(self, name: str, args: list[Value]) -> None:
        """Let a function that is not known change what it is given."""

    def shuffle(self, owner: Container) -> None:
        """Forget the order of members."""

    def called(self, name: str, args: list[Value]) -> str | None:
        """Return the method that a function of the library calls on its first argument."""
        ...

    def method(
        self, owner: Container, name: str, args: list[Value], kwargs: dict[str, Value], node: cst.CSTNode, source: SourceFile
    ) -> Value:
        """Call a method of a container."""
        ...


class Suspects(Protocol):
    """Arguments that may be tensors or numbers (`suspects`)."""

    numbers: set[Buffer]
    tensors: set[Buffer]

    def as_tensor(self, values: Iterable[Value], node: cst.CSTNode, source: SourceFile) -> None:
        """Note that values are used as tensors."""
        ...

    def as_number(self, values: Iterable[Value]) -> Value | None:
        """Return the result of arithmetic on suspects; None where none is among the values."""
        ...

    def confirm(self, values: Iterable[Value]) -> None:
        """Note that values are used as numbers."""
        ...
