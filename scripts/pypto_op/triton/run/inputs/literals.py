"""The numbers that stand in a task's and an implementation's files: where code asks for one of them, values meet it exactly."""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Iterable
from pathlib import Path

_MOST_BYTES = 500_000
_GREATEST = 1e30


def numbers_of(paths: Iterable[Path]) -> list[float]:
    """Return the different numbers of these files, and 0; a file that is no Python has none."""
    found = {0.0}
    for path in paths:
        with contextlib.suppress(OSError, ValueError, SyntaxError, RecursionError, MemoryError):
            if path.stat().st_size <= _MOST_BYTES:
                found.update(_numbers(ast.parse(path.read_text(encoding="utf-8"))))
    return sorted(found)


def _numbers(tree: ast.AST) -> Iterable[float]:
    for node in ast.walk(tree):
        value = node.value if isinstance(node, ast.Constant) else None
        if isinstance(value, (int, float)) and abs(value) < _GREATEST:
            yield from (float(value), -float(value))
