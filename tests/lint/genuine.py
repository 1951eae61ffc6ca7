"""Real Python files of every style, for tests of the parser."""

from __future__ import annotations

from pathlib import Path

import pypto_op_lint

ROOT = Path(__file__).parents[2]
PYTHON_FILES = sorted(
    [
        *Path(pypto_op_lint.__file__).parent.rglob("*.py"),
        *(ROOT / "examples").rglob("*.py"),
        *(ROOT / "tests" / "corpus" / "lint" / "whole").glob("*.py"),
    ]
)
