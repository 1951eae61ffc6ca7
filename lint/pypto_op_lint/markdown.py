"""The parts of a Markdown document that rules read: front matter, headings, fenced code, tables, checklists.

Text inside a code fence or an HTML comment is never taken for a heading, a table or a checklist item.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

_FENCE = re.compile(r"^ {0,3}(?P<mark>`{3,}|~{3,})[ \t]*(?P<info>[^\n]*)$")
_HEADING = re.compile(r"^ {0,3}(?P<level>#{1,6})[ \t]+(?P<title>.*?)[ \t]*#*[ \t]*$")
_ITEM = re.compile(r"^[ \t]*(?:[-*+]|\d+[.)])[ \t]+\[(?P<mark>.)\ufe0f?\][ \t]*(?P<text>.*)$")
_SEPARATOR = re.compile(r"^\s*\|?\s*:?-{2,}:?\s*(\|\s*:?-{2,}:?\s*)*\|?\s*$")
PYTHON_FENCES = {"", "python", "py", "python3", "py3", "pycon", "ipython", "ipython3", "pypto"}


@dataclass(frozen=True)
class Fence:
    """A block of code. `line` is the line of its first code line, from 1; `columns` were cut off in front of each line."""

    language: str
    text: str
    line: int
    columns: int = 0

    @property
    def is_python(self) -> bool:
        """Whether the fence says so, or says nothing."""
        return self.language.lower() in PYTHON_FENCES


@dataclass(frozen=True)
class Section:
    """A heading and the lines under it up to the next heading of its level or above."""

    title: str
    level: int
    line: int
    lines: tuple[tuple[int, str], ...]

    @property
    def text(self) -> str:
        """The lines under the heading."""
        return "\n".join(text for _, text in self.lines)


@dataclass(frozen=True)
class ChecklistItem:
    """`- [x] text`."""

    mark: str
    text: str
    line: int

    @property
    def ticked(self) -> bool:
        """Whether the box is ticked."""
        return self.mark in "xX✓✔✅√"


@dataclass(frozen=True)
class Row:
    """A row of a table: its cells, stripped."""

    cells: tuple[str, ...]
    line: int


@dataclass(eq=False)
class Markdown:
    """A parsed document."""

    text: str

    @cached_property
    def _split(self) -> tuple[list[tuple[int, str]], list[Fence], list[tuple[int, str]]]:
        """Prose lines, fences and the front matter's lines, each with line numbers."""
        lines = list(enumerate(self.text.split("\n"), start=1))
        front: list[tuple[int, str]] = []
        if lines and lines[0][1].rstrip() == "---":
            end = next((i for i, (_, text) in enumerate(lines[1:], 1) if text.rstrip() in ("---", "...")), None)
            if end is not None:
                front, lines = lines[1:end], lines[end + 1 :]
        prose, fences = _prose_and_fences(lines)
        return prose, fences, front

    @property
    def prose(self) -> list[tuple[int, str]]:
        """Lines outside code and comments, with their numbers."""
        return self._split[0]

    @property
    def fences(self) -> list[Fence]:
        """Blocks of code: fenced with backticks or tildes, or indented by four columns after a blank line."""
        return self._split[1]

    @cached_property
    def front_matter(self) -> dict[str, Any] | None:
        """The YAML mapping between the first two `---` lines; None when there is none or it is no mapping."""
        front = self._split[2]
        if not front:
            return None
        import yaml

        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        try:
            data = yaml.load("\n".join(text for _, text in front), Loader=loader)  # noqa: S506
        except (yaml.YAMLError, ValueError, RecursionError):
            return None
        return data if isinstance(data, dict) else None

    def front_matter_line(self, key: str) -> int:
        """Return the line of a top-level key of the front matter; 1 when it is not there."""
        return next((n for n, text in self._split[2] if re.match(rf"{re.escape(key)}\s*:", text)), 1)

    @cached_property
    def sections(self) -> list[Section]:
        """Every heading with what stands under it, in order."""
        heads = [(i, n, len(m["level"]), m["title"]) for i, (n, t) in enumerate(self.prose) if (m := _HEADING.match(t))]
        found = []
        for place, (index, number, level, title) in enumerate(heads):
            end = next((i for i, _, other, _ in heads[place + 1 :] if other <= level), len(self.prose))
            found.append(Section(title.strip(), level, number, tuple(self.prose[index + 1 : end])))
        return found

    def section(self, *words: str) -> Section | None:
        """Return the first section whose title contains one of `words`, case ignored."""
        wanted = [word.casefold() for word in words]
        return next((s for s in self.sections if any(w in s.title.casefold() for w in wanted)), None)


