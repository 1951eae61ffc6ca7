"""The table of SPEC.md's section 5: what goes in and comes out, with shape, dtype and what it means.

It is written for people, so a cell that says something else than expected is no fault: it tells nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pypto_op.documents import markdown, shape_expr
from pypto_op.errors import ContractError
from pypto_op.vocabulary import DTYPE_ALIASES, DTYPES

_SHAPE = re.compile(r"\[([^\[\]]*)\]\Z")
_SAME = re.compile(r"(?:dtype of|as|same as)\s+(\w+)\Z", re.IGNORECASE)
_PYTHON = re.compile(r"(?:python\s+)?(bool|int|float)\Z", re.IGNORECASE)
_UNLIMITED = re.compile(
    r"(?:may be |is |can be )?any (?:(?:finite|real|python|floating) )*(?:number|real|value|float)|un(?:bounded|limited)"
    r"|(?:no|without(?: an?)?) (?:limit|bound)s?",
    re.IGNORECASE,
)
_LIMITS = re.compile(
    r"[<>≤≥\d]|\b(?:above|below|beyond|between|from|at (?:least|most)|up to|not|positive|negative|zero)\b", re.IGNORECASE
)
_RESULT = re.compile(r"\b(?:out(?:puts?)?|results?|returns?)\b|输出|结果", re.IGNORECASE)
_NUMBER = re.compile(r"\b(?:scalar|number|attribute|attr)\b|标量", re.IGNORECASE)
_NO_SHAPE = {"", "-", "--", "–", "—", "none", "n/a", "scalar", "number", "[]", "()"}
"""What people write where a number has no shape; of a tensor the words before `scalar` tell nothing."""

_SCALARS = {"bool": "bool", "int": "int", "float": "float32"}


@dataclass(frozen=True)
class Row:
    """What the table says of one tensor or number."""

    is_output: bool  # it is a result
    shape: str  # as module_interfaces.yaml has it, `[B, S]` or `[]`; "" where the cell is no shape
    dtype: str  # the one dtype that the cell names; "" where it names none, or several
    like: str  # the tensor whose dtype it has; "" for none
    is_unlimited: bool  # its meaning says that any number will do, and names no limit beside
    meaning: str  # what the table says of it for people


def rows(body: str) -> dict[str, Row]:
    """Return what the tables of SPEC.md with the columns name and dtype say, by name, in their order."""
    return {name: _row(dtype, kind, shape, meaning) for name, (dtype, kind, shape, meaning) in _lines(body)}


def cells(body: str) -> dict[str, tuple[str, str]]:
    """Return the cells shape and dtype of those tables as they are written, by name."""
    return {name: (shape, dtype) for name, (dtype, _, shape, _) in _lines(body)}


def _lines(body: str) -> Iterator[tuple[str, tuple[str, str, str, str]]]:
    """Yield each name of the tables with its cells dtype, kind, shape and meaning."""
    for table in markdown.tables(body):
        columns = [table.column(word) for word in ("name", "dtype", "kind", "shape", "meaning")]
        if columns[0] is None or columns[1] is None:
            continue
        for row in table.rows:
            names, *told = ("" if at is None else row[at].replace("`", "").strip() for at in columns)
            yield from ((name.strip(), (told[0], told[1], told[2], told[3])) for name in names.split(",") if name.strip())


def dtype_of(name: str, known: Mapping[str, Row]) -> str:
    """Return the one dtype that the table gives a tensor, by itself or through the tensor that it is like; "" without."""
    seen: set[str] = set()
    while name in known and name not in seen and not known[name].dtype:
        seen.add(name)
        name = known[name].like
    return known[name].dtype if name in known else ""


def _row(dtype: str, kind: str, shape: str, meaning: str) -> Row:
    same = _SAME.match(dtype)
    return Row(
        _RESULT.search(kind) is not None,
        _shape(shape, is_number=bool(_NUMBER.search(kind) or _PYTHON.match(dtype))),
        _dtype(dtype),
        same[1] if same else "",
        not _LIMITS.search(meaning) and any(_UNLIMITED.fullmatch(part.strip()) for part in re.split(r"[,;.:()]", meaning)),
        meaning,
    )


def _shape(cell: str, *, is_number: bool) -> str:
    if cell.casefold() in (_NO_SHAPE if is_number else ("scalar", "number", "[]", "()")):
        return "[]"
    match = _SHAPE.match(cell)
    if match is None:
        return ""
    try:
        sizes = [shape_expr.parse(size.strip()).text for size in match[1].split(",")]
    except ContractError:
        return ""
    return f"[{', '.join(sizes)}]"


def _dtype(cell: str) -> str:
    python = _PYTHON.match(cell)
    if python:
        return _SCALARS[python[1].casefold()]
    word = DTYPE_ALIASES.get(cell, cell)
    return word if word in DTYPES else ""
