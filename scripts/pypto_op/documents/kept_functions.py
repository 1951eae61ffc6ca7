"""Checks that a later staged file still holds every function of the modules that were verified before.

Each file of the staged chain contains the modules before it. So that module 12 really contains the module 1
that was verified, the functions of a verified file are hashed without comments, docstrings, positions and
the module suffix in names, and the next file must hold the same. Entry points are left out, since they grow
with each module: what is decorated with `pypto.frontend.jit`, what holds such a function, and the
`*_wrapper`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from pathlib import Path

from pypto_op.errors import Refused, unreadable
from pypto_op.hashing import open_regular, sha256_bytes
from pypto_op.python_text import parse

_MAX_SOURCE_BYTES = 4 * 1024 * 1024


class _Normalise(ast.NodeTransformer):
    """Drop docstrings and take the module suffix out of names."""

    def __init__(self, op: str) -> None:
        self._suffix = re.compile(rf"\b{re.escape(op)}_module\d+_")
        self._op = f"{op}_"

    def generic_visit(self, node: ast.AST) -> ast.AST:
        for name in ("id", "name", "attr", "arg"):
            value = getattr(node, name, None)
            if isinstance(value, str):
                setattr(node, name, self._suffix.sub(self._op, value))
        body = getattr(node, "body", None)
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and isinstance(body, list) and len(body) > 1:
            first = body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                del body[0]
        return super().generic_visit(node)


def function_hashes(path: Path, op: str) -> dict[str, str]:
    """Return name -> normalised hash of the helper functions of an impl file.

    Raises:
        ContractError: the file is missing, too large or does not parse.
    """
    try:
        with open_regular(path) as file:
            source = file.read(_MAX_SOURCE_BYTES)
    except OSError as error:
        raise unreadable(error, path, "write it first") from None
    normalise = _Normalise(op)
    hashes = {}
    for node in parse(source, path).body:
        if isinstance(node, ast.FunctionDef) and not _grows(node):
            normal = normalise.visit(node)
            hashes[normal.name] = sha256_bytes(ast.dump(normal).encode())
    return hashes


def _grows(function: ast.FunctionDef) -> bool:
    if function.name.endswith(("_wrapper", "_impl")):
        return True
    inner = (node for node in ast.walk(function) if isinstance(node, ast.FunctionDef))
    return any("frontend.jit" in ast.unparse(dec) for node in inner for dec in node.decorator_list)


def require_kept(verified: Mapping[str, str], now: Mapping[str, str], *, file: Path, phase: str) -> None:
    """Refuse a file that lacks or changes a function of a verified phase."""
    for name, value in verified.items():
        if name not in now:
            raise Refused(
                f"the verified function {name} of {phase} is missing",
                file=file,
                remedy=f"put it back as it was verified, or reopen_phase {phase}",
            )
        if now[name] != value:
            raise Refused(
                f"the function {name} differs from the one that was verified in {phase}",
                file=file,
                remedy=f"put it back as it was verified, or reopen_phase {phase}",
            )
