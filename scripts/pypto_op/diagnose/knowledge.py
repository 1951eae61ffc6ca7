"""The knowledge base: one YAML file per mistake, described by `schemas/knowledge_entry.schema.json`."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pypto_op.documents.reading import read_yaml
from pypto_op.errors import ContractError

FOLDER = Path(__file__).with_name("knowledge")


@dataclass(frozen=True)
class Evidence:
    """One way to recognise a mistake; everything that is given must hold.

    Attributes:
        log: expression that the log must contain.
        code: expression that the kernel's failing line must contain; the log or the kernel shows that line.
        not_code: expression that the failing line must not contain.
        rules: lint rules of which one must fire on the kernel.
        not_rules: lint rules of which none may fire on the kernel.
        kernel: expression that the kernel's text must contain.
        not_kernel: expression that the kernel's text must not contain.
        tile_width_bytes: the kernel sets a vector tile whose last axis, as float32, is no multiple of this.
    """

    log: re.Pattern[str] | None = None
    code: re.Pattern[str] | None = None
    not_code: re.Pattern[str] | None = None
    rules: frozenset[str] = frozenset()
    not_rules: frozenset[str] = frozenset()
    kernel: re.Pattern[str] | None = None
    not_kernel: re.Pattern[str] | None = None
    tile_width_bytes: int | None = None

    @property
    def asks_kernel(self) -> bool:
        """Whether the kernel's file is needed to decide."""
        return bool(self.rules or self.not_rules or self.kernel or self.not_kernel or self.tile_width_bytes)


@dataclass(frozen=True)
class Example:
    """A kernel that shows the mistake, and how it is mended.

    Attributes:
        mistake: a whole file with `example_wrapper`.
        mended: the same file without the mistake.
        inputs: shape and dtype word of each input.
        cost_model: the mistake shows only while the cost model runs.
    """

    mistake: str
    mended: str
    inputs: tuple[tuple[tuple[int, ...], str], ...]
    cost_model: bool


@dataclass(frozen=True)
class Entry:
    """One known mistake."""

    id: str
    title: str
    evidence: tuple[Evidence, ...]
    cause: str
    remedy: str
    rules: tuple[str, ...]
    example: Example


@functools.cache
def entries() -> tuple[Entry, ...]:
    """Return every entry, in order of id."""
    return tuple(_entry(read_yaml(path)) for path in sorted(FOLDER.glob("*.yaml")))


def entry(entry_id: str) -> Entry:
    """Return one entry.

    Raises:
        ContractError: there is none of that id.
    """
    for found in entries():
        if found.id == entry_id:
            return found
    import difflib

    near = difflib.get_close_matches(entry_id, [found.id for found in entries()], 3, 0.4)
    raise ContractError(
        f"no entry {entry_id[:60]!r}", remedy=f"nearest: {', '.join(near)}" if near else "run `pypto-op diagnose --list`"
    )


def _entry(data: Mapping[str, Any]) -> Entry:
    example = data["example"]
    mended = example["mistake"]
    for step in example["mend"]:
        mended = mended.replace(step["replace"], step["by"])
    return Entry(
        id=data["id"],
        title=data["title"],
        evidence=tuple(_evidence(row) for row in data["evidence"]),
        cause=data["cause"].strip(),
        remedy=data["remedy"].strip(),
        rules=tuple(data["rules"]),
        example=Example(
            mistake=example["mistake"],
            mended=mended,
            inputs=tuple((tuple(row["shape"]), row["dtype"]) for row in example["inputs"]),
            cost_model=bool(example.get("cost_model")),
        ),
    )


def _evidence(row: Mapping[str, Any]) -> Evidence:
    patterns = {
        key: re.compile(row[key], re.MULTILINE) for key in ("log", "code", "not_code", "kernel", "not_kernel") if key in row
    }
    return Evidence(
        rules=frozenset(row.get("rules", ())),
        not_rules=frozenset(row.get("not_rules", ())),
        tile_width_bytes=row.get("tile_width_bytes"),
        **patterns,
    )
