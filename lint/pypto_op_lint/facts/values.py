"""What an expression may stand for, as far as the file alone tells."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import libcst as cst

from pypto_op_lint.pypto_names import names
from pypto_op_lint.tree import Function, Parameter, Scope


@dataclass(frozen=True)
class Path:
    """Something that other code defines: `pypto.loop`, `torch.empty`, `builtins.min`."""

    name: str

    @staticmethod
    def of(name: str) -> Path:
        """Return what a dotted name stands for, where pypto has it under another name too under that one."""
        return Path(names().aliases.get(name, name) if name.startswith("pypto.") else name)


@dataclass(frozen=True)
class Const:
    """A number, string, bool, None or bytes whose value is known. `kind` keeps True and 1 apart."""

    value: Any
    kind: str

    @staticmethod
    def of(value: Any) -> Const:
        """Wrap a plain Python value."""
        return Const(value, type(value).__name__)


@dataclass(frozen=True, eq=False)
class Seq:
    """A list, tuple or set; each item is the set of what it may be. A named tuple's items have names."""

    kind: str
    items: tuple[tuple[Value, ...], ...]
    names: tuple[str, ...] = ()


class _Any(Enum):
    KEY = "any key"


ANY = _Any.KEY
"""The key of entries whose key is not known."""


@dataclass(frozen=True, eq=False)
class Table:
    """A dict, a SimpleNamespace, or an instance's known attributes.

    Keys are constants, `Path` for foreign names (`torch.float32`), and `ANY` for those that are not known.
    """

    entries: dict[Any, tuple[Value, ...]]


@dataclass(frozen=True)
class Func:
    """A function of the file, perhaps with leading arguments already bound (a method, a partial).

    `via_jit` tells that `pypto.frontend.jit(f)` was called instead of being written as a decorator.
    """

    function: Function
    bound: int = 0
    via_jit: bool = False


@dataclass(frozen=True)
class Cls:
    """A class of the file."""

    node: cst.ClassDef = field(hash=False)
    scope: Scope


@dataclass(frozen=True)
class Instance:
    """An object of a class of the file, made by `call` where that is known."""

    cls: Cls
    call: cst.Call | None = None


@dataclass(frozen=True)
class Param:
    """A parameter whose arguments are not all known."""

    function: Function
    parameter: Parameter


@dataclass(frozen=True)
class Result:
    """What a call of foreign code returned: `Result("torch.empty", call)`."""

    callee: str
    call: cst.Call


@dataclass(frozen=True)
class Member:
    """An attribute or item of something that is not known further: `x.shape`, `x.shape[0]`."""

    base: Value
    name: str


@dataclass(frozen=True)
class Unknown:
    """Nothing is known."""


Value = Path | Const | Seq | Table | Func | Cls | Instance | Param | Result | Member | Unknown
UNKNOWN = Unknown()
NOTHING_KNOWN: tuple[Value, ...] = (UNKNOWN,)
