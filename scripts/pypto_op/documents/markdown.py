"""The structure of a Markdown document: headings and sections, tables, and what was left to do."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from pypto_op.documents.reading import read_yaml
from pypto_op.documents.schema import Finding

_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(.*?)[ \t]*#*[ \t]*$")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_MARK = r"(?:TODO|TBD|FIXME)\b"
_UNFINISHED = re.compile(
    # A mark that stands for something: at the beginning of a line, cell, bracket or value, or followed by a colon. In the
    # middle of a sentence ("no TODO is left") it is a word.
    rf"(?:^|[|:=(\[<{{,\"'`])[\s>*#_-]*({_MARK})|\b(TODO|TBD|FIXME)\s*[:(]|(待补充|待定|待填写)"
)
_PLACEHOLDER_LINE = re.compile(r"^[\s>*-]*(?:<[^<>\n]+>|\{\{[^{}\n]*\}\}|\.{3}|…+)[.。]?\s*$", re.MULTILINE)
"""A line that only says that something belongs there: `<the plan>`, `{{ plan }}`, `...`."""
_RULE_CELL = re.compile(r":?-{1,}:?\Z")


@dataclass(frozen=True)
class Section:
    """A heading with everything below it, up to the next heading of the same or a higher level.

    Attributes:
        title: the heading's text.
        level: 1 to 6.
        line: the heading's line in the file, counted from 1.
        text: what follows the heading.
    """

    title: str
    level: int
    line: int
    text: str


@dataclass(frozen=True)
class Table:
    """A pipe table.

    Attributes:
        header: the column titles.
        rows: the cells of each row, as many as there are columns.
        line: the header's line within the text that was searched, counted from 1.
    """

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    line: int

    def column(self, *words: str) -> int | None:
        """Return the first column whose title contains one of `words`, whatever the case, or None."""
        for number, title in enumerate(self.header):
            if any(word.casefold() in title.casefold() for word in words):
                return number
        return None


def blank_out_code_and_comments(text: str) -> str:
    """Return `text` with fenced code and HTML comments emptied, line for line."""
    lines, fence, comment = [], "", False
    for line in text.split("\n"):
        mark = _FENCE.match(line)
        if fence:
            closes = mark and mark[1].startswith(fence) and not line.strip().strip(mark[1][0])
            fence = "" if closes else fence
            lines.append("")
        elif mark and not comment:
            fence = mark[1]
            lines.append("")
        else:
            line, comment = _without_comment(line, comment)
            lines.append(line)
    return "\n".join(lines)


def _without_comment(line: str, inside: bool) -> tuple[str, bool]:
    kept = ""
    while True:
        if inside:
            end = line.find("-->")
            if end < 0:
                return kept, True
            line, inside = line[end + 3 :], False
        start = line.find("<!--")
        if start < 0:
            return kept + line, False
        kept, line, inside = kept + line[:start], line[start + 4 :], True


def sections(text: str, *, first_line: int = 1) -> list[Section]:
    """Return every section of `text`, in order; a section contains its subsections.

    Args:
        text: the body of a document. Headings inside fenced code or comments do not count.
        first_line: the line of the file on which `text` begins.
    """
    lines = text.split("\n")
    headings = []
    for number, line in enumerate(blank_out_code_and_comments(text).split("\n")):
        match = _HEADING.match(line)
        if match and match[2]:
            headings.append((number, len(match[1]), match[2]))
    result = []
    for position, (number, level, title) in enumerate(headings):
        following = (start for start, other, _ in headings[position + 1 :] if other <= level)
        end = next(following, len(lines))
        result.append(Section(title, level, number + first_line, "\n".join(lines[number + 1 : end])))
    return result


def tables(text: str) -> list[Table]:
    """Return every pipe table of `text`; rows are cut or filled up to the header's width."""
    lines = blank_out_code_and_comments(text).split("\n")
    found, number = [], 0
    while number + 1 < len(lines):
        header = _cells(lines[number])
        rule = _cells(lines[number + 1])
        if header and len(rule) == len(header) and all(_RULE_CELL.match(cell) for cell in rule):
            rows, end = [], number + 2
            while end < len(lines) and (cells := _cells(lines[end])):
                rows.append(tuple((cells + [""] * len(header))[: len(header)]))
                end += 1
            found.append(Table(tuple(header), tuple(rows), number + 1))
            number = end
        else:
            number += 1
    return found


def _cells(line: str) -> list[str]:
    line = line.strip()
    if "|" not in line:
        return []
    line = line.removeprefix("|")
    if line.endswith("|") and not line.endswith("\\|"):
        line = line[:-1]
    return [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)]


def unfinished(text: str, *, first_line: int = 1) -> Iterator[Finding]:
    """Yield a finding for each line on which something is still to be written, code and comments included."""
    for number, line in enumerate(text.split("\n")):
        match = _UNFINISHED.search(line)
        if match:
            word = next(group for group in match.groups() if group)
            yield Finding("", f"{word} is left: {line.strip()[:80]}", number + first_line)


@lru_cache(maxsize=1)
def required_headings() -> dict[str, dict[str, dict[str, Any]]]:
    """Return `headings.yaml`: the sections each document needs, and the words that name or prove them."""
    data = read_yaml(Path(__file__).with_name("headings.yaml"))
    assert isinstance(data, dict)
    return data


def find_section(found: Sequence[Section], words: Sequence[str]) -> Section | None:
    """Return the first section whose title contains one of `words`, whatever the case; an earlier word goes before a later."""
    for word in words:
        for section in found:
            if word.casefold() in section.title.casefold():
                return section
    return None


def check_sections(document: str, found: Sequence[Section]) -> Iterator[Finding]:
    """Yield what `headings.yaml` asks of `document` (`spec`, `design`, ...) and the sections do not give."""
    for key, rule in required_headings()[document].items():
        section = find_section(found, rule["titles"])
        if section is None:
            titles = " or ".join(repr(title) for title in rule["titles"][:2])
            yield Finding("", f"the section on {key.replace('_', ' ')} is missing: write a heading {titles}")
            continue
        text = section.text.casefold()
        if not _PLACEHOLDER_LINE.sub("", text).strip():
            yield Finding(section.title, "the section is empty", section.line)
        for alternatives in rule.get("mentions", []):
            if text.strip() and not any(word.casefold() in text for word in alternatives):
                yield Finding(section.title, f"mentions none of {', '.join(alternatives)}", section.line)
