"""What a clause of SPEC.md says of several names at once: "2 * pad above window", "window larger than H"."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping

from pypto_op.documents import constraints
from pypto_op.python_text import expression, names_in

ABOVE, BELOW = "above|over|beyond|more than|larger than|greater than", "below|under|less than"
"""How SPEC.md says that a number lies beyond another one, as alternatives of a pattern."""
_WORDS = (
    (r"(?:is|are|lies|be)?\s*(?:not|no|not an?) (?:multiple of|divisible by)", "%%"),
    (rf"(?:is|are|lies|be)?\s*(?:{ABOVE}|longer than|exceeds?)", ">"),
    (rf"(?:is|are|lies|be)?\s*(?:{BELOW}|smaller than|shorter than)", "<"),
    (r"(?:is|are|lies|be)?\s*(?:other than|not equal to|unequal to)", "!="),
)
_DIVIDES = re.compile(r"^(.+?)\s+(?:does not|doesn't)\s+divide\s+(.+)$")
_FARTHEST = 64


def read(clause: str, names: Collection[str]) -> ast.expr | None:
    """Return a relation between two or more of the names, as a comparison that is true where the wrapper raises, or None."""
    text = clause.replace("`", "").strip()
    if found := _DIVIDES.match(text):
        text = f"({found[2]}) % ({found[1]}) != 0"
    for words, sign in _WORDS:
        text = re.sub(rf"\s*\b{words}\b\s*", f" {sign} ", text)
    if " %% " in text:
        left, _, right = text.partition(" %% ")
        text = f"({left}) % ({right}) != 0"
    tree = expression(text)
    if not isinstance(tree, ast.Compare) or len(names_in(tree)) < 2 or not names_in(tree) <= set(names):
        return None
    return tree


def holds(relation: ast.expr, values: Mapping[str, int]) -> bool:
    """Whether a relation is true; one that has no answer (a remainder by 0) is not."""
    return not constraints.holds(ast.UnaryOp(ast.Not(), relation), values)


def fails(relation: ast.expr, values: Mapping[str, int]) -> bool:
    """Whether a relation is false; one that has no answer is not."""
    return not constraints.holds(relation, values)


def nearest(value: int) -> Iterator[int]:
    """Yield other values than a whole number, the nearest first, none below zero where it is not."""
    for distance in range(1, _FARTHEST + 1):
        yield from (near for near in (value - distance, value + distance) if near >= min(value, 0))
