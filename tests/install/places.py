"""Copies of the bundle that a test may move, break or remove, and the real command run from them."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("hooks", "lint", "scripts", "schemas", "skills", "commands", "bin", "plugin", ".agents", ".claude-plugin", "Makefile")


def copy_bundle(folder: Path, *, venv: bool = True) -> Path:
    """Return a checkout in `folder`: all that the clients need; its .venv leads to this one's packages."""
    folder.mkdir(parents=True)
    for room in ROOMS:
        source = ROOT / room
        if source.is_dir():
            ignored = shutil.ignore_patterns("__pycache__", "_debug", ".pytest_cache")
            shutil.copytree(source, folder / room, symlinks=True, ignore=ignored)
        else:
            shutil.copy(source, folder / room)
    if venv:
        (folder / ".venv").symlink_to(ROOT / ".venv")
    return folder


def pypto_op(bundle: Path, *words: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run the command of a copied bundle."""
    environment = {**(env or os.environ), "PYTHONPATH": f"{bundle / 'lint'}{os.pathsep}{bundle / 'scripts'}"}
    python = str(bundle / ".venv/bin/python")
    return subprocess.run([python, "-m", "pypto_op.cli", *words], env=environment, capture_output=True, text=True, check=False)


def install(bundle: Path, workspace: Path, *words: str, harness: str = "both", env: dict[str, str] | None = None) -> str:
    """Run `pypto-op install` of a copied bundle; return what it said."""
    done = pypto_op(bundle, "install", "--harness", harness, "--target", str(workspace), *words, env=env)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr
