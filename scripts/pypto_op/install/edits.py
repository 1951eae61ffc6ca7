"""Changes to files of the user's own: as small as they can be, and undone byte for byte.

What is put in is remembered word for word, beside a copy of the file as it was. Taking it out gives back the copy where
nothing else changed since; where the user wrote on, only our words go; where the client laid the file out anew, our
entries go.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pypto_op.errors import ContractError
from pypto_op.hashing import sha256_bytes

_DECODER = json.JSONDecoder()
Tables = dict[str, dict[str, Any]]
"""Entries of a settings file: name of a top-level object, key in it, value."""


@dataclass(frozen=True)
class Edit:
    """One file of the user's that was changed."""

    path: str  # relative to the target
    made: bool  # the file was not there before
    fragments: tuple[str, ...]  # what was put in, word for word
    entries: tuple[tuple[str, str], ...]  # the same as keys, for a file that was laid out anew since
    sha256: str  # of the file as we left it

    def as_row(self) -> dict[str, Any]:
        """Return the edit as the manifest keeps it."""
        entries = [list(entry) for entry in self.entries]
        return {**vars(self), "fragments": list(self.fragments), "entries": entries}

    @classmethod
    def from_row(cls, row: dict[str, Any]) -> Edit:
        """Return the edit that a manifest's row describes."""
        entries = tuple((table, key) for table, key in row["entries"])
        return cls(row["path"], row["made"], tuple(row["fragments"]), entries, row["sha256"])


def put_into_settings(path: Path, shown: str, before: bytes | None, tables: Tables) -> tuple[bytes, Edit]:
    """Return a settings file's bytes with `tables` put in, and the edit that undoes it.

    Args:
        path: the file, for messages.
        shown: the same relative to the target.
        before: its bytes; None where there is none.
        tables: what to put in; entries that are there already are left alone.

    Raises:
        ContractError: it is not what the client can read.
    """
    text = "{}\n" if before is None else _decoded(path, before)
    fragments, entries = [], []
    if not text.strip("\ufeff \t\r\n"):
        fragments.append(json.dumps(tables, indent=2) + "\n")
        entries = [(table, key) for table, keys in tables.items() for key in keys]
        text += fragments[0]
    else:
        for table, keys in tables.items():
            for key, value in keys.items():
                done = _insert(path, text, table, key, value)
                if done:
                    text, fragment = done
                    fragments.append(fragment)
                    entries.append((table, key))
    after = text.encode()
    return after, Edit(shown, before is None, tuple(fragments), tuple(entries), sha256_bytes(after))


def put_lines(shown: str, before: bytes | None, lines: list[str]) -> tuple[bytes, Edit] | None:
    """Return a text file's bytes with `lines` added at its end, and the edit; None where all of them are there."""
    text = (before or b"").decode("utf-8", "surrogateescape")
    missing = [line for line in lines if line not in text.splitlines()]
    if not missing:
        return None
    newline = "\r\n" if "\r\n" in text else "\n"
    fragment = ("" if not text or text.endswith("\n") else newline) + "".join(line + newline for line in missing)
    after = (text + fragment).encode("utf-8", "surrogateescape")
    return after, Edit(shown, before is None, (fragment,), (), sha256_bytes(after))


def undone(current: bytes, edit: Edit, kept: bytes | None) -> bytes | None:
    """Return what the file must hold without our edit; None when it must go.

    Args:
        current: its bytes now.
        kept: its bytes before, None where there was none.

    Raises:
        ContractError: our words are not found and the file cannot be read; it must be mended by hand.
    """
    if sha256_bytes(current) == edit.sha256:
        return None if edit.made else kept
    text = current.decode("utf-8", "surrogateescape")
    for fragment in reversed(edit.fragments):
        if text.count(fragment) != 1:
            return _without_entries(current, edit, kept)
        text = text.replace(fragment, "")
    if edit.entries and not _is_json(text):  # the file was laid out anew around our words
        return _without_entries(current, edit, kept)
    if edit.made and "".join(text.split()) in ("", "{}"):
        return None
    return text.encode("utf-8", "surrogateescape")


def _is_json(text: str) -> bool:
    blank = not text.strip("\ufeff \t\r\n")
    try:
        return blank or isinstance(json.loads(text.removeprefix("\ufeff")), dict)
    except ValueError:
        return False


def _without_entries(current: bytes, edit: Edit, kept: bytes | None) -> bytes | None:
    if not edit.entries:
        return current
    try:
        data = json.loads(current.decode("utf-8-sig"))
        before = json.loads((kept or b"").decode("utf-8-sig").strip() or "{}")
    except ValueError:
        remedy = "take what names pypto-op out of it by hand"
        raise ContractError("this file cannot be read as JSON", file=edit.path, remedy=remedy) from None
    for table, key in edit.entries:
        if isinstance(data.get(table), dict):
            data[table].pop(key, None)
            if not data[table] and table not in before:
                del data[table]
    if data == before:
        return None if edit.made else kept
    return (json.dumps(data, indent=2, ensure_ascii=False) + "\n").encode()


def _decoded(path: Path, before: bytes) -> str:
    try:
        text = before.decode("utf-8")
        blank = not text.strip("\ufeff \t\r\n")
        if not blank and not isinstance(json.loads(text.removeprefix("\ufeff")), dict):
            raise ValueError("it is no object")
    except (ValueError, RecursionError) as error:
        said = " ".join(str(error).split())[:80]
        raise ContractError(
            f"Claude Code cannot read this file, so it would not load the plugin ({said})",
            file=path,
            remedy="take comments and commas too many out of it, or add --files-only; nothing was written",
        ) from None
    return text


def _insert(path: Path, text: str, table: str, key: str, value: Any) -> tuple[str, str] | None:
    top = text.index("{")
    members = {name: (start, end) for name, start, end in _members(text, top)}
    if table not in members:
        newline = "\r\n  " if "\r\n" in text else "\n  " if "\n" in text.strip() else ""
        fragment = f"{newline}{json.dumps(table)}: {json.dumps({key: value})}{',' if members else ''}"
        return _at(text, top + 1, fragment), fragment
    start, _ = members[table]
    if text[start] != "{":
        raise ContractError(f"{table} is no object there", file=path, remedy="mend it, or add --files-only")
    inner = {name: span for name, *span in _members(text, start)}
    if key in inner:
        if json.loads(text[slice(*inner[key])]) == value:
            return None
        raise ContractError(f"{table} names {key} already, otherwise", file=path, remedy="take that entry out")
    fragment = f"{json.dumps(key)}: {json.dumps(value)}{', ' if inner else ''}"
    return _at(text, start + 1, fragment), fragment


def _at(text: str, index: int, fragment: str) -> str:
    return text[:index] + fragment + text[index:]


def _members(text: str, start: int) -> Iterator[tuple[str, int, int]]:
    """Yield key, start and end of the value for each member of the object that begins at `start`; the text is JSON."""
    index = _skip(text, start + 1)
    while text[index] == '"':
        key, index = _DECODER.raw_decode(text, index)
        begin = _skip(text, _skip(text, index) + 1)
        _, index = _DECODER.raw_decode(text, begin)
        yield key, begin, index
        index = _skip(text, index)
        if text[index] == ",":
            index = _skip(text, index + 1)


def _skip(text: str, index: int) -> int:
    while text[index] in " \t\r\n":
        index += 1
    return index
