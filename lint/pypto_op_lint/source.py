"""Reading a file the way Python would, and saying in one line why that is impossible."""

from __future__ import annotations

import codecs
import io
import tokenize
from dataclasses import dataclass
from pathlib import Path

MAX_PYTHON_BYTES = 512 * 1024
"""A larger Python file is not read: real kernels have 10 to 60 KiB, and this one would hold up the editor for seconds."""
MAX_BYTES = 4 * 1024 * 1024
"""The same for documents and data."""


class UnreadableSource(Exception):
    """The bytes of a file are not text that can be linted.

    Attributes:
        problem: what is wrong, without a full stop.
        line: the line it was seen on, from 1, where there is one.
        column: the column, from 1.
        vanished: the file does not exist (any more).
    """

    def __init__(self, problem: str, *, line: int | None = None, column: int | None = None, vanished: bool = False) -> None:
        super().__init__(problem)
        self.problem, self.line, self.column, self.vanished = problem, line, column, vanished

    @property
    def told(self) -> str:
        """The problem behind its line."""
        return f"line {self.line}: {self.problem}" if self.line else self.problem


@dataclass(frozen=True)
class SourceText:
    """Text of one file."""

    text: str  # the text without a byte order mark, every line ended by a single line feed
    newline: str = "\n"  # the line end that the file uses
    encoding: str = "utf-8"  # the codec that its bytes were read with
    bom: bool = False  # whether a byte order mark stood in front

    def encode(self, text: str) -> bytes:
        """Return `text` as bytes in the file's own encoding, line ends and byte order mark."""
        data = text.replace("\n", self.newline).encode(self.encoding)
        return codecs.BOM_UTF8 + data if self.bom else data


def read_source(path: Path) -> SourceText:
    """Read a file; raise UnreadableSource when it is missing, no regular file, too big or not text."""
    try:
        if not path.is_file():
            raise UnreadableSource("is not a regular file" if path.exists() else "does not exist", vanished=not path.exists())
        size = path.stat().st_size
        check_size(path, size)
        return decode(path.read_bytes())
    except FileNotFoundError as error:
        raise UnreadableSource("vanished while it was read", vanished=True) from error
    except OSError as error:
        raise UnreadableSource(f"cannot be read: {error.strerror or error}") from error


def check_size(path: Path, size: int) -> None:
    """Raise UnreadableSource when a file of `size` bytes is too big for what it is."""
    limit = MAX_PYTHON_BYTES if path.suffix == ".py" else MAX_BYTES
    if size > limit:
        raise UnreadableSource(f"is {size // 1024} KiB, more than the {limit // 1024} KiB that are read")


def decode(data: bytes) -> SourceText:
    """Decode Python source or any other text by PEP 263; raise UnreadableSource when it is not text."""
    if b"\0" in data:
        raise UnreadableSource("holds null bytes: it is a binary file")
    bom = data.startswith(codecs.BOM_UTF8)
    body = data[len(codecs.BOM_UTF8) :] if bom else data
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(body).readline)
        text = body.decode(encoding)
    except SyntaxError as error:
        if "coding" not in repr(body[:200]):
            line = _first_bad_line(body)
            raise UnreadableSource("is not valid UTF-8 text and declares no encoding", line=line) from error
        raise UnreadableSource(f"declares an encoding that Python refuses ({error.msg})", line=1) from error
    except UnicodeDecodeError as error:
        line = body.count(b"\n", 0, error.start) + 1
        raise UnreadableSource(f"is not valid {error.encoding} text", line=line) from error
    return normalised(text, encoding=encoding, bom=bom)


def _first_bad_line(body: bytes) -> int:
    try:
        body.decode("utf-8")
    except UnicodeDecodeError as error:
        return body.count(b"\n", 0, error.start) + 1
    return 1


def normalised(text: str, *, encoding: str = "utf-8", bom: bool = False) -> SourceText:
    """Return `text` with plain line feeds, remembering what line end it had."""
    if text.startswith("\ufeff"):
        text, bom = text[1:], True
    newline = "\r\n" if "\r\n" in text else "\r" if "\r" in text and "\n" not in text else "\n"
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return SourceText(text, newline, encoding, bom)
