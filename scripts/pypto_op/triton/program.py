"""What the static check and a run share: a jitted function as its text says it, by which both are compared."""

from __future__ import annotations

import ast
import os
import textwrap
from hashlib import blake2b
from pathlib import Path
from typing import TypeAlias

Program: TypeAlias = tuple[str, str, str]
"""A function's file (real path), its name, and the hash of its syntax tree."""

LAMBDA = "<lambda>"
Line: TypeAlias = tuple[str, int, str]
"""A file (real path), a line of it, and `LAMBDA` for the body of a lambda that begins there; "" for any other line."""

HELD_METHODS = frozenset({"__init__", "__post_init__", "__repr__", "__hash__", "__eq__", "__str__"})
"""Methods of an object that a kernel may be given as a constant: none that a kernel's expression would call."""


def program_of(file: Path | str, name: str, text: str) -> Program:
    """Return the program that a function's text is; decorators, comments and layout do not count.

    Args:
        file: where it stands.
        name: its name, for messages.
        text: the source of the function alone, decorated or not, however deep it is indented.

    Raises:
        SyntaxError: the text is no function.
    """
    return program_of_tree(file, name, function_in(text))


def function_in(text: str) -> ast.FunctionDef:
    """Return the one function that a text is, without its decorators, or raise SyntaxError."""
    body = ast.parse(textwrap.dedent(text)).body
    if len(body) != 1 or not isinstance(body[0], ast.FunctionDef):
        raise SyntaxError("it is not one function")
    body[0].decorator_list = []
    return body[0]


def program_of_tree(file: Path | str, name: str, tree: ast.FunctionDef) -> Program:
    """Return the program that a tree of `function_in` is."""
    return os.path.realpath(file), name, blake2b(ast.dump(tree).encode(), digest_size=16).hexdigest()
