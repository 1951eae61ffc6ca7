"""Which known mistakes and signatures a log, and the kernel that wrote it, show. A guess without evidence is no hit."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pypto_op.diagnose import credible
from pypto_op.diagnose.graph_place import line_of_graph
from pypto_op.diagnose.kernel_text import KernelText
from pypto_op.diagnose.knowledge import Entry, Evidence, entries
from pypto_op.diagnose.log_text import LogText
from pypto_op.diagnose.sources import RAISED, failure_at, is_a_name, pointer_of, read_source
from pypto_op.errors import ContractError
from pypto_op.vocabulary import FailureCategory

SURE = 0.8
"""From this confidence on a hit names the mistake; below it names the kind of failure."""
_STOPS = (FailureCategory.AICORE, FailureCategory.HOST_CRASH, FailureCategory.OOM, FailureCategory.WORKSPACE_OVERLAP)
_STOPPED = 0.65
"""From this confidence on a hit of these categories is why others waited; an abort is less, since who waited in vain aborts."""
_SHOWN = 240
_MAX_HITS = 5


@dataclass(frozen=True)
class Hit:
    """A mistake that is shown."""

    entry: Entry  # the mistake
    confidence: float  # how sure, from 0 to 1
    seen: str  # the words of the log, or the rule and line of the kernel, that show it
    from_log: bool  # the log shows it; otherwise the kernel alone does, and the log does not speak against it
    offset: int  # where the words stand in the searched text
    # file and line of the log that shows it; ("", 0) where only the kernel does, line 0 where lines have no number
    log: tuple[str, int]
    file: str  # kernel file that is blamed, "" where unknown
    line: int  # line in it, 0 where unknown
    code: str  # that line's text, "" where unknown
    aftermath: bool = False  # it tells of somebody who waited

    def as_dict(self) -> dict[str, Any]:
        """Return the hit as `schemas/diagnosis.schema.json` describes it."""
        found = self.entry
        return {
            "id": found.id,
            "title": found.title,
            "confidence": self.confidence,
            "category": str(found.category),
            "skill": found.skill,
            "seen": self.seen,
            "from_log": self.from_log,
            "log_file": self.log[0] or None,
            "log_line": self.log[1] or None,
            "kernel_file": self.file or None,
            "kernel_line": self.line or None,
            "code": self.code or None,
            "cause": found.cause,
            "fix": found.remedy,
            "rules": list(found.rules),
        }


@dataclass(frozen=True)
class Diagnosis:
    """What was found: hits, best first, the entries that the kernel's file would decide, and what to know of the log."""

    hits: tuple[Hit, ...]
    undecided: tuple[str, ...]
    notes: tuple[str, ...] = ()
    passed: bool = False  # nothing failed: the operator's last verdict is PASS
    pointed: bool = False  # the last of the notes says where to go on

    def as_dict(self) -> dict[str, Any]:
        """Return the diagnosis as `schemas/diagnosis.schema.json` describes it."""
        return {
            "schema_version": 2,
            "hits": [hit.as_dict() for hit in self.hits],
            "undecided": list(self.undecided),
            "searched": len(entries()),
            "notes": list(self.notes),
        }


def asked_rules() -> frozenset[str]:
    """Return the lint rules that any entry asks about."""
    return frozenset(rule for found in entries() for row in found.evidence for rule in row.rules | row.not_rules)


def explain(error_log: str | Path, kernel_code: str | Path | None = None) -> Diagnosis:
    """Name the known mistakes that a failed run shows; the library's form of `pypto-op diagnose`.

    Args:
        error_log: a text, or the path of a log, a report, a failure folder, an operator's folder or a folder of logs.
        kernel_code: the file that ran or its text; without it, what the failure folder names.

    Raises:
        ContractError: one of them cannot be read, is not there, or belongs to the judge.
    """
    from pypto_op.diagnose.kernel_text import read_kernel

    source = read_source(error_log)
    given = kernel_code or source.kernel
    found = heard(diagnose(source.log, read_kernel(given, asked_rules()) if given else None), failure_at(error_log))
    check_no_name(error_log, found)
    pointer = "" if found.hits else pointer_of(error_log)
    return replace(found, notes=(*found.notes, *([pointer] if pointer else [])), passed=source.passed, pointed=bool(pointer))


def check_no_name(given: str | Path, found: Diagnosis) -> None:
    """Raise ContractError where what was to be diagnosed is one word that means nothing: the name of a file that is not there."""
    if not found.hits and is_a_name(given):
        raise ContractError(
            "no such file or folder, and no known error is called so",
            file=given,
            remedy="name the log, or give the error's whole line",
        )


_NOT_RAISED = (FailureCategory.HOST_CRASH, FailureCategory.PRECISION)
"""What words of a run that raised do not speak of: pypto prints a C++ stack for everything that it raises."""


def heard(found: Diagnosis, failure: Mapping[str, Any]) -> Diagnosis:
    """Return of a diagnosis what can be of a failure (a report's `first_failure`, {} for none): one answer for all who ask."""
    if failure.get("reason") not in RAISED:
        return found
    return replace(found, hits=tuple(hit for hit in found.hits if hit.entry.category not in _NOT_RAISED))


