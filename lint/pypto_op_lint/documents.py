"""Rules about documents: what the documents room finds, told as findings of a rule.

`pypto_op.documents` owns the form of every document. It is imported when such a rule runs, so that linting a kernel does
not pay for the schema library.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from pypto_op.documents.markdown import Section
from pypto_op.errors import ContractError
from pypto_op.vocabulary import Artifact
from pypto_op_lint.units import OperatorFiles, Unit

FRONT_MATTER_SCHEMAS = {Artifact.SPEC: "spec", Artifact.API_REPORT: "api_report", Artifact.DESIGN: "design"}
"""Schema of the front matter of each document that has one."""

Problem = tuple["int | None", str]
"""A line of the file, if known, and what is wrong there."""

Row = tuple[int, tuple[str, ...]]
"""The line of a row of a table, and its cells."""


def mapping(unit: Unit | None) -> dict[str, Any] | None:
    """Return the mapping that a YAML or JSON file holds; None where there is no such file, or it holds something else."""
    data = None if unit is None else unit.data
    return data if isinstance(data, dict) else None


def front_matter(unit: Unit | None) -> dict[str, Any] | None:
    """Return the front matter of a document, read strictly; None where there is no document, or none that can be read."""
    from pypto_op.documents.front_matter import split

    if unit is None:
        return None
    try:
        return split(unit.text, file=unit.shown)[0]
    except ContractError:
        return None


def front_matter_missing(unit: Unit) -> Problem | None:
    """Say why the document has no usable front matter; None when it has."""
    from pypto_op.documents.front_matter import split

    try:
        split(unit.text, file=unit.shown)
    except ContractError as error:
        return _line(error.where), f"{unit.path.name}: {error.problem}"
    return None


def other_operator(unit: Unit, name: str) -> Iterator[Problem]:
    """Yield where the front matter of a document names another operator than the directory does."""
    data = front_matter(unit)
    named = data.get("op_name") if data else None
    if isinstance(named, str) and named != name:
        yield _key_line(unit, "op_name"), f"op_name is `{named[:64]}`, the directory is `{name}`"


def front_matter_problems(unit: Unit) -> Iterator[Problem]:
    """Yield what in the front matter breaks its schema."""
    from pypto_op.documents import schema

    data = front_matter(unit)
    if data is None:
        return
    for finding in schema.findings(data, FRONT_MATTER_SCHEMAS[unit.artifact]):
        key = re.split(r"[.\[]", finding.where)[0]
        line = _key_line(unit, key) if key else 1
        yield line, f"{finding.where}: {finding.problem}" if finding.where else finding.problem


def section_problems(unit: Unit) -> Iterator[Problem]:
    """Yield required sections that are missing or empty, and text that was left to be written."""
    from pypto_op.documents import headings

    body = unit.markdown
    for finding in headings.check_sections(FRONT_MATTER_SCHEMAS[unit.artifact], body.sections):
        yield finding.line, f"{finding.where}: {finding.problem}" if finding.where else finding.problem
    for finding in headings.unfinished(body.text, first_line=body.first_line):
        yield finding.line, finding.problem


def rows_under(unit: Unit, *titles: str) -> tuple[Section | None, list[Row]]:
    """Return the section with one of `titles` and the data rows of its tables."""
    section = unit.markdown.section(*titles)
    if section is None:
        return None, []
    return section, [row for table in section.tables for row in table.numbered]


def declared_modules(files: OperatorFiles) -> int | None:
    """Return N, from the interfaces, else from DESIGN.md's decision; None when neither says it."""
    modules = (mapping(files.existing(files.ws.interfaces)) or {}).get("modules")
    if isinstance(modules, list) and modules:
        return len(modules)
    design = files.existing(files.ws.design)
    if design is not None:
        match = re.search(r"Decision\W[^\n]*?module_count\W*=\W*(\d+)", design.text)
        if match:
            return int(match[1])
    return None


def suite_words(files: OperatorFiles) -> Iterator[Any]:
    """Yield every case of the suite, as data."""
    data = mapping(files.existing(files.ws.suite)) or {}
    yield from mappings(data.get("cases") or data.get("test_cases"))


def mappings(value: Any) -> list[dict[str, Any]]:
    """Return the mappings in a list of a document; [] for anything else."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _key_line(unit: Unit, key: str) -> int:
    """Return the line of a top-level key of the front matter; 1 when it is not there."""
    lines = enumerate(unit.text.split("\n")[: unit.markdown.first_line - 1], 1)
    return next((number for number, text in lines if re.match(rf"{re.escape(key)}\s*:", text)), 1)


def _line(where: str | None) -> int | None:
    match = re.match(r"line (\d+)", where or "")
    return int(match[1]) if match else None
