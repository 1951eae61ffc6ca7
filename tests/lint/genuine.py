"""Real Python files of every style, for tests of the parser."""

from __future__ import annotations

from pathlib import Path

from tests.markdown_cases import cases

import pypto_op_lint

ROOT = Path(__file__).parents[2]
KERNELS = {case.name: case.files[""] for case in cases.load(ROOT / "tests" / "corpus" / "lint" / "whole.md").cases}
"""Complete kernels by name."""
_FILES = sorted([*Path(pypto_op_lint.__file__).parent.rglob("*.py"), *(ROOT / "examples").rglob("*.py")])
TEXTS = {**{str(path.relative_to(ROOT)): path.read_bytes() for path in _FILES}, **KERNELS}
"""Those and all files of the linter and the examples, by path."""
