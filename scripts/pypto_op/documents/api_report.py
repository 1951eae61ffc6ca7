"""API_REPORT.md: which PyPTO call does each step, and what to do where there is none."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pypto_op.documents import front_matter, markdown, schema
from pypto_op.documents.front_matter import Document
from pypto_op.documents.schema import Finding

_LEVELS = {
    "direct": "direct",
    "直接": "direct",
    "substitute": "substitute",
    "替代": "substitute",
    "unsupported": "unsupported",
    "不支持": "unsupported",
}
_EMPTY = {"", "-", "n/a", "na", "none", "无", "/"}


@dataclass(frozen=True)
class Mapping:
    """One row of the mapping table."""

    step: str  # number or name of the step
    expression: str  # what is computed
    api: str  # the PyPTO call, or what replaces it
    level: str  # direct, substitute or unsupported
    workaround: str  # what is done instead; "" where none is named
    line: int  # line of the file


@dataclass(frozen=True)
class ApiReport:
    """What a gate reads in API_REPORT.md beside its faults: the operator's name."""

    op_name: str


def load(path: Path | str) -> ApiReport:
    """Read API_REPORT.md.

    Raises:
        ContractError: unreadable, the front matter breaks its schema, or an unsupported step has no workaround.
    """
    document = front_matter.load(path, "api_report")
    schema.raise_first(list(_mapping_problems(document)), file=document.path)
    return ApiReport(document.data["op_name"])


def check(path: Path | str) -> list[Finding]:
    """Return everything that is wrong with API_REPORT.md."""
    document, found = front_matter.check(path, "api_report", "api_report")
    if document is None:
        return found
    if not list(_mappings(document)):
        found.append(Finding("", "no mapping table: it needs the columns step, expression, API and level"))
    return found + list(_mapping_problems(document))


def _mappings(document: Document) -> Iterator[Mapping]:
    for table in markdown.tables(document.body):
        level, api = table.column("level", "级别", "支持"), table.column("api", "pypto")
        if level is None or api is None:
            continue
        step, expression = table.column("step", "步骤", "#"), table.column("expression", "表达式", "formula", "公式")
        workaround = table.column("workaround", "替代方案", "规避", "note", "备注")
        for number, row in enumerate(table.rows):
            word = row[level].strip("`* ").casefold()
            yield Mapping(
                step="" if step is None else row[step],
                expression="" if expression is None else row[expression],
                api=row[api],
                level=next((value for key, value in _LEVELS.items() if word.startswith(key)), word),
                workaround="" if workaround is None else row[workaround],
                line=document.body_line + table.line + 1 + number,
            )


def _mapping_problems(document: Document) -> Iterator[Finding]:
    for row in _mappings(document):
        name = row.step or row.expression or "a step"
        if row.level not in _LEVELS.values():
            yield Finding(name, f"level {row.level[:40]!r} is not direct, substitute or unsupported", row.line)
        if row.level == "unsupported" and row.workaround.casefold() in _EMPTY:
            yield Finding(name, "is unsupported and has no workaround", row.line)