def diagnose(log: LogText, kernel: KernelText | None = None) -> Diagnosis:
    """Search `log`, and `kernel` if given, for known mistakes.

    The surest comes first, of those about as sure (the same tenth) the one that the log tells first: what follows an error
    is often its aftermath. Who only waited comes behind what stopped a device or a process, wherever it stands: of several
    ranks one fails, and the others say so first. What the kernel alone shows counts only while the log shows nothing: a linter
    finding need not be the reason.
    """
    hits = [hit for found in entries() if (hit := _first_hit(found, log, kernel))]
    stops = {_line_at(log.text, hit.offset) for hit in hits if _says_what_stopped(hit)}
    late = {hit.entry.id for hit in hits if hit.aftermath and stops - {_line_at(log.text, hit.offset)}}
    hits.sort(key=lambda hit: (hit.entry.id in late, -int(hit.confidence * 10), hit.offset, -hit.confidence))
    from_log = [hit for hit in hits if hit.from_log]
    undecided: list[str] = []
    if kernel is None:
        asking = [found for found in entries() if any(row.asks_kernel and _log_holds(row, log) for row in found.evidence)]
        undecided = [found.id for found in asking if all(found is not hit.entry for hit in from_log)]
    return Diagnosis(tuple((from_log or hits)[:_MAX_HITS]), tuple(undecided), log.notes)


def _says_what_stopped(hit: Hit) -> bool:
    return hit.from_log and hit.entry.category in _STOPS and hit.confidence >= _STOPPED and not hit.aftermath


def _line_at(text: str, offset: int) -> int:
    """Return where the line begins that holds a place in the text."""
    return text.rfind("\n", 0, offset) + 1


def _first_hit(found: Entry, log: LogText, kernel: KernelText | None) -> Hit | None:
    for row in found.evidence:
        hit = _hit(found, row, log, kernel)
        if hit:
            return hit
    return None


def _log_holds(row: Evidence, log: LogText) -> re.Match[str] | None:
    """Return the first words that are evidence for `row`, where none is evidence against it."""
    if row.log is None or row.not_log and _evidence(row.not_log, log.text):
        return None
    return _evidence(row.log, log.text)


def _evidence(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    return next((found for found in pattern.finditer(text) if credible.counts(text, found)), None)


def _hit(found: Entry, row: Evidence, log: LogText, kernel: KernelText | None) -> Hit | None:
    """Return the hit if everything that `row` gives holds."""
    words = _log_holds(row, log)
    if row.log and not words:
        return None
    at = 0
    if row.asks_kernel:
        shown = _kernel_shows(row, kernel) if kernel else None
        if shown is None:
            return None
        at = shown
    file, line = (str(kernel.path), at) if kernel and at and row.blames_kernel_text else _place(log, kernel, at)
    if words and kernel and found.category is FailureCategory.TILE_SHAPE and (not line or kernel.only_calls(line)):
        said = log.text[words.start() : words.end() + _SHOWN]
        line = kernel.tile_line(said) or line
        file = file or str(kernel.path)
    if words and kernel and (named := line_of_graph(log.text, kernel.text)):
        file, line = str(kernel.path), named
    code = (log.code if line == log.line else "") or (kernel.line(line) if kernel and line else "")
    if row.code and not row.code.search(code):
        return None
    if row.not_code and row.not_code.search(code):
        return None
    seen = _one_line(words[0]) if words else _kernel_words(row, kernel, at)
    offset = words.start() if words else 0
    place = log.where(offset) if words else ("", 0)
    return Hit(found, row.sure, seen, words is not None, offset, place, file, line, code[:_SHOWN], row.aftermath)


def _place(log: LogText, kernel: KernelText | None, at: int) -> tuple[str, int]:
    """Return the file and line to blame: what pypto names, else what the kernel shows, else the innermost stack frame.

    Where the first error was raised in a helper, pypto names the line of the jit function that called it. A helper that was
    called before, and well, does what it is told: then the call is at fault.
    """
    own = str(kernel.path) if kernel else ""
    file, number = log.raised
    if number and kernel and Path(file).name == kernel.path.name and not kernel.in_wrapper(number):
        way = log.way if log.way[-1:] == (number,) else ()
        return own, way[-2] if len(way) > 1 and kernel.called_before(way[-2], number) else number
    if log.line:
        moved = kernel is not None and Path(log.file).name == kernel.path.name
        return own if moved else log.file or own, log.line
    if at:
        return own, at
    frame, line = log.frame
    if line and (not own or Path(frame).name == Path(own).name):
        return own or frame, line
    return own, 0


def _kernel_shows(row: Evidence, kernel: KernelText) -> int | None:
    """Return the line of the kernel that shows what `row` asks (0: no line), or None when it does not."""
    at = 0
    if row.rules:
        told = (one for rule in sorted(row.rules) for one in kernel.findings.get(rule, ()))
        fired = next((line for line, words in told if row.said is None or row.said.search(words)), None)
        if fired is None:
            return None
        at = fired
    if row.not_rules & kernel.findings.keys():
        return None
    if row.kernel:
        found = row.kernel.search(kernel.text)
        if found is None:
            return None
        at = at or kernel.text.count("\n", 0, found.start()) + 1
    if row.not_kernel and row.not_kernel.search(kernel.text):
        return None
    return at


def _kernel_words(row: Evidence, kernel: KernelText | None, line: int) -> str:
    fired = sorted(row.rules & kernel.findings.keys()) if kernel else []
    what = f"rule {fired[0]} fires" if fired else "the kernel shows it"
    return f"{what} at line {line}" if line else what


def _one_line(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= _SHOWN else f"{flat[: _SHOWN // 2]} ... {flat[-_SHOWN // 2 :]}"
