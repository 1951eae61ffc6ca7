"""Where compilation spends its time: pypto's own log lines, one for each pass and function.

pypto writes them with the level INFO or lower; `docs/tuning.md` says how a log is made.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pypto_op.errors import ContractError, unreadable
from pypto_op.hashing import open_regular

_LINE = re.compile(r"The Runtime of pass (?P<name>\S+) for program \S* ?function (?P<function>\S+) is (?P<us>\d+) us\.")
_REMEDY = "run the kernel with ASCEND_GLOBAL_LOG_LEVEL=1 and give the log that pypto leaves, or the folder of its logs"


@dataclass(frozen=True)
class PassTime:
    """What one pass cost."""

    name: str  # of the pass
    runs: int  # how often it ran: once for each function
    total_us: int  # of all runs, microseconds of the compiling machine
    longest_us: int  # of the longest run
    longest: str  # the function of that run


def read_passes(path: Path) -> list[PassTime]:
    """Return what each pass cost, the most expensive first.

    Args:
        path: a log, or a folder whose `*.log` files are read.

    Raises:
        ContractError: there is no log, or none of its lines tells of a pass.
    """
    found: dict[str, list[tuple[int, str]]] = {}
    for line in _lines(path):
        if match := _LINE.search(line):
            found.setdefault(match["name"], []).append((int(match["us"]), match["function"]))
    if not found:
        raise ContractError("tells of no pass", file=path, remedy=_REMEDY)
    rows = [PassTime(name, len(runs), sum(us for us, _ in runs), *max(runs)) for name, runs in found.items()]
    return sorted(rows, key=lambda row: (-row.total_us, row.name))


def _lines(path: Path) -> Iterator[str]:
    files = sorted(path.rglob("*.log")) if path.is_dir() else [path]
    if not files:
        raise ContractError("holds no log", file=path, remedy=_REMEDY)
    for file in files:
        try:
            with open_regular(file) as stream:
                yield from (line.decode("utf-8", errors="replace") for line in stream)
        except OSError as error:
            raise unreadable(error, file, _REMEDY) from None


@dataclass(frozen=True)
class Difference:
    """What a pass costs in two logs."""

    name: str  # of the pass
    # before_us, after_us: of all its runs; 0 where it did not run
    before_us: int
    after_us: int


def differences(before: Iterable[PassTime], after: Iterable[PassTime]) -> list[Difference]:
    """Return the passes of both logs, those that changed most first."""
    first: Mapping[str, int] = {row.name: row.total_us for row in before}
    second: Mapping[str, int] = {row.name: row.total_us for row in after}
    rows = [Difference(name, first.get(name, 0), second.get(name, 0)) for name in {**first, **second}]
    return sorted(rows, key=lambda row: (-abs(row.after_us - row.before_us), row.name))
