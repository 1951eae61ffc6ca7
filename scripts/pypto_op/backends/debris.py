"""What pypto leaves on disk: cleared after each case, and a small part kept for whoever debugs a failure."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from pypto_op.backends.base import RunResult

FAILURES_DIR = "failures"
"""Folder in `_debug/` with one folder per failed case."""

_TELLING = ("verify_exception.log", "verify_result_brief.csv", "_simulate.stat.report.txt", "*.log", "program.json")
_MOST_BYTES = 2 * 1024 * 1024
_MOST_FAILURES = 20


def clear(pypto_dir: Path) -> None:
    """Empty the folder that pypto writes to."""
    for entry in pypto_dir.iterdir() if pypto_dir.is_dir() else ():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry, ignore_errors=True)
        else:
            entry.unlink(missing_ok=True)


def keep(pypto_dir: Path, debug_dir: Path, case_id: str, result: RunResult) -> None:
    """Keep what explains a failure: output, outcome, and pypto's own logs, 2 MiB a file, 20 failures in all."""
    failures = debug_dir / FAILURES_DIR
    folder = failures / (re.sub(r"[^A-Za-z0-9_.-]", "_", case_id)[:80] or "case")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "outcome.txt").write_text(f"{result.outcome}: {result.detail}\n", encoding="utf-8")
    for name, text in (("stdout.txt", result.stdout), ("stderr.txt", result.stderr)):
        if text:
            (folder / name).write_text(text, encoding="utf-8")
    for pattern in _TELLING:
        for path in sorted(pypto_dir.rglob(pattern)) if pypto_dir.is_dir() else ():
            if path.is_file() and not path.is_symlink() and path.stat().st_size <= _MOST_BYTES:
                shutil.copyfile(path, folder / path.name)
    _forget_oldest(failures)


def _forget_oldest(failures: Path) -> None:
    kept = sorted(failures.iterdir(), key=lambda path: path.stat().st_mtime)
    for folder in kept[:-_MOST_FAILURES]:
        shutil.rmtree(folder, ignore_errors=True)
