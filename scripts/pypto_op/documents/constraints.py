"""SPEC.md's `shape_constraints` as far as they are arithmetic: `D == 32`, `S % BT == 0`, `H <= 8 * 128`. Never `eval`.

A few sentences are arithmetic too: "S is a multiple of 64", "G divides H", "D must be even", "K is a power of two".
They may also be about whole numbers that are inputs: a scalar (`1 <= groups`), or every value of a tensor (`0 <= labels < C`).
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any

from pypto_op.python_text import UNREADABLE, NoNumber, evaluate, expression, names_in

Number = int | Fraction

_ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Div: Fraction,
    ast.BitAnd: operator.and_,
}
_COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.Is: operator.eq,  # "S % 64 is 0"
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_LONGEST = 400
_SIGNS = str.maketrans({"≤": "<=", "≥": ">=", "≠": "!=", "×": "*", "·": "*"})
_MODULO = re.compile(r"\s+mod(?:ulo)?\s+(?=\w)")
_ONE_EQUALS = re.compile(r"(?<![=<>!])=(?!=)")
_NAMES = r"(?P<names>[A-Za-z_]\w*(?:\s*(?:,|/|&|\band\b|和|、)\s*[A-Za-z_]\w*)*)"
_LINK = r"\s*(?:\b(?:is|are|be|must|has|have|to|should|both|each|all|a|an|need|needs|always)\b\s*|必须\s*|应\s*|是\s*|为\s*)*"
_END = r"\s*(?:[.;,(:。，；（]|$)"
_SENTENCES = tuple(
    (re.compile(pattern + _END, re.ASCII), form)
    for pattern, form in (
        (_NAMES + _LINK + r"(?:multiples?\s+of|(?:evenly\s+)?divisible\s+by)\s+(?P<of>\w+)", "{} % {} == 0"),
        (_NAMES + _LINK + r"(?P<of>\w+)\s*的(?:整数)?倍数", "{} % {} == 0"),
        (_NAMES + _LINK + r"(?:能|可)?被\s*(?P<of>\w+)\s*整除", "{} % {} == 0"),
        (r"(?P<of>\w+)\s+(?:must\s+)?divides?\s+" + _NAMES, "{} % {} == 0"),
        (_NAMES + _LINK + r"(?P<of>even)", "{} % 2 == 0"),
        (_NAMES + _LINK + r"(?P<of>odd)", "{} % 2 == 1"),
        (_NAMES + _LINK + r"powers?\s+of\s+(?P<of>two|2)", "({0} & ({0} - 1)) == 0"),
    )
)


class _Prose(NoNumber):
    """A constraint is a sentence for people, or speaks of something else than sizes."""


_UNREADABLE = (*UNREADABLE, NoNumber)


def satisfied(constraints: Iterable[str], sizes: Mapping[str, int]) -> bool:
    """Whether `sizes` satisfy every constraint that can be read; sentences for people count as satisfied."""
    return all(_holds(text, sizes) for text in constraints)


def divide(constraints: Iterable[str], axis: str, sizes: Mapping[str, int]) -> bool:
    """Whether a constraint that can be read is about what divides `axis`: then other sizes than those in `sizes` are meant."""
    for text in constraints:
        tree = read(text)
        if tree is None or not _readable(tree, sizes):
            continue
        rests = [node.left for node in ast.walk(tree) if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod)]
        if any(isinstance(node, ast.Name) and node.id == axis for node in rests):
            return True
    return False


def mentioned(constraints: Iterable[str], name: str) -> bool:
    """Whether a constraint that is a comparison names `name`."""
    return any(name in names_in(side) for comparison in comparisons(constraints) for side in comparison[::2])


def limits(constraints: Iterable[str], name: str, symbols: Collection[str]) -> tuple[str, str]:
    """Return the least value of `name` and the first one that is too large, as expressions of `symbols`; "" for none said."""
    low = high = ""
    for op, end in about(constraints, {name}):
        if names_in(end) <= set(symbols):
            bound = ast.unparse(end)
            low = {ast.GtE: bound, ast.Gt: f"{bound} + 1"}.get(type(op), low)
            high = {ast.Lt: bound, ast.LtE: f"{bound} + 1"}.get(type(op), high)
    return low, high


def whole_ends(constraints: Collection[str], name: str, sizes: Mapping[str, int]) -> tuple[int | None, int | None] | None:
    """Return the least and the greatest value of a whole-number input, None for an end that is not said.

    Of several ends the narrowest counts: a window of 4 at most that is no longer than the row.

    Returns:
        None instead of both where a condition compares `name` with something else than sizes, or cannot be read.
    """
    for text in constraints:
        tree = read(text)
        if tree is None and re.search(rf"\b{re.escape(name)}\b", text):
            return None
        if tree is not None and name in names_in(tree) and not names_in(tree) <= {name, *sizes}:
            return None
    lows, beyond = zip(*(limits([text], name, sizes) for text in constraints), strict=True) if constraints else ((), ())
    least, first_too_large = ([value_of(read(end) or ast.Constant(""), sizes) for end in ends if end] for ends in (lows, beyond))
    low = max((value for value in least if value is not None), default=None)
    high = min((value for value in first_too_large if value is not None), default=None)
    return low, None if high is None else high - 1


def comparisons(constraints: Iterable[str]) -> Iterator[tuple[ast.expr, ast.cmpop, ast.expr]]:
    """Yield left, operator and right of each comparison, of a chain one by one; `and` joins them."""
    for part in parts(constraints):
        if isinstance(part, ast.Compare):
            yield from zip((part.left, *part.comparators), part.ops, part.comparators, strict=False)


def about(constraints: Iterable[str], own: Collection[str]) -> Iterator[tuple[ast.cmpop, ast.expr]]:
    """Yield operator and other side of each comparison of which one side is a name of `own`, as if that stood on the left."""
    for left, op, right in comparisons(constraints):
        if isinstance(left, ast.Name) and left.id in own:
            yield op, right
        elif isinstance(right, ast.Name) and right.id in own:
            yield _MIRRORED.get(type(op), op), left


_MIRRORED: dict[type[ast.cmpop], ast.cmpop] = {ast.Gt: ast.Lt(), ast.GtE: ast.LtE(), ast.Lt: ast.Gt(), ast.LtE: ast.GtE()}


def unheeded(constraints: Iterable[str], sizes: Collection[str], inputs: Collection[str]) -> list[str]:
    """Return the conditions that no draw is made to obey: prose, one on a part of a tensor, or on several tensors together.

    Args:
        constraints: as SPEC.md has them.
        sizes: names of axes and scalars.
        inputs: names of tensors.
    """
    return [
        text for text in constraints if read(text) is None or not all(_is_heeded(part, sizes, inputs) for part in parts([text]))
    ]


def _is_heeded(part: ast.expr, sizes: Collection[str], inputs: Collection[str]) -> bool:
    """Whether a condition is about sizes alone, or compares each value of a tensor with them."""

    def is_an_end(own: ast.expr, end: ast.expr) -> bool:
        return isinstance(own, ast.Name) and own.id in inputs and _is_of_sizes(end, sizes)

    if not isinstance(part, ast.Compare):
        return _is_of_sizes(part, sizes)
    pairs = zip((part.left, *part.comparators), part.ops, part.comparators, strict=False)
    return all(
        (_is_of_sizes(left, sizes) and _is_of_sizes(right, sizes))
        or (type(op) in _MIRRORED and (is_an_end(left, right) or is_an_end(right, left)))
        for left, op, right in pairs
    )


def _is_of_sizes(node: ast.expr, sizes: Collection[str]) -> bool:
    """Whether an expression is arithmetic of sizes and scalars."""
    return not reads_parts(node) and names_in(node) <= set(sizes)


def reads_parts(*nodes: ast.expr) -> bool:
    """Whether expressions call something, or take an attribute or an element: `labels[:, 0]`, `labels.sum()`."""
    return any(isinstance(part, ast.Call | ast.Attribute | ast.Subscript) for node in nodes for part in ast.walk(node))


def equalities(constraints: Iterable[str]) -> Iterator[tuple[set[str], set[str]]]:
    """Yield the names on either side of each equality."""
    for left, op, right in comparisons(constraints):
        if isinstance(op, ast.Eq):
            yield names_in(left), names_in(right)


def shares(constraints: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield both names of each `A % B == 0`: query heads that share B key heads."""
    for left, op, right in comparisons(constraints):
        if isinstance(left, ast.BinOp) and isinstance(left.op, ast.Mod) and isinstance(op, ast.Eq):
            names = [side.id for side in (left.left, left.right) if isinstance(side, ast.Name)]
            if len(names) == 2 and isinstance(right, ast.Constant) and right.value == 0:
                yield names[0], names[1]


