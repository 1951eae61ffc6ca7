"""What a wrapper returns where a tensor has no element: `if x.numel() == 0: return x`.

There is nothing to compute then, so an answer that no kernel wrote is no loss. Where a case comes there all the same, the run
compares what is returned, and asks where its bytes come from.
"""

from __future__ import annotations

from pypto_op.triton.static.machine import YES, Machine
from pypto_op.triton.static.values import Container, Host, Tensor, Union, Value, holds_data, options, union
from pypto_op_lint.constants import NOTHING

SIZES, SIZE, EMPTY = "sizes", "size", "no element"
"""Kinds of `Host`: a shape, a size along an axis or a product of such, and a comparison that is true where a size is zero."""
_COUNTS = frozenset({"numel", "nelement", "__len__"})
_ZERO = {"Equal": 0, "LessThanEqual": 0, "LessThan": 1}
"""Comparisons of a size with these numbers are true only where it is zero."""
_MIRRORED = {"Equal": "Equal", "GreaterThanEqual": "LessThanEqual", "GreaterThan": "LessThan"}


def attribute(name: str) -> str:
    """Return the kind of what `tensor.name` says of a tensor; "" for what is no size."""
    return SIZES if name == "shape" else ""


def counted(name: str, given: list[Value]) -> Host | None:
    """Return what a method of a tensor, or a function that is given one, says of its size; None for anything else.

    Args:
        name: `numel`, `size`; of a function its full name (`builtins.len`, `math.prod`).
        given: the tensor, and what else the call gets.
    """
    first = given[0] if given else Host()
    if name == "math.prod" and len(given) == 1 and _is(first, SIZES):
        return Host(kind=SIZE)
    if not isinstance(first, Tensor):
        return None
    if name in _COUNTS or name == "builtins.len":
        return Host(kind=SIZE)
    return Host(kind=SIZE if len(given) > 1 else SIZES) if name == "size" else None


def part(owner: Value, key: Value | None = None) -> Host:
    """Return an element, or a slice, of what holds no tensors: of a shape it is a size, or again sizes."""
    if not _is(owner, SIZES):
        return Host(data=holds_data(owner))
    return Host(kind=SIZES if isinstance(key, Host) and key.is_slice else SIZE)


def combined(left: Value, right: Value, name: str) -> Host:
    """Return what an operator makes of two numbers of the host that are not known; of sizes only products are sizes again."""
    if name == "Multiply" and _is(left, SIZE) and _is(right, SIZE):
        return Host(kind=SIZE)
    if _is(right, SIZE):
        left, right, name = right, left, _MIRRORED.get(name, "")
    number = right.const if isinstance(right, Host) else NOTHING
    return Host(kind=EMPTY if _is(left, SIZE) and name in _ZERO and number is not NOTHING and number == _ZERO[name] else "")


def negated(value: Value) -> Host:
    """Return `not value`, whose truth is not known."""
    return Host(kind=EMPTY if _is(value, SIZE) else "")


def found_in(number: Value, among: Value, known: Host, name: str) -> Host:
    """Return `known`, what is known of `number in among`, or that it shows a size of zero: `0 in x.shape`."""
    zero = isinstance(number, Host) and number.const is not NOTHING and number.const == 0
    return Host(kind=EMPTY) if known.const is NOTHING and name == "In" and zero and _is(among, SIZES) else known


def shown(test: Value) -> bool:
    """Whether a condition is true only where some size is zero: each of those that `or` joins."""
    return all(_is(option, EMPTY) for option in options(test))


def answer(machine: Machine, test: Value, value: Value) -> Value:
    """Return what is handed on where a condition holds: where it shows that a size is zero, no kernel need have written it."""
    return written(machine, value) if shown(test) else value


def written(machine: Machine, value: Value) -> Value:
    """Return a value whose tensors need no kernel; what PyTorch computed stays that."""
    if isinstance(value, Tensor):
        computed = any(buffer.origin == "computed" for buffer in value.buffers)
        return value if computed else machine.fresh(written=YES)
    if isinstance(value, Union):
        return union([written(machine, option) for option in value.options])
    if isinstance(value, Container):
        keyed = {key: written(machine, held) for key, held in value.keyed.items()}
        return Container(value.kind, [written(machine, held) for held in value.items], keyed, value.complete)
    return value


def _is(value: Value, kind: str) -> bool:
    return isinstance(value, Host) and value.kind == kind and not value.data
