"""What some builtins answer, where that is known: `isinstance` of a tensor, `float(1)`, names that `getattr` reaches for."""

from __future__ import annotations

from pypto_op.triton.static.gradients import CONTEXT
from pypto_op.triton.static.kernels import Kernel, Launcher
from pypto_op.triton.static.suspects import SUSPECT
from pypto_op.triton.static.values import (
    ClassValue,
    Container,
    Ext,
    Function,
    Host,
    Instance,
    Member,
    Tensor,
    Value,
    Wrapping,
    options,
    tensors_in,
)

_DISTRIBUTED = ("torch.distributed.tensor.DTensor", "torch.distributed._tensor.DTensor")
_BACKENDS = ("cuda", "npu")
"""Modules of torch that a device's type leads to. That of the CPU has no further names that the policy allows."""
_CONSTEXPR = ("triton.language.constexpr", "triton.language.core.constexpr")
_REACHES = frozenset(
    {f"builtins.{name}" for name in ("getattr", "setattr", "delattr", "vars", "eval", "exec", "compile", "__import__", "dir")}
    | {"operator.attrgetter", "operator.methodcaller", "builtins.object.__getattribute__", "builtins.type.__getattribute__"}
)
_MAKES_OPERATORS = ("torch.library.custom_op", "torch.library.triton_op")
_PLAIN = frozenset(f"builtins.{name}" for name in ("list", "tuple", "dict", "set", "int", "float", "bool", "str", "complex"))
_NUMBERS = {"builtins.float": float, "builtins.int": int, "builtins.bool": bool}


def is_instance(args: list[Value], *, on_device: bool = False) -> Value:
    """Return whether a value is a tensor, where that is known; anything else that isinstance is asked is not.

    No tensor is a distributed one: forward is given plain ones, and may not make such.

    Args:
        args: the value and the kinds.
        on_device: what forward is given is known to be tensors, so none of it is a list or a number.
    """
    if len(args) != 2:
        return Host()
    value, kind = args
    if on_device and _are_plain(kind) and all(_is_given(option) for option in options(value)):
        return Host(False)
    if all(map(_is_distributed, options(kind))):
        return Host(False) if all(isinstance(option, Tensor) for option in options(value)) else Host()
    if isinstance(kind, Ext) and kind.name == "torch.Tensor":
        kinds = {isinstance(option, Tensor) for option in options(value)}
        sure = all(
            isinstance(option, (Tensor, Ext, Container, Function, Kernel)) or _is_constant(option) or _is_context(option)
            for option in options(value)
        )
        doubtful = any(buffer.origin == SUSPECT for tensor in tensors_in(value) for buffer in tensor.buffers)
        return Host(kinds.pop()) if sure and len(kinds) == 1 and not doubtful else Host()
    return Host()


def _is_given(value: Value) -> bool:
    return isinstance(value, Tensor) and all(buffer.origin == "input" for buffer in value.buffers)


def _are_plain(kind: Value) -> bool:
    """Whether a class, or each of a tuple of classes, is one of Python's own: no tensor is of it."""
    kinds = kind.members() if isinstance(kind, Container) and kind.kind == "tuple" and kind.complete else [kind]
    return bool(kinds) and all(isinstance(one, Ext) and one.name in _PLAIN for one in kinds)


def _is_context(value: Value) -> bool:
    return isinstance(value, Instance) and value.cls.extends(CONTEXT)


def _is_constant(value: Value) -> bool:
    return isinstance(value, Host) and isinstance(value.const, (str, bool, int, float))


def _is_distributed(kind: Value) -> bool:
    """Whether a class is that of distributed tensors; `()` stands for it where the import failed, and nothing is one of `()`."""
    if isinstance(kind, Container):
        return kind.kind == "tuple" and kind.complete and not kind.members()
    return isinstance(kind, Ext) and kind.name in _DISTRIBUTED


def number(name: str, args: list[Value], kwargs: dict[str, Value]) -> Host | None:
    """Return the constant that `float(1)` or `tl.constexpr(1)` stands for; None for anything else."""
    value = args[0].const if len(args) == 1 and not kwargs and isinstance(args[0], Host) and not args[0].data else None
    if not isinstance(value, (bool, int, float)):
        return None
    if name in _CONSTEXPR:
        return Host(value)
    try:
        return Host(_NUMBERS[name](value)) if name in _NUMBERS else None
    except (ValueError, OverflowError):
        return None


def is_in(value: Value, among: Value, wanted: bool) -> Host:
    """Return whether a constant is one of a tuple of constants, where that is known."""
    if not isinstance(among, Container) or among.kind != "tuple" or not among.complete or among.keyed:
        return Host()
    if not all(map(_is_constant, (value, *among.items))):
        return Host()
    consts = [item.const for item in (value, *among.items) if isinstance(item, Host)]
    return Host((consts[0] in consts[1:]) is wanted)


def words_of(name: Value, owner: Value) -> tuple[str | None, ...]:
    """Return the words that the name of an attribute may be; None for one that is not known."""
    if isinstance(name, Host) and isinstance(name.const, str):
        return (name.const,)
    if isinstance(name, Host) and name.kind == "device type" and isinstance(owner, Ext) and owner.name == "torch":
        return _BACKENDS
    return (None,)


def reaching(values: list[Value], depth: int = 4) -> str:
    """Return the name of a function among values, and in containers, that reaches for things by their names; "" for none."""
    for value in values:
        for option in options(value):
            if isinstance(option, Ext) and option.name in _REACHES:
                return option.name
            inner = reaching(option.members(), depth - 1) if isinstance(option, Container) and depth else ""
            if inner:
                return inner
    return ""


def operator(name: str, args: list[Value]) -> str:
    """Return the operator that a decorator of `torch.library` makes of a function ("space::name"); "" for another decorator."""
    word = args[0].const if args and isinstance(args[0], Host) else None
    return word if name in _MAKES_OPERATORS and isinstance(word, str) else ""


def identity(left: Value, right: Value, same: bool) -> Value:
    """Return what `left is right` is, or `left is not right` where not `same`; what no file's own object is is not known."""
    none_left = isinstance(left, Host) and left.const is None
    none_right = isinstance(right, Host) and right.const is None
    if none_left and none_right:
        return Host(same)
    for value, other in ((left, none_right), (right, none_left)):
        if other and isinstance(value, (Kernel, Function, ClassValue, Launcher, Container, Wrapping, Member)):
            return Host(not same)
    return Host()
