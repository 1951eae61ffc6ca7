"""MEMORY.md: the team's ledger, for people. Its status block is held against the state, and never decides."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from pypto_op.documents import headings, markdown, schema
from pypto_op.documents.markdown import Section
from pypto_op.documents.reading import parse_yaml, read_json, read_text, refuse_empty
from pypto_op.documents.schema import Finding
from pypto_op.documents.writing import locked, write_atomically
from pypto_op.errors import ContractError
from pypto_op.vocabulary import Decomposition
from pypto_op.workspace import STATE_FILE

LOG = "Per-module verification log"
LOG_COLUMNS = ("When", "Module", "Staged file", "Tensors", "rtol", "atol", "all_close", "Key stats", "Command")
STATUS_TITLES = ("Agent status", "代理状态")
_FENCED_YAML = re.compile(r"^[ \t]*(`{3,}|~{3,})(?:ya?ml)?[ \t]*\n(.*?)^[ \t]*\1[ \t]*$", re.DOTALL | re.MULTILINE)
_MAX_ENTRY = 20_000


def check(path: Path | str) -> list[Finding]:
    """Return everything that is wrong with MEMORY.md, contradictions to the state file included."""
    path = Path(path)
    try:
        text = read_text(path)
        refuse_empty(text, path)
    except ContractError as error:
        return [Finding.of(error)]
    sections = markdown.sections(text)
    found = list(headings.check_sections("memory", sections))
    found += headings.unfinished(text)
    if status_sections(text) > 1:
        found.append(Finding("status", "there is more than one status section"))
    try:
        status = _status(sections, path)
    except ContractError as error:
        return [*found, Finding.of(error)]
    wrong = schema.findings(status, "memory_status", prefix=["status"])
    found += wrong
    if not wrong:
        found += _contradictions(status)
        found += _against_state(status, path.with_name(STATE_FILE))
    return found


def status_sections(text: str) -> int:
    """Return how many sections call themselves the status; readers take the first."""
    sections = markdown.sections(text)
    return sum(markdown.find_section([section], STATUS_TITLES) is not None for section in sections)


def status_span(text: str) -> tuple[int, int] | None:
    """Return (first, one past the last) character of the status block's YAML, or None without one."""
    sections = markdown.sections(text)
    section = markdown.find_section(sections, STATUS_TITLES)
    if section is None:
        return None
    start = sum(len(line) + 1 for line in text.split("\n")[: section.line])
    match = _FENCED_YAML.search(section.text)
    return None if match is None else (start + match.start(2), start + match.end(2))


def _status(sections: Sequence[Section], path: Path | str) -> dict[str, Any]:
    section = markdown.find_section(sections, STATUS_TITLES)
    if section is None:
        raise ContractError("has no section Agent status", file=path, remedy="write `## Agent status (minimal)`")
    match = _FENCED_YAML.search(section.text)
    if match is None:
        raise ContractError("has no status block", file=path, where=section.title, remedy="write it as a fenced yaml block")
    first_line = section.line + 1 + section.text[: match.start(2)].count("\n")
    data = parse_yaml(match[2], file=path, first_line=first_line)
    if not isinstance(data, dict):
        raise ContractError("the status block is no mapping", file=path, where=f"line {first_line}")
    return data


def _contradictions(status: Mapping[str, Any]) -> Iterator[Finding]:
    count = status["module_count"]
    single = Decomposition.parse(status["decomposition_level"]) is Decomposition.SINGLE
    if single != (count == 1):
        yield Finding("status.decomposition_level", f"is {status['decomposition_level']} with module_count {count}")
    active = status["active_module"] or "none"
    if active != "none" and int(active[1:]) > count:
        yield Finding("status.active_module", f"is {active} of {count} module(s)")
    verified = [str(item["id"]).removeprefix("M") for item in status.get("modules_pypto_verified") or []]
    if verified != [str(k) for k in range(1, len(verified) + 1)] or len(verified) > count:
        yield Finding("status.modules_pypto_verified", f"lists {verified}, not M1, M2, ... in order")


def _against_state(status: Mapping[str, Any], state_file: Path) -> Iterator[Finding]:
    """The state decides; a status block that says something else misleads its readers."""
    if not state_file.is_file():
        return
    try:
        state = read_json(state_file, limit=8 * 1024 * 1024)
    except ContractError:
        return
    plan = state.get("plan") if isinstance(state, dict) else None
    if isinstance(plan, dict) and plan.get("module_count") != status["module_count"]:
        yield Finding("status.module_count", f"is {status['module_count']}, the frozen plan has {plan.get('module_count')}")
    phases = state.get("stage5_phases") if isinstance(state, dict) else None
    active = phases.get("active_phase") if isinstance(phases, dict) else None
    written = status["active_module"] or "none"
    if isinstance(plan, dict) and (active or "none") != written:
        yield Finding("status.active_module", f"is {written}, the state has {active or 'none'}")


# -- appending --------------------------------------------------------------------------------------------