def parts(constraints: Iterable[str]) -> Iterator[ast.expr]:
    """Yield the conditions that can be read one by one, where `and` or a comma joins them."""
    waiting = [tree for text in constraints if (tree := read(text)) is not None]
    while waiting:
        tree = waiting.pop(0)
        if isinstance(tree, ast.BoolOp) and isinstance(tree.op, ast.And):
            waiting[:0] = tree.values
        elif isinstance(tree, ast.Tuple):
            waiting[:0] = tree.elts
        else:
            yield tree


@lru_cache(maxsize=512)
def read(text: str) -> ast.expr | None:
    """Return a constraint as an expression; None for a sentence that only people understand."""
    plain = _ONE_EQUALS.sub("==", text.strip()[:_LONGEST].translate(_SIGNS)).replace("===", "==")
    plain = _MODULO.sub(" % ", plain)
    for attempt in (_sentence(text.strip()[:_LONGEST]), plain):
        tree = expression(attempt)
        if tree is not None:
            return tree
    return None


def _sentence(text: str) -> str:
    """Return what a sentence says as an expression, "" where it is none of those that are known."""
    for pattern, form in _SENTENCES:
        match = pattern.match(text)
        if match:
            names = re.findall(r"[A-Za-z_]\w*", re.sub(r"\band\b", ",", match["names"]))
            return " and ".join(form.format(name, match["of"]) for name in names)
    return ""


