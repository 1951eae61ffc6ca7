"""Refuses a candidate that names the interpreter's back doors, before any of it runs.

Frames, `gc` and made-up code are refused when they are used (`guard`). These names are not seen by an audit hook,
and no kernel needs one: they lead from a function to the variables that it closes over, or to every class there is.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

BACK_DOORS = frozenset(
    {"__closure__", "cell_contents", "__globals__", "__subclasses__", "__wrapped__", "__builtins__", "__code__"}
    | {"f_back", "f_locals", "f_globals", "f_builtins", "tb_frame", "gi_frame", "cr_frame", "ag_frame"}
)


def back_door(source: bytes) -> str | None:
    """Return "`name` (line 7)" for the first back door that a file names, as an attribute or as a string.

    A name that is put together from pieces counts too, as long as the pieces are constants beside one another. A
    file that does not parse has none; loading it will say so.
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    try:
        found = [(line, name) for name, line in _names(tree) if name in BACK_DOORS]
    except RecursionError:
        return "an expression too deep to be read"
    return f"`{min(found)[1]}` (line {min(found)[0]})" if found else None


def _names(tree: ast.AST) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            yield node.attr, node.lineno
        elif isinstance(node, ast.Name):
            yield node.id, node.lineno
        elif isinstance(node, (ast.Constant, ast.BinOp, ast.JoinedStr)):
            text = _text(node)
            if text is not None:
                yield text, node.lineno


def _text(node: ast.expr) -> str | None:
    """Return the constant text of an expression: a literal, literals added up, an f-string of literals."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        parts = [_text(node.left), _text(node.right)]
    elif isinstance(node, ast.JoinedStr):
        parts = [_text(value) for value in node.values]
    elif isinstance(node, ast.FormattedValue):
        parts = [_text(node.value)]
    else:
        return None
    return None if None in parts else "".join(part for part in parts if part is not None)
