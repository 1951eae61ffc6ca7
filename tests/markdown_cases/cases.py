"""Bases and cases of a page: what each case's files are once its edits are applied.

A heading `## base: NAME` starts a base; the cases `### good: NAME` and `### bad: NAME` below it stand on it: they have its
files, changed by their blocks. tests/corpus/lint/README.md explains the form to people.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.markdown_cases import edits, pages
from tests.markdown_cases.pages import Block, Page, PageError, Section

Files = Mapping[str, bytes]
"""Text of files by their path in the operator's folder; the path "" is the one file of a case that is a single file."""
Fallback = Callable[[Mapping[str, Any], str], bytes | None]
"""What an edit changes where the base has no such file: keys of the case, path -> text, or None."""

NO_BASE = "none"
DIFF = "diff"
FLAGS = ("crlf", "escaped", "no-newline")
_BASE = re.compile(r"base: ([A-Za-z0-9_]+)")
_CASE = re.compile(r"(bad|good): ([A-Za-z0-9_]+)")
_BYTE = re.compile(rb"\\x([0-9a-f]{2})")


@dataclass(frozen=True)
class Case:
    """One labelled example: its files as bytes, and the keys that its page gives it."""

    name: str
    label: str
    why: str
    line: int
    files: Files
    keys: Mapping[str, Any]
    key_lines: Mapping[str, int]


@dataclass(frozen=True)
class Cases:
    """What a page holds: title, intent, defaults (its front matter), bases by name, and cases in their order."""

    page: Page
    bases: Mapping[str, Files]
    cases: tuple[Case, ...]

    @property
    def title(self) -> str:
        return self.page.sections[0].title

    @property
    def intent(self) -> str:
        return self.page.sections[0].prose


def load(path: Path, shared: Mapping[str, Files] | None = None, fallback: Fallback | None = None) -> Cases:
    """Return the bases and cases of the page at `path`; `shared` are bases that it may use, `fallback` other texts to edit.

    Raises:
        PageError: the page is not in order, or an edit does not fit its base.
    """
    return resolve(pages.read(path), shared or {}, fallback or (lambda keys, path: None))


def resolve(page: Page, shared: Mapping[str, Files], fallback: Fallback) -> Cases:
    """Return the bases and cases of `page`, with every edit applied."""
    known: dict[str, Files] = {NO_BASE: {}, **shared}
    own: dict[str, Files] = {}
    found: list[Case] = []
    current: Files = {}
    if page.sections[0].blocks or page.sections[0].keys:
        raise PageError(page.path, page.sections[0].line, "below the title stands prose only")
    for section in page.sections[1:]:
        if section.level == 2:
            name, current = _base(page, section, known)
            if section.blocks or section.keys:
                if name in known:
                    raise PageError(page.path, section.line, f"there is a base {name} already")
                known[name] = own[name] = current
        else:
            found.append(_case(page, section, current, fallback))
            if found[-1].name in {case.name for case in found[:-1]}:
                raise PageError(page.path, section.line, f"there is a case {found[-1].name} already")
    return Cases(page, own, tuple(found))


def _base(page: Page, section: Section, known: Mapping[str, Files]) -> tuple[str, Files]:
    match = _BASE.fullmatch(section.title)
    if match is None:
        raise PageError(page.path, section.line, f"expected `## base: NAME`, not {section.title!r}")
    if set(section.keys) - {"from"}:
        raise PageError(page.path, section.line, "a base has one key only: `from`, what it is made from")
    below = section.keys.get("from", match[1] if not section.blocks else NO_BASE)
    try:
        files = _source(known, below)
    except KeyError as error:
        raise PageError(page.path, section.key_lines.get("from", section.line), str(error.args[0])) from None
    return match[1], _changed(page, section, files, lambda path: None)


def _source(known: Mapping[str, Files], below: Any) -> Files:
    """Return the files that `below` names: a base, one file of it as `BASE/path`, or a mapping of paths to such names."""
    if isinstance(below, dict):
        return {str(path): _single(known, str(source)) for path, source in below.items()}
    return {"": _single(known, below)} if "/" in str(below) else _files(known, str(below))


def _single(known: Mapping[str, Files], source: str) -> bytes:
    name, _, path = source.partition("/")
    files = _files(known, name)
    if path not in files:
        raise KeyError(f"base {name} has no {path or 'single file'}; it has {', '.join(sorted(files))}")
    return files[path]


def _files(known: Mapping[str, Files], name: str) -> Files:
    if name not in known:
        raise KeyError(f"there is no base {name}; there are {', '.join(sorted(known))}")
    return known[name]


def _case(page: Page, section: Section, base: Files, fallback: Fallback) -> Case:
    match = _CASE.fullmatch(section.title)
    if match is None or section.level != 3:
        raise PageError(page.path, section.line, f"expected `### good: NAME` or `### bad: NAME`, not {section.title!r}")
    if not section.prose:
        raise PageError(page.path, section.line, f"case {match[2]} has no sentence that says why")
    files = _changed(page, section, base, lambda path: fallback({**page.front, **section.keys}, path))
    return Case(match[2], match[1], section.prose, section.line, files, section.keys, section.key_lines)


def _changed(page: Page, section: Section, base: Files, fallback: Callable[[str], bytes | None]) -> Files:
    """Return the files of `base` as the blocks of `section` change them, and those that the blocks add."""
    files = dict(base)
    seen: set[str] = set()
    for block in section.blocks:
        path, flags = _words(page, block)
        if path in seen:
            raise PageError(page.path, block.line, f"two blocks for {path or 'the same file'}")
        seen.add(path)
        lines = block.lines
        if block.words[0] == DIFF:
            old = base[path] if path in base else fallback(path)
            if old is None:
                raise PageError(page.path, block.line, f"the base has no {path or 'single file'} that could be edited")
            lines = _edited(page, block, old)
        files[path] = _encoded(lines, flags)
    if "" in files and len(files) > 1:
        raise PageError(page.path, section.line, "a single file (a block without a path) and files with paths do not go together")
    return files


def _words(page: Page, block: Block) -> tuple[str, set[str]]:
    """Return path and flags from what stands behind a block's backticks: language, then both in any order."""
    if not block.words:
        raise PageError(page.path, block.line, f"say what the block is: `{DIFF}`, `python`, `markdown`, `yaml`, `json` or `text`")
    flags = {word for word in block.words[1:] if word in FLAGS}
    paths = [word for word in block.words[1:] if word not in FLAGS]
    if len(paths) > 1 or any(Path(path).is_absolute() or ".." in Path(path).parts for path in paths):
        raise PageError(page.path, block.line, f"expected one relative path and {', '.join(FLAGS)}, not {' '.join(paths)!r}")
    return "".join(paths), flags


def _edited(page: Page, block: Block, old: bytes) -> tuple[str, ...]:
    lines = old.decode("utf-8").split("\n")
    try:
        return tuple(edits.apply(lines[:-1] if lines[-1] == "" else lines, block.lines))
    except edits.EditError as error:
        raise PageError(page.path, block.line + 1 + error.line, str(error)) from error


def _encoded(lines: tuple[str, ...], flags: set[str]) -> bytes:
    text = "".join(f"{line}\n" for line in lines).encode("utf-8")
    if "no-newline" in flags:
        text = text.removesuffix(b"\n")
    if "crlf" in flags:
        text = text.replace(b"\n", b"\r\n")
    if "escaped" in flags:
        text = _BYTE.sub(lambda match: bytes([int(match[1], 16)]), text)
    return text
