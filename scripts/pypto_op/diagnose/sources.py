"""What is to be diagnosed, however it is given: a text, a log, a failure folder, an operator, a folder of device logs."""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pypto_op.diagnose.log_stream import KEPT_BYTES, Piece, read_pieces
from pypto_op.diagnose.log_text import LogText, compose
from pypto_op.diagnose.readable import check_readable
from pypto_op.documents.reading import read_json
from pypto_op.errors import ContractError, PyptoOpError
from pypto_op.vocabulary import FailureCategory, Status
from pypto_op.workspace import FAILURE_FILES, FAILURE_RECORD, OpWorkspace, typed

RAISED = ("exception", "import_error", "syntax_error")
"""Reasons of a verdict (`judge.reasons`) that say: Python raised, so no process crashed and no number was compared."""

_LOG_SUFFIXES = (".log", ".txt", ".out", ".err")
_MOST_FILES = 64
_LEAST_BUDGET = 16 * 1024
_LENGTHS = (3, 2, 1)
"""Parts of a path that say where below an operator's folder a kernel's file lies: OP_impl.py, modules/..., _debug/.../..."""
_NAME = re.compile(r"[\w+-]+")
_CODE = re.compile(r"(?i)-?(?:0x)?[0-9a-f]*\d{3,}|[A-Z]{1,8}[-_]?\d{2,}")
"""What stands alone as a code: 507999, -8020, 0x7f12, E99999, EZ9999."""


@dataclass(frozen=True)
class Source:
    """What a failed run said."""

    log: LogText  # its words
    kernel: Path | None = None  # the file that ran, where a failure folder tells and the file has not changed since; else None
    passed: bool = False  # it is an operator whose last verdict is PASS


def is_text(given: str) -> bool:
    """Say whether an argument that may be a text or a path is a text: it names nothing that exists, and no path looks so."""
    if "\n" in given:
        return True
    with suppress(OSError, ValueError):  # a name that no file can have
        if given.strip() in ("", "-") or Path(given).expanduser().exists():
            return False
    return " " in given.strip() or not set("/.\\") & set(given)


def is_a_name(given: str | Path) -> bool:
    """Say whether a text is one word and no number or code: a file's name that somebody mistyped looks so, a log does not."""
    word = given.strip() if isinstance(given, str) and is_text(given) else ""
    return bool(_NAME.fullmatch(word)) and not _CODE.fullmatch(word)


def read_source(given: str | Path) -> Source:
    """Read whatever `given` is.

    Args:
        given: a text, `-` for standard input, or the path of a log, a report, a failure folder, an operator's folder, or a
            folder of logs.

    Raises:
        ContractError: it is missing, cannot be read, holds no log, or belongs to the judge.
    """
    if isinstance(given, str) and is_text(given):
        return Source(compose([Piece("", 1, given)]))
    if str(given) == "-":
        return Source(compose(*read_pieces(sys.stdin.buffer, "standard input")))
    path = Path(given).expanduser()
    check_readable(path)
    if not path.is_dir():
        return Source(compose(*_pieces(path)))
    if (path / FAILURE_RECORD).is_file() or (path / FAILURE_FILES[1]).is_file():
        return _failure(path)
    operator = _operator_at(path)
    return _folder(path) if operator is None else _operator(operator)


def _operator_at(folder: Path) -> OpWorkspace | None:
    """Return the operator whose folder this is, also where the folder was copied to another place or name; else None."""
    operator = OpWorkspace.owning(folder / FAILURE_RECORD)
    if operator is not None and operator.root == folder.resolve():
        return operator
    with suppress(ContractError):
        operator = OpWorkspace.of_files(folder)
        return operator if operator.report.is_file() and operator.golden.is_file() else None
    return None


def _pieces(path: Path, budget: int = KEPT_BYTES) -> tuple[list[Piece], list[str]]:
    try:
        with path.open("rb") as file:
            return read_pieces(file, str(path), budget)
    except OSError as error:
        raise ContractError(f"cannot be read ({error.strerror})", file=path, remedy="name the file the run wrote") from None


