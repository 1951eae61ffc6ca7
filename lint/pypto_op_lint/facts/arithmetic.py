"""Constants: literals, operators and the few pure builtins that kernels use to write numbers down."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import libcst as cst

from pypto_op_lint import constants
from pypto_op_lint.facts.values import ANY, NOTHING_KNOWN, UNKNOWN, Const, Member, Result, Seq, Table, Value

if TYPE_CHECKING:
    from pypto_op_lint.facts.evaluator import Evaluator

_PURE: dict[str, Callable[..., Any]] = {
    "builtins.min": min, "builtins.max": max, "builtins.int": int, "builtins.float": float, "builtins.abs": abs,
    "builtins.bool": bool, "builtins.sum": sum, "builtins.pow": pow, "builtins.round": round, "builtins.str": str,
    "math.gcd": math.gcd, "math.lcm": math.lcm, "math.ceil": math.ceil, "math.floor": math.floor,
    "math.sqrt": math.sqrt, "math.log2": math.log2, "math.prod": math.prod,
}  # fmt: skip
_LONGEST = 4096


def literal(ev: Evaluator, node: Any) -> Iterable[Value]:
    """Value of a number or string."""
    return (_known(constants.literal(node)),)


def _known(value: Any) -> Value:
    return UNKNOWN if value is constants.NOTHING else Const.of(value)


def binary(ev: Evaluator, node: cst.BinaryOperation) -> Iterable[Value]:
    """Value of an arithmetic operation on constants, and of `+` and `*` on lists and tuples."""
    function = constants.BINARY.get(type(node.operator))
    if function is None:
        return NOTHING_KNOWN
    return [_apply(function, left, right) for left in ev.values(node.left) for right in ev.values(node.right)]


def _apply(function: Callable[[Any, Any], Any], left: Value, right: Value) -> Value:
    if isinstance(left, Seq) and isinstance(right, Seq) and function is operator.add:
        return Seq(left.kind, left.items + right.items)
    if isinstance(left, Const) and isinstance(right, Seq) and function is operator.mul:
        left, right = right, left
    if isinstance(left, Seq) and isinstance(right, Const) and function is operator.mul:
        if isinstance(right.value, int) and len(left.items) * right.value <= _LONGEST:
            return Seq(left.kind, left.items * right.value)
        return UNKNOWN
    both = isinstance(left, Const) and isinstance(right, Const)
    return _known(constants.fold(function, left.value, right.value)) if both else UNKNOWN  # type: ignore[union-attr]


def unary(ev: Evaluator, node: cst.UnaryOperation) -> Iterable[Value]:
    """Value of `-x`, `+x`, `~x`, `not x`."""
    function = constants.UNARY[type(node.operator)]
    values = ev.values(node.expression)
    return [_known(constants.fold(function, v.value)) if isinstance(v, Const) else UNKNOWN for v in values]


def comparison(ev: Evaluator, node: cst.Comparison) -> Iterable[Value]:
    """Truth of a comparison of two constants."""
    if len(node.comparisons) != 1:
        return NOTHING_KNOWN
    function = constants.COMPARE.get(type(node.comparisons[0].operator))
    left, right = ev.constant(node.left), ev.constant(node.comparisons[0].comparator)
    if function is None or left is None or right is None:
        return NOTHING_KNOWN
    return (_known(constants.fold(function, left.value, right.value)),)


def formatted(ev: Evaluator, node: cst.FormattedString) -> Iterable[Value]:
    """Value of an f-string all of whose parts are known."""
    text = ""
    for part in node.parts:
        if isinstance(part, cst.FormattedStringText):
            text += part.value
            continue
        found = ev.constant(part.expression) if isinstance(part, cst.FormattedStringExpression) else None
        if found is None or part.format_spec or part.conversion:  # type: ignore[attr-defined]
            return NOTHING_KNOWN
        text += str(found.value)
    return (Const.of(text),)


def method_call(ev: Evaluator, node: cst.Call) -> Iterable[Value]:
    """Value of a call of a pure method: a dict's views, `"_".join(...)`, `"{}_x".format(...)`; () for any other."""
    if not isinstance(node.func, cst.Attribute) or any(arg.star or arg.keyword for arg in node.args):
        return ()
    word = node.func.attr.value
    if word not in ("values", "keys", "items", "join", "format", "replace", "lower", "upper", "strip"):
        return ()
    base = ev.values(node.func.value)
    if len(base) != 1:
        return ()
    if isinstance(base[0], Table) and not node.args and ANY not in base[0].entries:
        rows = base[0].entries.items()
        items: list[tuple[Value, ...]] = [(Seq("tuple", ((Const.of(key),), value)),) for key, value in rows]
        if word != "items":
            items = [value if word == "values" else (Const.of(key),) for key, value in rows]
        return (Seq("list", tuple(items)),)
    if not isinstance(base[0], Const) or not isinstance(base[0].value, str):
        return ()
    return _text(ev, base[0].value, word, node)


