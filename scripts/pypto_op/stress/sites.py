"""Names the places of a golden: the source text of the expression whose operator is running."""

from __future__ import annotations

import ast
import sys
from functools import lru_cache
from itertools import islice
from pathlib import Path
from types import CodeType

from pypto_op.python_text import parsed

_LONGEST = 200


def site_in(file: Path) -> str:
    """Return the expression of `file` that is being evaluated by the innermost frame of it, "" when none is."""
    frame = sys._getframe(1)
    name = str(file)
    while frame is not None:
        if frame.f_code.co_filename == name:
            return _expression(frame.f_code, frame.f_lasti, frame.f_lineno, name)
        frame = frame.f_back  # type: ignore[assignment]
    return ""


@lru_cache(maxsize=4096)
def _expression(code: CodeType, lasti: int, line: int, file: str) -> str:
    lines = _lines(file)
    if sys.version_info >= (3, 11):
        start, end, left, right = next(islice(code.co_positions(), lasti // 2, None), (None,) * 4)
        if start is not None and end is not None and left is not None and right is not None and end <= len(lines):
            text = b"\n".join(lines[start - 1 : end])
            text = text[left : len(text) - (len(lines[end - 1]) - right)]
            return normalised(text.decode("utf-8", "replace"))
    return normalised(lines[line - 1].decode("utf-8", "replace")) if 0 < line <= len(lines) else ""


@lru_cache(maxsize=8)
def _lines(file: str) -> tuple[bytes, ...]:
    try:
        return tuple(Path(file).read_bytes().splitlines())
    except OSError:
        return ()


def normalised(expression: str) -> str:
    """Return an expression as Python itself would write it, so that spaces and brackets do not matter."""
    text = expression.strip()
    tree = parsed(text)
    if tree is None:
        return " ".join(text.split())[:_LONGEST]
    if len(tree.body) == 1:
        statement = tree.body[0]
        if isinstance(statement, ast.AugAssign):
            return ast.unparse(ast.BinOp(statement.target, statement.op, statement.value))[:_LONGEST]
        if isinstance(statement, (ast.Assign, ast.AnnAssign, ast.Return)) and statement.value is not None:
            return ast.unparse(statement.value)[:_LONGEST]
    return " ".join(ast.unparse(tree).split())[:_LONGEST]
