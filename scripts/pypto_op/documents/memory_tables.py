"""What commands write into MEMORY.md: table rows that take the place of open ones, and values of the status block.

Like every entry there it only adds, or fills in what was left open (`append_only`); the status block is free.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pypto_op.documents import markdown
from pypto_op.documents.memory import escaped_row, status_span
from pypto_op.documents.reading import read_text
from pypto_op.documents.writing import locked, write_atomically
from pypto_op.errors import ContractError

_OPEN = re.compile(r"(?:TODO\b.*|-|)\Z", re.IGNORECASE)


def put_rows(path: Path, title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Put rows into the table of a section; where there is none, the section is made at the end.

    A row takes the place of an open one with the same first cell, or with an open first cell; a row that stands there
    already, cell by cell, is not put in again.

    Args:
        title: the section's heading; a part of a heading that is there is enough.
        rows: as many cells each.

    Raises:
        ContractError: the file cannot be read, or its table has another number of columns.
        InfraError: the file cannot be locked or written.
    """
    with locked(path):
        lines = read_text(path).split("\n")
        section = markdown.find_section(markdown.sections("\n".join(lines)), [title])
        tables = markdown.tables(section.text) if section is not None else []
        if section is None or not tables:
            head = [] if section is not None else [f"## {title}"]
            place = len(lines) if section is None else section.line
            new = [*head, escaped_row(columns), "|" + "---|" * len(columns), *map(escaped_row, rows), ""]
            lines[place:place] = new if lines[place - 1 : place] in ([], [""]) or section is not None else ["", *new]
        else:
            table = tables[0]
            if len(table.header) != len(columns):
                raise ContractError(
                    f"has {len(table.header)} columns, not {len(columns)}",
                    file=path,
                    where=section.title,
                    remedy=f"give it the columns {', '.join(columns)}",
                )
            _fill(lines, section.line + table.line + 1, [list(row) for row in table.rows], rows)
        write_atomically(path, "\n".join(lines))


def _fill(lines: list[str], first: int, there: list[list[str]], rows: Sequence[Sequence[str]]) -> None:
    """Change and add lines; `first` is the index of the table's first row, `there` its cells."""
    for row in rows:
        if list(row) in there:
            continue
        open_ = [n for n, cells in enumerate(there) if _is_open(cells, row[0])]
        if open_:
            there[open_[0]] = list(row)
            lines[first + open_[0]] = escaped_row(row)
        else:
            lines.insert(first + len(there), escaped_row(row))
            there.append(list(row))


def _is_open(cells: Sequence[str], key: str) -> bool:
    return (cells[0] == key or bool(_OPEN.match(cells[0]))) and all(map(_OPEN.match, cells[1:]))


def set_status(path: Path, values: Mapping[str, Any]) -> None:
    """Set keys of the status block; without a block nothing happens.

    Args:
        path: MEMORY.md.
        values: key -> JSON value; what stands beside them stays as it is written.

    Raises:
        ContractError: the file cannot be read.
        InfraError: the file cannot be locked or written.
    """
    with locked(path):
        text = read_text(path)
        span = status_span(text)
        if span is None:
            return
        block = text[span[0] : span[1]]
        for key, value in values.items():
            block = _with(block, key, value)
        if block != text[span[0] : span[1]]:
            write_atomically(path, text[: span[0]] + block + text[span[1] :])


def _with(block: str, key: str, value: Any) -> str:
    line, found = _yaml(key, value), re.search(rf"^{key}:.*\n(?:[ \t-].*\n)*", block, flags=re.MULTILINE)
    return block[: found.start()] + line + block[found.end() :] if found else block + line


def _yaml(key: str, value: Any) -> str:
    import yaml

    def flow(item: Any) -> str:
        dumped: str = yaml.safe_dump(item, default_flow_style=True, width=10**6, allow_unicode=True, sort_keys=False)
        return dumped.strip().removesuffix("...").strip()

    if isinstance(value, list) and value:
        return f"{key}:\n" + "".join(f"  - {flow(item)}\n" for item in value)
    return f"{key}: {flow(value)}\n"
