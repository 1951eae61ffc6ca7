"""Clears what pypto leaves on disk after each case, and keeps a small part for whoever debugs a failure."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from pypto_op.backends.base import RunResult
from pypto_op.workspace import FAILURE_FILES, FAILURE_RECORD, OpWorkspace

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


def keep(pypto_dir: Path, workspace: OpWorkspace, case_id: str, ran: Mapping[str, Any], result: RunResult) -> None:
    """Write the case's failure folder: record, outcome, output, and pypto's own logs; 2 MiB a file, 20 failures in all.

    Args:
        ran: `impl`, `impl_sha256` and `wrapper` of what was run.
        result: how it ended.
    """
    folder = workspace.failure_dir(case_id)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    texts = {"outcome.txt": f"{result.outcome}: {result.detail}\n", "stdout.txt": result.stdout, "stderr.txt": result.stderr}
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8", errors="replace")
    left_out = sorted(set(_copy_telling(pypto_dir, folder)))
    record = {
        "schema_version": 1,
        "case_id": case_id,
        "outcome": str(result.outcome),
        **{key: str(ran[key]) for key in ("impl", "impl_sha256", "wrapper")},
        "created": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "artefacts": sorted(path.name for path in folder.iterdir() if path.name not in FAILURE_FILES),
        "left_out": left_out,
    }
    (folder / FAILURE_RECORD).write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    _forget_oldest(workspace.failures_dir)


def forget(workspace: OpWorkspace, case_id: str) -> None:
    """Remove the failure folder of a case that ended as it should, and the folder of failures where it was the only one."""
    shutil.rmtree(workspace.failure_dir(case_id), ignore_errors=True)
    with suppress(OSError):
        workspace.failures_dir.rmdir()


def _copy_telling(pypto_dir: Path, folder: Path) -> list[str]:
    """Copy what tells; return the names of what is too large."""
    too_large = []
    for pattern in _TELLING:
        for path in sorted(pypto_dir.rglob(pattern)) if pypto_dir.is_dir() else ():
            if not path.is_file() or path.is_symlink():
                continue
            if path.stat().st_size <= _MOST_BYTES:
                shutil.copyfile(path, folder / path.name)
            else:
                too_large.append(path.name)
    return too_large


def _forget_oldest(failures: Path) -> None:
    kept = sorted(failures.iterdir(), key=lambda path: path.stat().st_mtime)
    for folder in kept[:-_MOST_FAILURES]:
        shutil.rmtree(folder, ignore_errors=True)
