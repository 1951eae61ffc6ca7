"""Lists for a session's enclosure the folders in which it may write, and those that it finds empty."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pypto_op import resident
from pypto_op.proof import draws
from pypto_op.proof.key import key_file
from pypto_op.workspace import OpWorkspace


def enclosure_document(scratch: Path, hidden: Sequence[Path], *, trusted: bool = False) -> dict[str, Any]:
    """Return the document of an `isolation.Enclosure`; trusted code may write where it likes.

    Nobody inside finds the socket of a resident judge: name spaces do not cut a socket off that has a path.
    """
    doors = [folder for folder in (resident.runs_folder(),) if folder.exists()]
    return {
        "scratch": str(scratch),
        "hidden": [str(path) for path in [*hidden, *doors]],
        "read_only": not trusted,
        "offline": not trusted,
    }


def hidden_from_candidates(workspace: OpWorkspace) -> list[Path]:
    """Return what a candidate finds empty: goldens, tests, `eval/`, the sealing key, and the seeds to come."""
    phases = workspace.existing_module_phases()
    files = [workspace.golden, workspace.test]
    files += [workspace.module_golden(k) for k in phases] + [workspace.module_test(k) for k in phases]
    files += sorted(workspace.modules_dir.glob("*_golden.py")) + sorted(workspace.modules_dir.glob("test_*.py"))
    folders = [workspace.eval_dir, workspace.root / "__pycache__", workspace.modules_dir / "__pycache__"]
    return [path for path in dict.fromkeys([*folders, *files, key_file(), draws.folder()]) if path.exists()]
