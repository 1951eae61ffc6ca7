"""What a log says: its words without colours, the place it blames, and the first error instead of the aftermath."""

from __future__ import annotations

import bisect
import contextlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pypto_op.backends.endings import with_kernel_frames
from pypto_op.diagnose.log_stream import KEPT_BYTES, TELLING, Piece, narrowed
from pypto_op.diagnose.long_lines import bounded
from pypto_op.vocabulary import Status

_LEAST = 16 * 1024
"""Characters that each piece of several is searched for."""

_COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_PLACE = re.compile(r"\b(?:ERROR|INTERNAL BUG) (?P<file>\S[^\n:]*\.py):(?P<line>\d+):\d+:")
_RECORDED = re.compile(
    r'^stopped at (?P<file>\S[^\n:]*\.py):(?P<line>\d+): |^ *File "(?P<at>[^"\n]+)", line (?P<crashed>\d+) in kernel$',
    re.MULTILINE,
)
"""What `backends.worker.kernel_lines` tells of an error and of a crash: a statement."""
_WAY = re.compile(r"^stopped at [^\n]* \(by way of lines (?P<lines>[\d, ]+)\)$", re.MULTILINE)
_GRAPH_PLACE = re.compile(r"/\* (?P<file>\S[^\n:]*\.py):(?P<line>\d+) \*/")
_FRAME = re.compile(r'^\s*File "(?P<file>[^"\n]+\.py)", line (?P<line>\d+)(?:, in | in )', re.MULTILINE)
_DETAIL = re.compile(r"^(?:\w+: )?(?:(?<=: )|the candidate[^\n:]*: )(?P<file>[\w.-]+\.py):(?P<line>\d+): ", re.MULTILINE)
"""As an outcome tells it (`crash: FILE:LINE: ...`), and a verdict's reason (`the candidate's process ...: FILE:LINE: ...`)."""
_NOT_THE_USERS = re.compile(r"site-packages|/lib/python|<frozen|pypto_op/")
_SHOWN_LINE = re.compile(r"^ *(?P<number>\d+) \| (?P<code>.*)$", re.MULTILINE)
_FIRST = re.compile(r"Record function \w+ failed: (?P<words>.*(?:\n(?!\S*lib|pypto_impl|ERROR|\[).*){0,3})")
_AFTERMATH = re.compile(r"^.*(?:F21004|op \[\w+\] ?tile shape not set).*$", re.MULTILINE)


@dataclass(frozen=True)
class LogText:
    """A log, ready to be searched."""

    text: str  # its words; what pypto reports only because an earlier error broke the recording off is left out
    file: str = ""  # the kernel file that the log blames, or ""
    line: int = 0  # the line in it, 0 where the log names none
    code: str = ""  # that line's text where the log shows it, else ""
    frame: tuple[str, int] = ("", 0)  # file and line of the user's innermost stack frame; ("", 0) where the log shows none
    # file's name and line where the first error was raised, as an outcome says it; ("", 0) without one
    raised: tuple[str, int] = ("", 0)
    # lines of the kernel on the way into the helper that raised it, outermost first; () where none is told
    way: tuple[int, ...] = ()
    # where each part of `text` begins, its file, and the number of its first line there
    pieces: tuple[tuple[int, str, int], ...] = ((0, "", 1),)
    notes: tuple[str, ...] = ()  # what a reader must know of the log, one line each

    def where(self, offset: int) -> tuple[str, int]:
        """Return the file and line of a place in `text`; line 0 where lines have no number."""
        begin, name, line = self.pieces[bisect.bisect_right(self.pieces, offset, key=lambda piece: piece[0]) - 1]
        return name, line + self.text.count("\n", begin, offset) if line else 0


def parse_log(text: str) -> LogText:
    """Return what `text` says: a log, or a JSON document whose texts are searched."""
    return compose([Piece("", 1, text)])


def of_a_package(file: str) -> bool:
    """Whether a path is that of an installed package, such as pypto's own operators: no line of a kernel lies there."""
    return not {"site-packages", "dist-packages"}.isdisjoint(Path(file).parts)