def _text(ev: Evaluator, text: str, word: str, node: cst.Call) -> Iterable[Value]:
    given: list[Any] = []
    for arg in node.args:
        values = ev.values(arg.value)
        one = values[0] if len(values) == 1 else None
        parts = _constants(one) if isinstance(one, Seq) else [one]
        plain = [c.value for c in parts if isinstance(c, Const)]
        if len(plain) != len(parts):
            return ()
        given.append(plain if isinstance(one, Seq) else plain[0])
    try:
        made = getattr(text, word)(*given) if word not in ("values", "keys", "items") else None
    except (TypeError, ValueError, IndexError, KeyError, AttributeError):
        return ()
    return (Const.of(made),) if isinstance(made, str) and len(made) <= _LONGEST else ()


def builtin_call(ev: Evaluator, name: str, node: cst.Call) -> Iterable[Value] | None:
    """Value of a call of a pure builtin on constants; None when it is none or its arguments are not known."""
    arguments = [arg for arg in node.args if not arg.star]
    if len(arguments) != len(node.args):
        return None
    if name in ("builtins.dict", "types.SimpleNamespace") and all(a.keyword for a in arguments):
        return (Table({a.keyword.value: ev.values(a.value) for a in arguments if a.keyword}),)
    if any(arg.keyword for arg in arguments):
        return None
    first = ev.values(arguments[0].value) if arguments else ()
    sequence = first[0] if len(first) == 1 and isinstance(first[0], Seq) else None
    if name in ("builtins.list", "builtins.tuple", "builtins.set", "builtins.sorted", "builtins.frozenset"):
        return _as_sequence(ev, name, first)
    if name == "builtins.len" and sequence is not None:
        return (Const.of(len(sequence.items)),)
    if name not in _PURE:
        return None
    given = _constants(sequence) if sequence is not None else [ev.constant(a.value) for a in arguments]
    plain = [c.value for c in given if c is not None]
    if len(plain) != len(given) or not plain:
        return None
    function = _PURE[name]
    found = constants.fold(function, plain) if function in (sum, math.prod) else constants.fold(function, *plain)
    return None if found is constants.NOTHING else (Const.of(found),)


def _constants(sequence: Seq) -> list[Const | None]:
    return [i[0] if len(i) == 1 and isinstance(i[0], Const) else None for i in sequence.items]


def _as_sequence(ev: Evaluator, name: str, first: tuple[Value, ...]) -> Iterable[Value] | None:
    kind = name.rsplit(".", 1)[1].replace("sorted", "list").replace("frozenset", "set")
    if not first:
        return (Seq(kind, ()),)
    if len(first) == 1 and isinstance(first[0], Seq):
        return (Seq(kind, first[0].items),)
    if len(first) == 1 and isinstance(first[0], Result):
        numbers = range_numbers(first[0], ev)
        if numbers is not None and len(numbers) <= _LONGEST:
            return (Seq(kind, tuple((Const.of(n),) for n in numbers)),)
    return None


def range_numbers(value: Result, ev: Evaluator) -> range | None:
    """Return the numbers of a `range(...)` with constant arguments."""
    if value.callee != "builtins.range" or any(arg.star or arg.keyword for arg in value.call.args):
        return None
    bounds = [ev.constant(arg.value) for arg in value.call.args]
    numbers = [c.value for c in bounds if c is not None and isinstance(c.value, int)]
    if len(numbers) != len(bounds) or not 1 <= len(numbers) <= 3 or (len(numbers) == 3 and not numbers[2]):
        return None
    return range(*numbers)


def comprehension(ev: Evaluator, node: cst.ListComp | cst.SetComp | cst.GeneratorExp) -> Iterable[Value]:
    """A comprehension over something of known length is a sequence of that length with unknown items."""
    over = ev.values(node.for_in.iter)
    nested = node.for_in.inner_for_in is not None or node.for_in.ifs
    if len(over) == 1 and not nested:
        length: int | None = None
        if isinstance(over[0], Seq):
            length = len(over[0].items)
        elif isinstance(over[0], Result):
            numbers = range_numbers(over[0], ev)
            length = len(numbers) if numbers is not None else None
        if length is not None and length <= _LONGEST:
            item = ev.values(node.elt)
            return (Seq("list", (item if length == 1 else NOTHING_KNOWN,) * length),)
    return (Member(UNKNOWN, "[for]"),)
