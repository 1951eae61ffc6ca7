"""What a person says in words of the rows of a tensor: "no row is shorter than 0.1 or longer than 100", "rows add up to 1".

A row is what lies along the last axis. What is read becomes what `input_ranges` would say (`documents.rows`): a Euclidean length
or a sum. The limits themselves are those of `documents.limit_words`, so that one grammar reads both.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from pypto_op.documents import limit_words, ranges
from pypto_op.documents.limit_words import Limits
from pypto_op.documents.rows import Rows

_EACH = r"(?:(?:each|every|all|its|their|the|likewise)\s+)*"
_LENGTH = r"(?:(?:euclidean|l2|2)[- ])?(?:length|norm)s?"
_OF = r"(?:\s+of\s+(?:(?:each|every|all|its|the)\s+)*rows?)"
_HAVE = r"(?:have|has|had|with|of|are|is|must have|must be)\s+(?:an?\s+)?"
_COMPARED = re.compile(
    rf"(?P<no>no\s+|never\s+an?\s+)?{_EACH}rows?\s+(?P<rest>(?:(?:is|are|gets?|becomes?|can be|may be|must be)\s+)?"
    r"(?:(?:ever|never|not|always)\s+)*(?:shorter|longer)\s+than\b.*)",
    re.I,
)
_MEASURED = re.compile(
    rf"{_EACH}(?:(?:row[- ])(?:length|norm)s?|{_LENGTH}{_OF}|rows?\s+{_HAVE}(?:an?\s+)?{_LENGTH}|rows?'s?\s+{_LENGTH})"
    r"\s+(?P<rest>.+)",
    re.I,
)
_UNIT_WORDS = r"unit[- ](?:length|norm)"
_UNIT = re.compile(
    rf"{_EACH}(?:rows?\s+(?:{_HAVE})?{_UNIT_WORDS}|{_UNIT_WORDS}\s+rows?|rows?\s+{_HAVE}(?:l2|euclidean)[- ]normali[sz]ed)",
    re.I,
)
_SUMMED = re.compile(
    rf"{_EACH}(?:rows?\s+(?:that\s+)?(?:always\s+)?(?:sums?|adds?\s+up|adding\s+up)\s+to|row\s+sums?)\s+(?P<rest>.+)", re.I
)
_HINT = re.compile(
    r"\b(?:shorter|longer)\s+than\s+\S*\d|\b(?:rows?|vectors?|keys?|queries|embeddings?)\b.*\b(?:norms?|lengths?)\b.*\d|"
    r"\bnorms?\b.*\d|\bunit[- ](?:length|norm|vectors?|rows?)\b|\bl2[- ]normali[sz]ed\b|"
    r"\b(?:rows?|vectors?|keys?|queries|embeddings?)\s+(?:(?:is|are|already|all)\s+)*normali[sz]ed\b|"
    r"^(?:(?:all|already)\s+)*normali[sz]ed\b|\b(?:sums?|adds?\s+up)\s+to\s+(?:\d|one\b)",
    re.I,
)
_DISTINCT = re.compile(
    r"(?:(?:all|they|it|numbers|entries|values|indices|places|positions|slots|rows|are|is|always|pairwise|which|must be)\s+)*"
    r"(?:distinct|unique|(?:all|pairwise)\s+(?:different|distinct))(?:\s+from\s+(?:one\s+another|each\s+other))?|"
    r"no\s+two(?:\s+(?:of\s+them|\w+))?\s+(?:(?:are|is)\s+(?:alike|equal|the\s+same)|(?:ever\s+)?(?:share|have|name|get|use|take)\s+"
    r"(?:one|it|the\s+same(?:\s+\w+)?|an?\s+\w+))|(?:never|not)\s+repeated|(?:no|without)\s+(?:any\s+)?(?:duplicates|repetitions?|repeats)|"
    r"(?:all\s+)?differ(?:\s+from\s+(?:one\s+another|each\s+other|\w+\s+to\s+\w+))?|(?:each|all)(?:\s+\w+)?\s+at\s+most\s+once",
    re.I,
)
_DISTINCT_IN_ROWS = re.compile(
    r"no\s+row\s+(?:ever\s+)?(?:names?|has|holds?|contains?|takes?|uses?|picks?|gets?)\s+"
    r"(?:one|any|it|the\s+same(?:\s+\w+)?|an?\s+\w+)\s+(?:twice|more\s+than\s+once)|"
    r"(?:(?:all|are|always|pairwise)\s+)*(?:distinct|unique|different)\s+(?:with)?in\s+(?:a|each|every|one)\s+row|"
    r"(?:no|without)\s+(?:any\s+)?(?:duplicates|repetitions?|repeats)\s+(?:with)?in\s+(?:a|any|each|one)\s+row",
    re.I,
)
_REPEATED = re.compile(
    r"\b(?:distinct|unique|no\s+two|duplicates?|permutations?|pairwise|all\s+different|twice|more\s+than\s+once|repeated|repetitions?|at\s+most\s+once|differs?)\b",
    re.I,
)
_NO_NEGATION = re.compile(r"^(?:(?:is|are|gets?|becomes?|can be|may be|must be|ever)\s+)*", re.I)


def clause(text: str) -> Rows | None:
    """Return what a clause says of rows; None where it says, or holds, something else.

    Args:
        text: the clause, without the full stop.
    """
    if _UNIT.fullmatch(text):
        return _rows("length", Limits("1", "1"))
    if found := _COMPARED.fullmatch(text):
        rest = re.sub(
            r"\blonger\s+than\b", "above", re.sub(r"\bshorter\s+than\b", "below", found["rest"], flags=re.I), flags=re.I
        )
        rest = f"never {_NO_NEGATION.sub('', rest)}" if found["no"] else rest
        return _rows("length", limit_words.clause(rest, ()))
    for measure, form in (("length", _MEASURED), ("sum", _SUMMED)):
        if found := form.fullmatch(text):
            rest = re.sub(r"^(?:of|is|are|be|equal to|exactly)\s+", "", found["rest"], flags=re.I)
            exact = limit_words.clause(f"from {rest} to {rest}", ())
            return _rows(measure, exact or limit_words.clause(rest, ()))
    return None


def of_numbers(text: str) -> Rows | None:
    """Return that no whole number stands twice in a row, where a clause says so; None where it says, or holds, something else."""
    return Rows(distinct=True) if _DISTINCT.fullmatch(text) else of_numbers_in_rows(text)


def of_numbers_in_rows(text: str) -> Rows | None:
    """Return the same of several rows, where a clause says that it means each of them: else nobody knows in which."""
    return Rows(distinct=True) if _DISTINCT_IN_ROWS.fullmatch(text) else None


def is_hint_of_numbers(text: str) -> bool:
    """Whether a text seems to say of whole numbers that none stands twice."""
    return bool(_REPEATED.search(text))


def is_hint(text: str) -> bool:
    """Whether a text seems to limit rows: a length, a norm, a sum, or that something is normalised."""
    return bool(_HINT.search(text))


def _rows(measure: str, limits: Limits | None) -> Rows | None:
    """Return limits of a measure, from 0 on, as `documents.rows` has them; None where there are none."""
    if limits is None:
        return None
    kept = ranges.of(limits.of("it"), "it")
    kept = ranges.of([*limits.of("it"), "0 <= it"], "it") if kept.low < 0.0 else kept
    return Rows(measure, kept)


@dataclass(frozen=True)
class Reader:
    """How words about the rows of one kind of input are read."""

    clause: Callable[[str], Rows | None]  # what a clause says, as `clause`
    is_hint: Callable[[str], bool]  # whether a text seems to say something
    stands: bool = False  # what it says stands beside "or -1 for padding", which widens limits of values alone


OF_FLOATS = Reader(clause, is_hint)
OF_NUMBERS = Reader(of_numbers, is_hint_of_numbers, True)
OF_NUMBERS_IN_ROWS = Reader(of_numbers_in_rows, is_hint_of_numbers, True)
OF_NONE = Reader(lambda text: None, lambda text: False)


def reader(shape: str, dtype: str) -> Reader:
    """Return how to read words about the rows of an input.

    Args:
        shape, dtype: as `port_table.Row` has them; dtype is "" where there are several.
    """
    if shape in ("", "[]") or dtype == "bool":
        return OF_NONE
    if not re.fullmatch(r"u?int\d*", dtype):
        return OF_FLOATS
    return OF_NUMBERS_IN_ROWS if "," in shape else OF_NUMBERS