def checklist(section: Section) -> list[ChecklistItem]:
    """Return the checklist items of a section."""
    return [ChecklistItem(m["mark"], m["text"].strip(), number) for number, text in section.lines if (m := _ITEM.match(text))]


def tables(section: Section) -> list[list[Row]]:
    """Return the tables of a section: header row first, the separator left out."""
    found: list[list[Row]] = []
    lines = section.lines
    for index, (_, text) in enumerate(lines):
        if index and _SEPARATOR.match(text) and "|" in lines[index - 1][1]:
            rows = [_row(*lines[index - 1])]
            for number, line in lines[index + 1 :]:
                if "|" not in line:
                    break
                rows.append(_row(number, line))
            found.append(rows)
    return found


def _row(number: int, text: str) -> Row:
    cells = re.split(r"(?<!\\)\|", text.strip().removeprefix("|").removesuffix("|"))
    return Row(tuple(cell.strip() for cell in cells), number)


def _prose_and_fences(lines: list[tuple[int, str]]) -> tuple[list[tuple[int, str]], list[Fence]]:
    prose: list[tuple[int, str]] = []
    fences: list[Fence] = []
    index, comment = 0, False
    while index < len(lines):
        number, text = lines[index]
        opened = None if comment else _FENCE.match(text)
        if opened and not (opened["mark"][0] == "`" and "`" in opened["info"]):
            index = _read_fence(lines, index, opened, fences)
            continue
        if not comment and _is_indented(lines, index, prose):
            index = _read_indented(lines, index, fences)
            continue
        visible, comment = _without_comments(text, comment)
        prose.append((number, visible))
        index += 1
    return prose, fences


def _read_fence(lines: list[tuple[int, str]], index: int, opened: re.Match[str], fences: list[Fence]) -> int:
    mark = opened["mark"]
    close = re.compile(rf"^ {{0,3}}{re.escape(mark[0])}{{{len(mark)},}}[ \t]*$")
    end = next((i for i in range(index + 1, len(lines)) if close.match(lines[i][1])), len(lines))
    words = opened["info"].strip().lstrip("{.").split()
    language = re.split(r"[,{:}]", words[0])[0] if words else ""
    fences.append(Fence(language, "\n".join(t for _, t in lines[index + 1 : end]), lines[index][0] + 1))
    return end + 1


def _is_indented(lines: list[tuple[int, str]], index: int, prose: list[tuple[int, str]]) -> bool:
    text = lines[index][1]
    blank_before = not prose or not prose[-1][1].strip()
    in_list = next((bool(re.match(r"\s*(?:[-*+]|\d+[.)])\s", t)) for _, t in reversed(prose) if t.strip()), False)
    return text.startswith(("    ", "\t")) and bool(text.strip()) and blank_before and not in_list


def _read_indented(lines: list[tuple[int, str]], index: int, fences: list[Fence]) -> int:
    end = index
    while end < len(lines) and (lines[end][1].startswith(("    ", "\t")) or not lines[end][1].strip()):
        end += 1
    body = [re.sub(r"^(?: {4}|\t)", "", text) for _, text in lines[index:end]]
    fences.append(Fence("", "\n".join(body).rstrip(), lines[index][0], 4))
    return end


def _without_comments(text: str, inside: bool) -> tuple[str, bool]:
    """Drop the parts of a line that an HTML comment covers; say whether the comment goes on."""
    shown = ""
    while text:
        if inside:
            _, found, text = text.partition("-->")
            inside = not found
        else:
            before, found, text = text.partition("<!--")
            shown += before
            inside = bool(found)
    return shown, inside
