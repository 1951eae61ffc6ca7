"""DESIGN.md: how the operator is built, and into how many modules (section 0.3)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pypto_op.documents import complexity, front_matter, headings, markdown, schema
from pypto_op.documents.front_matter import Document
from pypto_op.documents.schema import Finding
from pypto_op.documents.tolerance import policy_of
from pypto_op.errors import ContractError
from pypto_op.vocabulary import DTYPE_ALIASES, DTYPES, LEAST_CU, MOST_CU, Decomposition

_DECISION = re.compile(r"(?:Decision|决策|判定)\b.*?module_count\W*?[=:：]\W*?(\d+)", re.IGNORECASE)
_OVERRIDE = re.compile(r"\boverride(?:\s+reason)?\W*?[:：]\s*(\S.*)", re.IGNORECASE)
_SHAPE = re.compile(r"\[[^\]]*\]|\([^()]*(?:\([^()]*\)[^()]*)*\)")
_QUOTED = re.compile(r"`\s*([A-Za-z_]\w*)\s*`")
_BARE = re.compile(rf"[\s*]*([A-Za-z_]\w*)[\s*:]*(?:{'|'.join((*DTYPES, *DTYPE_ALIASES))})?[\s*]*\Z")
_BETWEEN = re.compile(r",|;|/|<br>|\band\b|和|、")
_NO_NAME = frozenset({"none", "output", "outputs", "final", "tbd"})
_UNITS = re.compile(r"(?<![\d.])\d+(?:\.\d+)?(?![\d.])")
_LEVEL = re.compile(r"decomposition_level\W*?[=:：]\W*?(L0|L1|single|staged)\b", re.IGNORECASE)


@dataclass(frozen=True)
class Design:
    """What machines read in DESIGN.md."""

    op_name: str  # the operator
    module_count: int  # N, decided in section 0.3
    override: str  # why N is not what the complexity formula gives; "" if it is


@dataclass(frozen=True)
class ModuleRow:
    """A row of the table of section 0.5."""

    boundary: tuple[str, ...]  # names of the tensors that leave the module, in the order written
    units: float | None  # its complexity units, or None where no number stands
    line: int  # of the file


def load(path: Path | str) -> Design:
    """Read DESIGN.md.

    Raises:
        ContractError: unreadable, the front matter breaks its schema or names no policy, or no single decision on module_count.
    """
    document = front_matter.load(path, "design")
    count, override = _decision(document)
    if (precision := document.data.get("precision")) is not None:
        policy_of(precision, file=document.path)  # raises where it is no policy
    return Design(op_name=document.data["op_name"], module_count=count, override=override)


def check(path: Path | str) -> list[Finding]:
    """Return everything that is wrong with DESIGN.md, the decision against the golden's complexity included."""
    document, found = front_matter.check(path, "design", "design")
    if document is None:
        return found
    found += headings.check_sections("design_complete", document.sections)
    if schema.findings(document.data, "design"):
        return found
    try:
        design = load(path)
    except ContractError as error:
        return [*found, Finding.of(error)]
    found += _module_table(document, design)
    found += _against_golden(document, design)
    return found


def _decision(document: Document) -> tuple[int, str]:
    """Return N and the reason of an override, from the line `Decision: module_count = N`."""
    where = "section 0.3"
    decisions = [
        (number, line, int(match[1][:6]))
        for number, line in enumerate(document.body.split("\n"), document.body_line)
        if (match := _DECISION.search(line))
    ]
    counts = {count for _, _, count in decisions}
    if not decisions:
        raise ContractError(
            "no decision on module_count",
            file=document.path,
            where=where,
            remedy="write `Decision: module_count = N`; `pypto-op design-params` computes N",
        )
    if len(counts) > 1:
        raise ContractError(
            f"decides on module_count {' and '.join(map(str, sorted(counts)))}",
            file=document.path,
            where=f"line {decisions[-1][0]}",
            remedy="decide once",
        )
    count = counts.pop()
    if not 1 <= count <= complexity.MAX_MODULES:
        raise ContractError(f"module_count is {count}", file=document.path, where=where, remedy="decide on 1 to 32")
    _agree(document, count)
    match = next((m for _, line, _ in decisions if (m := _OVERRIDE.search(line))), None)
    match = match or _OVERRIDE.search(document.body)
    return count, match[1].strip(" )*`.") if match else ""