def value_of(node: ast.expr, sizes: Mapping[str, int]) -> int | None:
    """Return what an expression comes to, None where that is no whole number or cannot be said."""
    try:
        value = _number(node, sizes)
    except _UNREADABLE:
        return None
    return int(value) if value == int(value) else None


def holds(node: ast.expr, sizes: Mapping[str, int]) -> bool:
    """Whether sizes satisfy one condition; what cannot be evaluated counts as satisfied."""
    try:
        return _truth(node, sizes)
    except _UNREADABLE:
        return True


def _readable(tree: ast.expr, sizes: Mapping[str, int]) -> bool:
    try:
        _truth(tree, sizes)
    except _UNREADABLE:
        return False
    return True


def _holds(text: str, sizes: Mapping[str, int]) -> bool:
    tree = read(text)
    return tree is None or holds(tree, sizes)


def _truth(node: ast.expr, sizes: Mapping[str, int]) -> bool:
    if isinstance(node, ast.BoolOp):
        parts = [_truth(value, sizes) for value in node.values]
        return all(parts) if isinstance(node.op, ast.And) else any(parts)
    if isinstance(node, ast.Tuple) and node.elts:
        return all(_truth(value, sizes) for value in node.elts)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return not _truth(node.operand, sizes)
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], (ast.In, ast.NotIn)):
        return _is_among(node, sizes) is isinstance(node.ops[0], ast.In)
    if isinstance(node, ast.Compare):
        values = [_number(item, sizes) for item in (node.left, *node.comparators)]
        pairs = zip(values, node.ops, values[1:], strict=False)
        return all(_comparison(op)(left, right) for left, op, right in pairs)
    raise _Prose


def _is_among(node: ast.Compare, sizes: Mapping[str, int]) -> bool:
    several = node.comparators[0]
    if not isinstance(several, (ast.Tuple, ast.List, ast.Set)):
        raise _Prose
    return _number(node.left, sizes) in [_number(item, sizes) for item in several.elts]


def _comparison(op: ast.cmpop) -> Callable[[Any, Any], bool]:
    if type(op) not in _COMPARISONS:
        raise _Prose
    return _COMPARISONS[type(op)]


def _number(node: ast.expr, sizes: Mapping[str, int]) -> Number:
    value: Number = evaluate(node, sizes, _ARITHMETIC)
    return value
