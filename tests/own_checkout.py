"""A copy of the checkout, for tests that carry out what a page for developers says, and the command of that copy."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from pypto_op.bundle_files import bundle_root

ROOT = bundle_root()
PARTS = (".agents", ".claude-plugin", "commands", "docs", "examples", "hooks", "lint", "schemas", "scripts", "skills")


def copied(folder: Path) -> Path:
    """Copy what the bundle is made of into `folder`; return the copy's root."""
    copy = folder / "bundle"
    for part in PARTS:
        shutil.copytree(ROOT / part, copy / part, symlinks=True, ignore=shutil.ignore_patterns("__pycache__", "_debug"))
    shutil.copy(ROOT / "pyproject.toml", copy)
    return copy


def run(checkout: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run `pypto-op` of that checkout, in its folder."""
    paths = os.pathsep.join(str(checkout / part) for part in ("lint", "scripts"))
    command = [sys.executable, "-m", "pypto_op.cli", *words]
    environment = {**os.environ, "PYTHONPATH": paths}
    return subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True, timeout=200, check=False)