def _agree(document: Document, count: int) -> None:
    """Refuse a decomposition_level, or a module_count in the front matter, that contradicts the decision."""
    level = _LEVEL.search(document.body)
    expected = Decomposition.SINGLE if count == 1 else Decomposition.STAGED
    if level:
        word = level[1].upper() if level[1].upper() in ("L0", "L1") else level[1].lower()
        if Decomposition.parse(word) is not expected:
            raise ContractError(
                f"decomposition_level is {level[1]}, module_count {count} means {expected}",
                file=document.path,
                where="section 0.3",
            )
    stated = document.data.get("module_count", count)
    if stated != count:
        raise ContractError(f"is {stated}, section 0.3 decides on {count}", file=document.path, where="module_count")


def module_rows(path: Path | str) -> tuple[ModuleRow, ...]:
    """Return the rows M1..MN of section 0.5, () where there is no table of N rows.

    Raises:
        ContractError: as `load`.
    """
    document = front_matter.load(path, "design")
    return _rows(document, _decision(document)[0])


def out_of_band(module: str, units: float) -> str:
    """Say that a module is too thin or too thick (R6), and who mends it; "" when it is neither."""
    if LEAST_CU <= units <= MOST_CU:
        return ""
    what = "thin" if units < LEAST_CU else "thick"
    return f"{module} has {units:g} units, too {what}: {LEAST_CU:g} to {MOST_CU:g} are allowed; let the architect cut anew in 0.5"


def _module_table(document: Document, design: Design) -> Iterator[Finding]:
    """With N >= 2 modules there is a table of N rows, which names the boundaries between them and the units of each."""
    count = design.module_count
    if count == 1:
        return
    tables = _module_tables(document)
    if not tables:
        yield Finding("section 0.5", f"no table with the columns module and boundary for {count} modules")
    elif all(len(table.rows) != count for table in tables):
        line = document.body_line + tables[0].line - 1
        yield Finding("section 0.5", f"the module table has {len(tables[0].rows)} rows, not {count}", line)
    for number, row in enumerate(_rows(document, count), 1):
        if not row.boundary and number < count:
            yield Finding("section 0.5", f"M{number} names no boundary tensor: write `name` [shape]", row.line)
        if design.override:
            continue
        if row.units is None:
            yield Finding("section 0.5", f"M{number} has no units: add a column CU", row.line)
        elif out_of_band(f"M{number}", row.units):
            yield Finding("section 0.5", out_of_band(f"M{number}", row.units), row.line)


def _module_tables(document: Document) -> list[markdown.Table]:
    return [
        table
        for table in markdown.tables(document.body)
        if table.column("module", "模块") is not None and table.column("boundary", "边界") is not None
    ]


def _rows(document: Document, count: int) -> tuple[ModuleRow, ...]:
    table = next((table for table in _module_tables(document) if len(table.rows) == count), None)
    if table is None:
        return ()
    boundary = table.column("boundary", "边界")
    units = next(
        (n for n, title in enumerate(table.header) if {"cu", "units", "单元"} & set(re.split(r"\W+", title.casefold()))), None
    )
    assert boundary is not None  # `_module_tables` looked for it
    first = document.body_line + table.line + 1
    return tuple(
        ModuleRow(_names_in(row[boundary]), None if units is None else _number_in(row[units]), first + n)
        for n, row in enumerate(table.rows)
    )


def _names_in(cell: str) -> tuple[str, ...]:
    """Return the tensors that a cell names: what stands in backticks, else each name with its shape taken away."""
    quoted = _QUOTED.findall(_SHAPE.sub(" ", cell))
    bare = [match[1] for part in _BETWEEN.split(_SHAPE.sub(" ", cell)) if (match := _BARE.match(part))]
    return tuple(dict.fromkeys(name for name in quoted or bare if name.casefold() not in _NO_NAME))


def _number_in(cell: str) -> float | None:
    match = _UNITS.search(cell)
    return float(match[0]) if match else None


def _against_golden(document: Document, design: Design) -> Iterator[Finding]:
    golden = document.path.parent / f"{design.op_name}_golden.py"
    if design.override or not golden.is_file():
        return
    try:
        computed = complexity.analyse(golden).module_count
    except ContractError:
        return
    if computed != design.module_count:
        yield Finding(
            "section 0.3",
            f"module_count is {design.module_count}, the golden's complexity gives {computed}: "
            "take that, or add `override: <reason>`",
        )
