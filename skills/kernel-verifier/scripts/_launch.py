"""Finds the bundle for the scripts of this skill: in this Python, else as the command `pypto-op`."""

import os
import sys
from pathlib import Path

_PARENTS = Path(__file__).resolve().parents


def run(name: str) -> None:
    """Run `pypto-op triton NAME` with this process's arguments; exit 3 when there is no bundle."""
    sys.path[:0] = [str(_PARENTS[3] / "scripts"), str(_PARENTS[3] / "lint")]
    try:
        from pypto_op.triton.commands import run_script
    except ModuleNotFoundError:  # not the bundle's Python; an installed copy of this skill has no packages beside it
        _hand_over(["triton", name, *sys.argv[1:]])
    run_script(name)


def _hand_over(words: list[str]) -> None:
    import shutil  # it costs more than all else here, and is rarely needed

    beside = (parent / ".venv" / "bin" / "pypto-op" for parent in _PARENTS)
    command = next((str(path) for path in beside if path.is_file()), None) or shutil.which("pypto-op")
    if command is None:
        print("pypto-op: not on PATH, and this Python does not have it; use the bundle's Python", file=sys.stderr)
        sys.exit(3)
    os.execv(command, [command, *words])
