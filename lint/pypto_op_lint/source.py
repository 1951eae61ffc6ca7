"""Reading a file the way Python would, and saying in one line why that is impossible."""

from __future__ import annotations

import codecs
import io
import tokenize
from dataclasses import dataclass
from pathlib import Path

MAX_BYTES = 8 * 1024 * 1024
"""A larger file is not read: a kernel of 8 MiB is a mistake, and linting it would hold up the editor."""


class UnreadableSource(Exception):
    """The bytes of a file are not text that can be linted.

    Attributes:
        problem: what is wrong, without a full stop.
        line: the line it was seen on, from 1, where there is one.
        column: the column, from 1.
        vanished: the file does not exist (any more).
    """

    def __init__(
        self, problem: str, *, line: int | None = None, column: int | None = None, vanished: bool = False
    ) -> None:
        super().__init__(problem)
        self.problem, self.line, self.column, self.vanished = problem, line, column, vanished


@dataclass(frozen=True)
class SourceText:
    """Text of one file.

    Attributes:
        text: the text without a byte order mark, every line ended by a single line feed.
        newline: the line end that the file uses.
        encoding: the codec that its bytes were read with.
        bom: whether a byte order mark stood in front.
    """

    text: str
    newline: str = "\n"
    encoding: str = "utf-8"
    bom: bool = False

    def encode(self, text: str) -> bytes:
        """Return `text` as bytes in the file's own encoding, line ends and byte order mark."""
        data = text.replace("\n", self.newline).encode(self.encoding)
        return codecs.BOM_UTF8 + data if self.bom else data


def read_source(path: Path) -> SourceText:
    """Read a file; raise UnreadableSource when it is missing, no regular file, too big or not text."""
    try:
        if not path.is_file():
            raise UnreadableSource(
                "is not a regular file" if path.exists() else "does not exist", vanished=not path.exists()
            )
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise UnreadableSource(f"is {size / 2**20:.1f} MiB, more than {MAX_BYTES // 2**20} MiB")
        return decode(path.read_bytes())
    except FileNotFoundError as error:
        raise UnreadableSource("vanished while it was read", vanished=True) from error
    except OSError as error:
        raise UnreadableSource(f"cannot be read: {error.strerror or error}") from error


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
        raise UnreadableSource(f"declares an encoding that Python refuses ({error.msg})", line=1) from error
    except UnicodeDecodeError as error:
        line = body.count(b"\n", 0, error.start) + 1
        raise UnreadableSource(f"is not valid {error.encoding} text", line=line) from error
    return normalised(text, encoding=encoding, bom=bom)


def normalised(text: str, *, encoding: str = "utf-8", bom: bool = False) -> SourceText:
    """Return `text` with plain line feeds, remembering what line end it had."""
    if text.startswith("\ufeff"):
        text, bom = text[1:], True
    newline = "\r\n" if "\r\n" in text else "\r" if "\r" in text and "\n" not in text else "\n"
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return SourceText(text, newline, encoding, bom)
