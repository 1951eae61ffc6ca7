"""What may be read as a log: no file of the judge, since a diagnosis quotes lines, and nothing whose end may never come."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pypto_op.diagnose.log_stream import lines_with, read_pieces
from pypto_op.errors import ContractError
from pypto_op.vocabulary import Artifact
from pypto_op.workspace import OpWorkspace

_JUDGES = frozenset(
    {Artifact.GOLDEN, Artifact.MODULE_GOLDEN, Artifact.TEST, Artifact.MODULE_TEST, Artifact.TEST_INPUTS, Artifact.SUITE}
)

_TOLD_BYTES = 4 * 1024 * 1024
"""About as much is kept by `telling_lines` of a log that is not read whole."""


def check_readable(path: Path) -> None:
    """Raise ContractError when `path`, links followed, is a golden, a test, the inputs or the suite of an operator, or no file.

    A pipe waits for its writer, and many a device gives bytes for ever; a folder is for the caller to judge.
    """
    real = path.expanduser().resolve()
    if real.exists() and not real.is_file() and not real.is_dir():
        raise ContractError(
            "a pipe or device is not read as a log", file=path, remedy="write it to a file, or `pypto-op diagnose -` reads stdin"
        )
    operator = OpWorkspace.owning(real)
    if operator and operator.artifact_of(real)[0] in _JUDGES:
        raise ContractError("this file is the judge's and is not quoted", file=path, remedy="name the log, or the implementation")


def lines_of(log: Path, longest: int, words: tuple[bytes, ...] = ()) -> Iterator[str]:
    """Yield the lines of a log, in parts of at most `longest` characters, so that a log of any size takes bounded memory.

    Args:
        longest: of a line longer than this one the rest is another part; where words are asked for it is left out.
        words: only lines that hold one of these; (): all, at a hundred times the cost.

    Raises:
        ContractError: it cannot be read, or may not (`check_readable`).
    """
    check_readable(log)
    try:
        if words:
            with log.open("rb") as raw:
                yield from (line[:longest] for line in lines_with(raw, str(log), words))
            return
        with log.open(encoding="utf-8", errors="replace") as file:
            yield from iter(lambda: file.readline(longest), "")
    except OSError as error:
        raise ContractError(f"cannot be read: {error.strerror}", file=log, remedy="name the file that the run wrote") from error


def telling_lines(log: Path) -> tuple[list[tuple[int, str]], list[str]]:
    """Return the lines of a log, of a long one those around telling words, each with its number, and what to know of the log.

    Raises:
        ContractError: it cannot be read, or may not (`check_readable`).
    """
    check_readable(log)
    try:
        with log.open("rb") as file:
            pieces, notes = read_pieces(file, str(log), _TOLD_BYTES)
    except OSError as error:
        raise ContractError(f"cannot be read: {error.strerror}", file=log, remedy="name the file that the run wrote") from error
    lines = [(piece.line + at, line) for piece in pieces for at, line in enumerate(piece.text.split("\n"))]
    return lines, notes
