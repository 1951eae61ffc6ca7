"""Whether what pypto reads as a kernel's text stands in the file that the kernel is of.

pypto asks Python's `inspect` for it, which looks into a store of lines that anybody may fill. Linter, mutants and whoever
reads the file would then speak of another kernel than the judge.
"""

from __future__ import annotations

import functools
import tokenize
from types import FunctionType
from typing import Any

from pypto_op.backends.worker import askers
from pypto_op.backends.worker.trusted import is_trusted

_READER = "/pypto/frontend/parser/diagnostics.py"
_BEGIN, _BETWEEN = "if True:\n ", " "
"""How `Source` of pypto 0.2.0 makes one text of a function's lines."""


def is_foreign(text: str | bytes, own: tuple[str, ...]) -> bool:
    """Whether a text that is about to become code is a kernel's, and stands neither in its file nor in the impl's.

    Asked from an audit hook, with `askers.BUSY` on.

    Args:
        text: what is parsed; Python hands on the UTF-8 of it.
        own: files of the candidate.
    """
    text = text.decode(errors="replace") if isinstance(text, bytes) else text
    if not text.startswith(_BEGIN):
        return False
    found, program = askers.argument_of(_READER, "program")
    if not found:
        return False
    files = {*own, *_files_of(program)}
    return not any(is_trusted(file) or text[len(_BEGIN) :].strip() in _lines_of(file) for file in files)


def _files_of(program: Any) -> list[str]:
    """Return the files of a function and of those that it wraps, as `inspect` would find them."""
    files: list[str] = []
    while type(program) is FunctionType and program.__code__.co_filename not in files:
        files.append(program.__code__.co_filename)
        program = vars(program).get("__wrapped__")
    return files


@functools.cache
def _lines_of(file: str) -> str:
    """Return a file's lines as pypto joins those of a function; nothing of a file that cannot be read."""
    try:
        with tokenize.open(file) as opened:
            return _BETWEEN.join(opened)
    except (OSError, SyntaxError, UnicodeDecodeError):
        return ""
