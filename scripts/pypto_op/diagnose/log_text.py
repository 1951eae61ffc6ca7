"""What a log says: its words without colours, the place it blames, and the first error instead of the aftermath."""

from __future__ import annotations

import contextlib
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pypto_op.diagnose.readable import check_readable
from pypto_op.errors import ContractError

MAX_BYTES = 4 * 1024 * 1024
"""Of a longer log the first and the last half of this are read."""

_COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_PLACE = re.compile(r"\b(?:ERROR|INTERNAL BUG) (?P<file>\S[^\n:]*\.py):(?P<line>\d+):\d+:")
_GRAPH_PLACE = re.compile(r"/\* (?P<file>\S[^\n:]*\.py):(?P<line>\d+) \*/")
_SHOWN_LINE = re.compile(r"^ *(?P<number>\d+) \| (?P<code>.*)$", re.MULTILINE)
_FIRST = re.compile(r"Record function \w+ failed: (?P<words>.*(?:\n(?!\S*lib|pypto_impl|ERROR|\[).*){0,3})")
_AFTERMATH = re.compile(r"^.*(?:F21004|op \[\w+\] ?tile shape not set).*$", re.MULTILINE)


@dataclass(frozen=True)
class LogText:
    """A log, ready to be searched.

    Attributes:
        text: its words; what pypto reports only because an earlier error broke the recording off is left out.
        file: the kernel file that the log blames, or "".
        line: the line in it, 0 where the log names none.
        code: that line's text where the log shows it, else "".
    """

    text: str
    file: str = ""
    line: int = 0
    code: str = ""


def read_log(path: Path) -> LogText:
    """Read the log at `path` (`-`: standard input): text, or a JSON report whose texts are searched.

    Raises:
        ContractError: it is missing, a folder, cannot be read, or belongs to the judge.
    """
    check_readable(path)
    try:
        raw = sys.stdin.buffer.read() if str(path) == "-" else _read(path)
    except IsADirectoryError:
        raise ContractError("this is a folder", file=path, remedy="name the log file in it") from None
    except OSError as error:
        raise ContractError(f"cannot be read ({error.strerror})", file=path, remedy="name the file the run wrote") from None
    return parse_log(raw.decode("utf-8", errors="replace"))


def parse_log(text: str) -> LogText:
    """Return what `text` says."""
    if text.lstrip()[:1] in ("{", "["):
        with contextlib.suppress(ValueError, RecursionError):  # a log may well begin with a bracket
            text = "\n".join(_texts(json.loads(text)))
    text = _COLOUR.sub("", text).replace("\r\n", "\n")
    first = _FIRST.search(text)
    if first and "F21004" not in first["words"].partition("\n")[0]:
        # Recording broke off before; passes that then run over the torso complain about missing tiles.
        text = _AFTERMATH.sub("", text)
    return _placed(text)


def _placed(text: str) -> LogText:
    named = [found for found in _PLACE.finditer(text) if found["line"] != "1"]  # 1:0 stands for "no place known"
    named += _GRAPH_PLACE.finditer(text)
    own = [found for found in named if "site-packages" not in found["file"]]
    if not own:
        return LogText(text)
    found = own[0]
    number = int(found["line"])
    shown = [line["code"] for line in _SHOWN_LINE.finditer(text) if int(line["number"]) == number]
    return LogText(text, found["file"], number, shown[0].strip() if shown else "")


def _read(path: Path) -> bytes:
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(0)
        if size <= MAX_BYTES:
            return file.read()
        head = file.read(MAX_BYTES // 2)
        file.seek(size - MAX_BYTES // 2)
        return head + b"\n" + file.read()


def _texts(node: Any) -> Iterator[str]:
    if isinstance(node, str):
        yield node
    elif isinstance(node, dict):
        for value in node.values():
            yield from _texts(value)
    elif isinstance(node, list):
        for value in node:
            yield from _texts(value)
