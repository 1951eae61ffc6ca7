"""A jitted function as its text says it: what the static check read and what a run executed are compared by this."""

from __future__ import annotations

import ast
import os
import textwrap
from hashlib import blake2b
from pathlib import Path
from typing import TypeAlias

Program: TypeAlias = tuple[str, str, str]
"""A function's file (real path), its name, and the hash of its syntax tree."""


def program_of(file: Path | str, name: str, text: str) -> Program:
    """Return the program that a function's text is; decorators, comments and layout do not count.

    Args:
        file: where it stands.
        name: its name, for messages.
        text: the source of the function alone, decorated or not, however deep it is indented.

    Raises:
        SyntaxError: the text is no function.
    """
    body = ast.parse(textwrap.dedent(text)).body
    if len(body) != 1 or not isinstance(body[0], ast.FunctionDef):
        raise SyntaxError(f"{name} is not one function")
    body[0].decorator_list = []
    return os.path.realpath(file), name, blake2b(ast.dump(body[0]).encode(), digest_size=16).hexdigest()
