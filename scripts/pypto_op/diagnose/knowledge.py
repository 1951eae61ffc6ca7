"""The knowledge base: mistakes in kernels, one YAML file each, and signatures of machines, tool chains and crashes.

`schemas/knowledge_entry.schema.json` and `schemas/signatures.schema.json` describe them. A mistake has a kernel that makes it; a
signature has a log, in `tests/fixtures/device_logs/`.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from pypto_op.diagnose.routes import skill_of
from pypto_op.errors import ContractError
from pypto_op.vocabulary import FailureCategory

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
FOLDER = Path(__file__).with_name("knowledge")
SIGNATURES = FOLDER / "signatures"
LOG, KERNEL, BOTH = 0.9, 0.5, 0.95
"""How sure an entry is where it does not say: its words stand in the log, the kernel alone shows it, or both."""


@dataclass(frozen=True)
class Evidence:
    """One way to recognise a mistake; everything that is given must hold."""

    log: re.Pattern[str] | None = None  # expression that the log must contain
    not_log: re.Pattern[str] | None = None  # expression that the log must not contain
    # expression that the kernel's failing line must contain; the log or the kernel shows that line
    code: re.Pattern[str] | None = None
    not_code: re.Pattern[str] | None = None  # expression that the failing line must not contain
    rules: frozenset[str] = frozenset()  # lint rules of which one must fire on the kernel
    said: re.Pattern[str] | None = None  # expression that the message of one of `rules` must contain
    not_rules: frozenset[str] = frozenset()  # lint rules of which none may fire on the kernel
    kernel: re.Pattern[str] | None = None  # expression that the kernel's text must contain
    not_kernel: re.Pattern[str] | None = None  # expression that the kernel's text must not contain
    blames_kernel_text: bool = False  # the place that `kernel` or `rules` finds is to blame, whatever line the log names
    aftermath: bool = False  # the words tell of somebody who waited; where the log shows why, that comes first
    confidence: float = 0.0  # how sure a hit is, from 0 to 1; 0.0: as the parts that are given say

    @property
    def sure(self) -> float:
        """How sure a hit is, from 0 to 1."""
        return self.confidence or (BOTH if self.log and self.asks_kernel else LOG if self.log else KERNEL)

    @property
    def asks_kernel(self) -> bool:
        """Whether the kernel's file is needed to decide."""
        return bool(self.rules or self.not_rules or self.kernel or self.not_kernel)


@dataclass(frozen=True)
class Example:
    """A kernel that shows the mistake, and how it is mended."""

    mistake: str  # a whole file with `example_wrapper`
    mended: str  # the same file without the mistake
    inputs: tuple[tuple[tuple[int, ...], str], ...]  # shape and dtype word of each input
    cost_model: bool  # the mistake shows only while the cost model runs


@dataclass(frozen=True)
class Entry:
    """One known mistake or signature."""

    id: str  # its name
    title: str  # one line
    evidence: tuple[Evidence, ...]  # ways to recognise it
    cause: str  # why it happens
    remedy: str  # what to do
    category: FailureCategory  # the failure category that it belongs to
    skill: str  # the sub-skill that goes on from here
    rules: tuple[str, ...] = ()  # lint rules that speak of it
    example: Example | None = None  # a kernel that makes the mistake; None for a signature
    source: str = ""  # where the words of a signature come from, "" for a mistake


@functools.cache
def entries() -> tuple[Entry, ...]:
    """Return every entry, in order of id."""
    found = [_entry(_read(path)) for path in FOLDER.glob("*.yaml")]
    found += [_entry(row) for path in SIGNATURES.glob("*.yaml") for row in _read(path)["entries"]]
    return tuple(sorted(found, key=lambda row: row.id))


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


def _read(path: Path) -> Any:
    """Read a file of the bundle's own: by the fast loader, since tests hold it against its schema."""
    return yaml.load(path.read_text(encoding="utf-8"), Loader=_LOADER)  # noqa: S506  (a safe loader, in C where there is one)


def _entry(data: Mapping[str, Any]) -> Entry:
    category = FailureCategory(data["category"])
    return Entry(
        id=data["id"],
        title=data["title"],
        evidence=tuple(_evidence(row) for row in data["evidence"]),
        cause=data["cause"].strip(),
        remedy=data["remedy"].strip(),
        category=category,
        skill=data.get("skill") or skill_of(category),
        rules=tuple(data.get("rules", ())),
        example=_example(data["example"]) if "example" in data else None,
        source=data.get("source", ""),
    )


def _example(data: Mapping[str, Any]) -> Example:
    mended = data["mistake"]
    for step in data["mend"]:
        mended = mended.replace(step["replace"], step["by"])
    return Example(
        mistake=data["mistake"],
        mended=mended,
        inputs=tuple((tuple(row["shape"]), row["dtype"]) for row in data["inputs"]),
        cost_model=bool(data.get("cost_model")),
    )


def _evidence(row: Mapping[str, Any]) -> Evidence:
    patterns = {
        key: re.compile(row[key], re.MULTILINE)
        for key in ("log", "not_log", "code", "not_code", "said", "kernel", "not_kernel")
        if key in row
    }
    return Evidence(
        rules=frozenset(row.get("rules", ())),
        not_rules=frozenset(row.get("not_rules", ())),
        blames_kernel_text=row.get("blames_kernel_text", False),
        aftermath=row.get("aftermath", False),
        confidence=row.get("confidence", 0.0),
        **patterns,
    )