def _together(paths: list[Path]) -> tuple[list[Piece], list[str]]:
    """Read several logs; an empty one is no news among others."""
    budget = max(_LEAST_BUDGET, KEPT_BYTES // max(len(paths), 1))
    pieces: list[Piece] = []
    notes: list[str] = []
    for path in paths:
        found, told = _pieces(path, budget)
        pieces += found
        notes += told if found else []
    return pieces, notes


def _failure(folder: Path) -> Source:
    pieces, notes, kernel = _left_by(folder)
    return Source(compose(pieces, notes), kernel)


def _left_by(folder: Path) -> tuple[list[Piece], list[str], Path | None]:
    """Read a failure folder: what the run said, in the order in which it matters, and which file ran."""
    there = [folder / name for name in FAILURE_FILES[1:] if (folder / name).is_file()]
    logs = [path for path in sorted(folder.glob("*.log")) if path not in there]
    pieces, notes = _together([*there, *logs])
    notes += [f"{folder / name} is missing; verify again" for name in FAILURE_FILES if not (folder / name).is_file()]
    if not pieces:
        notes.append(f"{folder}: nothing was said")
    kernel, told = _kernel_of(folder)
    return pieces, [*notes, *told], kernel


def record_of(folder: Path) -> Mapping[str, Any]:
    """Return a failure folder's record, {} where there is none that can be read."""
    with suppress(PyptoOpError):
        record = read_json(folder / FAILURE_RECORD)
        return record if isinstance(record, dict) else {}
    return {}


def _kernel_of(folder: Path) -> tuple[Path | None, list[str]]:
    """Return the file that ran, as long as its bytes are the same, and what to know of it.

    The record names the place where it ran. The folder may have been moved or copied since, so the operator that it lies in
    now comes first.
    """
    record = record_of(folder)
    impl, sha256 = record.get("impl"), record.get("impl_sha256")
    if not isinstance(impl, str) or not isinstance(sha256, str):
        return None, []
    root = OpWorkspace.root_of_failure(folder)
    ends = [Path(*Path(impl).parts[-length:]) for length in _LENGTHS]
    there = [path for path in (*(root / end for end in ends if root), Path(impl)) if path.is_file()]
    for path in there:
        with suppress(OSError):
            if hashlib.sha256(path.read_bytes()).hexdigest() == sha256:
                return path, []
    if not there:
        return None, [f"{impl}, which ran, is gone: name it by --kernel"]
    return None, [f"{there[0]} has changed since this run: verify again"]


def first_failure(report: object) -> Mapping[str, Any]:
    """Return a report's `first_failure`; {} where nothing failed, or what was read is no report."""
    found = report.get("first_failure") if isinstance(report, Mapping) else None
    return found if isinstance(found, dict) else {}


def failure_of(operator: OpWorkspace, report: Mapping[str, Any] | None) -> Path | None:
    """Return the failure folder that belongs to a report, or the newest one where there is no report; None for none.

    A folder belongs to a report when the same bytes of the same case ran: an older run's may lie in its place.
    """
    if report is None:
        folders = sorted(operator.failures_dir.glob("*/" + FAILURE_FILES[1]), key=lambda path: path.stat().st_mtime)
        return folders[-1].parent if folders else None
    case = first_failure(report).get("case_id")
    folder = operator.failure_dir(case) if isinstance(case, str) else None
    if folder is None or not folder.is_dir():
        return None
    ran = record_of(folder).get("impl_sha256")
    return folder if ran and ran == _impl_hash(report) else None


def _impl_hash(report: Mapping[str, Any]) -> object:
    hashes = report.get("hashes")
    return hashes.get("impl") if isinstance(hashes, dict) else None


def _operator(operator: OpWorkspace) -> Source:
    """Read what an operator's last verdict left: the failing case's folder and the report."""
    report: Mapping[str, Any] | None = None
    notes: list[str] = []
    if operator.report.is_file():
        with suppress(PyptoOpError):
            found = read_json(operator.report)
            report = found if isinstance(found, dict) else None
        notes += [] if report is not None else [f"{operator.report} cannot be read as a report"]
        if _passed(report):
            elsewhere = "give the log of a run that failed elsewhere"
            notes.append(f"{operator.report}: the last verdict is PASS: nothing failed here; {elsewhere}")
    else:
        notes.append(f"{operator.report} is missing: no verdict was given yet")
    folder = failure_of(operator, report)
    pieces, told, kernel = _left_by(folder) if folder is not None else ([], [], None)
    notes += told
    if report is not None:
        pieces.append(Piece(str(operator.report), 1, json.dumps(report)))
    if not pieces:
        why = "no run has failed here" if not operator.report.is_file() else "its report cannot be read, and no run left a log"
        raise ContractError(why, file=operator.root, remedy=f"run `pypto-op verify {typed(operator.root)}`")
    return Source(compose(pieces, notes), kernel or _impl_of(operator, report), _passed(report))


def _passed(report: Mapping[str, Any] | None) -> bool:
    return report is not None and report.get("status") == Status.PASS


def _judged(given: str | Path) -> tuple[OpWorkspace | None, Mapping[str, Any]]:
    """Return the operator that an operator's folder or report belongs to, and its `first_failure`; {} for none."""
    if isinstance(given, str) and (is_text(given) or given == "-"):
        return None, {}
    path = Path(given).expanduser()
    operator = OpWorkspace.owning(path if path.is_file() else path / FAILURE_RECORD)
    if path.is_dir():
        operator = _operator_at(path) or operator
    if operator is not None and (path.suffix == ".json" or path.is_dir()):
        with suppress(PyptoOpError, OSError):
            return operator, first_failure(read_json(path if path.is_file() else operator.report))
    return operator, {}


def failure_at(given: str | Path) -> Mapping[str, Any]:
    """Return the `first_failure` of the operator or report that is to be diagnosed, {} for anything else."""
    return _judged(given)[1]


def pointer_of(given: str | Path) -> str:
    """Say the verdict's own reason, and what goes on from there, where no log speaks of it; "" where there is none."""
    operator, failure = _judged(given)
    if operator is None or not failure:
        return ""
    if failure.get("failure_category") == FailureCategory.PRECISION:
        case = failure.get("case_id")
        return f"the numbers of case {case} are wrong, and no log speaks of that: `pypto-op triage {typed(operator.root)}`"
    said = failure.get("summary")
    if failure.get("reason") in RAISED:  # Python's words hold line and cause: no page knows more
        return f"the verdict's own reason is the cause: {said}; mend that, then `pypto-op verify {typed(operator.root)}`"
    return f"the verdict's own reason is the cause: {said}; next: pypto-op triage {typed(operator.root)}" if said else ""


def _impl_of(operator: OpWorkspace, report: Mapping[str, Any] | None) -> Path | None:
    """Return the file that a report is about, while its bytes are the same."""
    name = (report or {}).get("impl_file")
    path = operator.root / name if isinstance(name, str) and name else None
    if report is None or path is None or not path.is_file():
        return None
    return path if hashlib.sha256(path.read_bytes()).hexdigest() == _impl_hash(report) else None


def _folder(folder: Path) -> Source:
    found = sorted(_logs_below(folder), key=lambda path: path.stat().st_mtime, reverse=True)
    if not found:
        raise ContractError("there is no log in this folder", file=folder, remedy="name the file or folder the run wrote")
    pieces, notes = _together(found[:_MOST_FILES])
    if len(found) > _MOST_FILES:
        notes.append(f"{folder} has {len(found)} logs; the newest {_MOST_FILES} were searched")
    return Source(compose(pieces, notes))


def _logs_below(folder: Path) -> Iterator[Path]:
    for path in folder.rglob("*"):
        if path.suffix in _LOG_SUFFIXES and path.is_file() and not path.is_symlink():
            with suppress(ContractError):
                check_readable(path)
                yield path
