"""Hashes a Python file so that renaming, comments, blanks, docstrings and the order of definitions change nothing.

A name of the file's own is known by what stands for it: one of the top by the text that binds it, another by the order of first
appearance in its definition. Attributes, numbers, what is imported and the order of statements inside a definition count.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Mapping

from pypto_op.hashing import sha256_bytes, sha256_json
from pypto_op.python_text import parsed

_LABELLED = frozenset({"loop", "loop_unroll", "tensor"})
"""Calls whose texts are names for people, of loops and of states."""

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def meaning_of(source: bytes) -> str:
    """Return the hash of a file; that of its bytes where it is no Python."""
    tree = parsed(source.decode(errors="replace"))
    if tree is None:
        return sha256_bytes(source)
    statements = [one for one in tree.body if not _is_idle(one)]
    meanings: dict[str, str] = {}
    try:
        own = _bound(tree)
        for statement in statements:
            said = _said(statement, own, {})
            for name in {statement.name} if isinstance(statement, _DEFINITIONS) else _bound(statement):
                meanings[name] = sha256_json([meanings.get(name, ""), said])
        return sha256_json(sorted(_said(statement, own, meanings) for statement in statements))
    except RecursionError:
        return sha256_bytes(source)


def _said(statement: ast.stmt, own: set[str], meanings: Mapping[str, str]) -> str:
    """Return a statement as text, with what its names stand for in their places."""
    tree, order = copy.deepcopy(statement), dict[str, str]()
    inside = _bound(tree) - ({statement.name} if isinstance(statement, _DEFINITIONS) else set())

    def plain(name: str) -> str:
        if name in meanings and name not in inside:
            return meanings[name]
        return order.setdefault(name, f"_{len(order)}") if name in own else name

    for node in ast.walk(tree):  # by breadth, whatever things are called
        if isinstance(body := getattr(node, "body", None), list):
            node.body = [one for one in body if not _is_idle(one)]  # type: ignore[attr-defined]
        if isinstance(node, ast.Name):
            node.id = plain(node.id)
        elif isinstance(node, ast.arg):
            node.arg = plain(node.arg)
        elif isinstance(node, _DEFINITIONS):
            node.name = plain(node.name)
        elif isinstance(node, ast.alias):
            node.asname = None
        elif isinstance(node, ast.Call):
            _forget_labels(node)
    return ast.dump(tree)


def _forget_labels(call: ast.Call) -> None:
    """Take out of a call what its function calls its parameters, and names for people."""
    if isinstance(call.func, ast.Name):
        for keyword in call.keywords:
            keyword.arg = keyword.arg and "_"
    elif isinstance(call.func, ast.Attribute) and call.func.attr in _LABELLED:
        for one in (*call.args, *(keyword.value for keyword in call.keywords)):
            if isinstance(one, ast.Constant) and isinstance(one.value, str):
                one.value = ""


def _bound(tree: ast.AST) -> set[str]:
    """Return every name that a tree binds, at any depth."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            found.add(node.id)
        elif isinstance(node, ast.arg):
            found.add(node.arg)
        elif isinstance(node, _DEFINITIONS):
            found.add(node.name)
        elif isinstance(node, ast.alias):
            found.add(node.asname or node.name.partition(".")[0])
    return found


def _is_idle(statement: ast.stmt) -> bool:
    """Whether a statement is a text, or a number, that stands alone."""
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