def compose(pieces: Sequence[Piece], notes: Sequence[str] = ()) -> LogText:
    """Return what the pieces of one or several logs say together."""
    starts: list[tuple[int, str, int]] = []
    texts: list[str] = []
    length = 0
    budget = max(_LEAST, KEPT_BYTES // max(len(pieces), 1))
    for piece in pieces:
        numbered, words = _plain(piece.text)
        for part in narrowed(Piece(piece.name, piece.line, words), budget):
            starts.append((length, part.name, part.line if numbered else 0))
            texts.append(part.text)
            length += len(part.text) + 1
    text = "\n".join(texts)
    first = _FIRST.search(text)
    if first and "F21004" not in first["words"].partition("\n")[0]:
        # Recording broke off before; passes that then run over the torso complain about missing tiles.
        text = _AFTERMATH.sub(lambda found: " " * len(found[0]), text)
    return _placed(text, tuple(starts) or ((0, "", 1),), tuple(notes))


def _plain(text: str) -> tuple[bool, str]:
    """Return whether lines kept their numbers, and the words without colours; of a JSON document its texts."""
    numbered = True
    if text.lstrip()[:1] in ("{", "["):
        with contextlib.suppress(ValueError, RecursionError):  # a log may well begin with a bracket
            text, numbered = "\n".join(_texts(_failing(json.loads(text)))), False
    return numbered, with_kernel_frames(bounded(_COLOUR.sub("", text).replace("\r\n", "\n"), TELLING))


def _placed(text: str, starts: tuple[tuple[int, str, int], ...], notes: tuple[str, ...]) -> LogText:
    named = [found for found in _PLACE.finditer(text) if found["line"] != "1"]  # 1:0 stands for "no place known"
    named += _GRAPH_PLACE.finditer(text)
    places = [(found["file"], int(found["line"])) for found in named if not of_a_package(found["file"])]
    # pypto's own word, where there is one, is a line of the statement.
    places += [(found["file"] or found["at"], int(found["line"] or found["crashed"])) for found in _RECORDED.finditer(text)]
    detail = _DETAIL.search(text)
    raised = (detail["file"], int(detail["line"])) if detail else ("", 0)
    frame = raised if detail else _innermost(text)
    found = _WAY.search(text)
    way = tuple(int(line) for line in found["lines"].split(",")) if found else ()
    if not places:
        return LogText(text, frame=frame, raised=raised, way=way, pieces=starts, notes=notes)
    file, number = places[0]
    shown = [line["code"] for line in _SHOWN_LINE.finditer(text) if int(line["number"]) == number]
    return LogText(text, file, number, shown[0].strip() if shown else "", frame, raised, way, starts, notes)


def _innermost(text: str) -> tuple[str, int]:
    """Return the user's innermost frame: of a traceback the last, of the fault handler's list the first one."""
    frames = [found for found in _FRAME.finditer(text) if not _NOT_THE_USERS.search(found["file"])]
    if not frames:
        return "", 0
    crashed = "most recent call first" in text
    found = frames[0] if crashed else frames[-1]
    return found["file"], int(found["line"])


def _failing(document: Any) -> Any:
    """Return of a verdict's report what failed and what the candidate said, without names, caveats and what passed."""
    if not (isinstance(document, dict) and {"first_failure", "checks", "stdout"} <= document.keys()):
        return document
    checks = document["checks"] if isinstance(document["checks"], list) else []
    bad = (Status.FAIL, Status.ERROR)
    results = [result for check in checks if isinstance(check, dict) for result in _values(check.get("modes"))]
    said = [result.get("reason") for result in results if result.get("status") in bad]
    parts = [(document.get(key), word) for key, word in (("error", "message"), ("first_failure", "summary"))]
    told = [part.get(word) for part, word in parts if isinstance(part, dict)]
    return [*told, *said, document["stdout"], *(check.get("summary") for check in checks if isinstance(check, dict))]


def _values(modes: Any) -> list[dict[str, Any]]:
    return [result for result in modes.values() if isinstance(result, dict)] if isinstance(modes, dict) else []


def _texts(node: Any) -> Iterator[str]:
    if isinstance(node, str):
        yield node
    elif isinstance(node, dict):
        for value in node.values():
            yield from _texts(value)
    elif isinstance(node, list):
        for value in node:
            yield from _texts(value)