def append_row(path: Path | str, section: str, cells: Sequence[str], *, now: datetime | None = None) -> str:
    """Add a row to the table of a section and return it.

    Args:
        section: a part of the heading, whatever the case.
        cells: as many as the table has columns; or one fewer if the first column is `When`, which is then filled.
        now: the time for `When`; default: now, in UTC.

    Raises:
        ContractError: no such section, no table in it, a wrong number of cells, or a cell of several lines.
        InfraError: the file cannot be locked or written.
    """
    path = Path(path)
    with locked(path):
        lines = read_text(path).split("\n")
        target = _target(lines, section, path)
        tables = markdown.tables(target.text)
        if not tables:
            raise ContractError("has no table", file=path, where=target.title, remedy="append text instead")
        table = tables[0]
        row = _row(list(cells), table.header, target, path, now)
        position = target.line + table.line + 1 + len(table.rows)
        lines.insert(position, row)
        write_atomically(path, "\n".join(lines))
    return row


def append_text(path: Path | str, section: str, text: str) -> None:
    """Add text at the end of a section, before its first subsection.

    Raises:
        ContractError: no such section; text that is empty, too long, a heading, or leaves a fence or comment open.
        InfraError: the file cannot be locked or written.
    """
    path = Path(path)
    added = _checked_text(text, path)
    with locked(path):
        lines = read_text(path).split("\n")
        target = _target(lines, section, path)
        end = target.line + len(target.text.split("\n"))
        own = [s.line - 1 for s in markdown.sections(target.text, first_line=target.line + 1)]
        position = min([end, *own])
        while position > target.line and not lines[position - 1].strip():
            position -= 1
        lines[position:position] = (
            ["", *added] if lines[position - 1].strip() and not _continues(lines[position - 1], added[0]) else added
        )
        write_atomically(path, "\n".join(lines))


def append_section(path: Path | str, title: str, text: str, *, now: datetime | None = None) -> str:
    """Add `## <title> - <time>` with text at the end of the document and return the heading.

    Raises:
        ContractError: an unusable title or text; see `append_text`.
        InfraError: the file cannot be locked or written.
    """
    path = Path(path)
    if not title.strip() or "\n" in title or len(title) > 200:
        raise ContractError("a title is one line of 1 to 200 characters", file=path)
    heading = f"## {title.strip()} - {_timestamp(now)}"
    added = _checked_text(text, path)
    with locked(path):
        old = read_text(path).rstrip("\n")
        write_atomically(path, "\n".join([old, "", heading, "", *added, ""]))
    return heading


def _target(lines: Sequence[str], words: str, path: Path) -> Section:
    sections = markdown.sections("\n".join(lines))
    found = markdown.find_section(sections, [words]) if words.strip() else None
    if found is None:
        titles = ", ".join(section.title for section in sections if section.level <= 2)
        raise ContractError(f"has no section {words[:60]!r}", file=path, remedy=f"use one of: {titles[:400]}")
    return found


def _row(cells: list[str], header: Sequence[str], target: Section, path: Path, now: datetime | None) -> str:
    if len(cells) == len(header) - 1 and header[0].strip().casefold() in ("when", "时间"):
        cells = [_timestamp(now), *cells]
    if len(cells) != len(header):
        raise ContractError(
            f"{len(cells)} cells for {len(header)} columns", file=path, where=target.title, remedy=f"give {', '.join(header)}"
        )
    if any("\n" in cell or len(cell) > 2000 for cell in cells):
        raise ContractError("a cell is one line of at most 2000 characters", file=path, where=target.title)
    return escaped_row(cells)


def escaped_row(cells: Sequence[str]) -> str:
    """Return a table row as Markdown; a bar or the begin of a comment in a cell is escaped."""
    escaped = [" ".join(cell.split()).replace("\\|", "|").replace("|", "\\|").replace("<!--", "&lt;!--") for cell in cells]
    return "| " + " | ".join(escaped) + " |"


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table as Markdown."""
    return [escaped_row(columns), "|" + "---|" * len(columns), *map(escaped_row, rows)]


def _checked_text(text: str, path: Path) -> list[str]:
    text = text.replace("\r\n", "\n").strip("\n")
    if not text.strip() or len(text) > _MAX_ENTRY or "\0" in text:
        raise ContractError(f"an entry has 1 to {_MAX_ENTRY} characters", file=path)
    if any(section.level <= 2 for section in markdown.sections(text)):
        raise ContractError("an entry holds no heading of level 1 or 2", file=path, remedy="use ### or deeper")
    probe = "\n## probe\n"
    if not any(section.title == "probe" for section in markdown.sections(text + probe)):
        raise ContractError("an entry leaves a code fence or a comment open", file=path, remedy="close it")
    return text.split("\n")


def _continues(before: str, after: str) -> bool:
    """Whether two lines belong to one list, so that no blank line goes between them."""
    return before.lstrip().startswith(("- ", "* ")) and after.lstrip().startswith(("- ", "* "))


def _timestamp(now: datetime | None) -> str:
    return (now or datetime.now(timezone.utc)).strftime("%Y-%m-%d %H:%M:%S")
