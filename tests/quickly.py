"""What keeps tests quick: a cheap collection, which each process does for all tests, and the share of `make test-quick`."""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

import pytest
import yaml

QUICK = os.environ.get("PYPTO_OP_TESTS") == "quick"
"""Whether this is `make test-quick`."""
EVERYTHING = bool(os.environ.get("PYPTO_OP_ALL_CASES"))
"""Whether this is `make test-all`; `make test` leaves out what only repeats a kind of which two rows stay."""
ROWS = 2
"""So many rows of a parametrised test are tested where it has to be quick: the first and the one in the middle."""
Row = TypeVar("Row")


def without_long_tables(items: Sequence[pytest.Item]) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """Return the tests of `make test-quick` and those that it leaves to `make test`; no test function is left out."""
    tables: dict[str, list[pytest.Item]] = {}
    for item in items:
        tables.setdefault(item.nodeid.partition("[")[0], []).append(item)
    kept = {row for rows in tables.values() for row in _spread(rows)}
    return [item for item in items if item in kept], [item for item in items if item not in kept]


def _spread(rows: Sequence[Row]) -> list[Row]:
    return list(rows) if len(rows) <= ROWS else [rows[n * len(rows) // ROWS] for n in range(ROWS)]


def drawn(names: Iterable[str], count: int, *, about: str = "triton") -> list[str]:
    """Return the rows of a long table that are tested: all of them in `make test-all`, else `count` of them.

    They are drawn by the text of the room of `pypto_op` that the table is about: each change of it tries other rows.
    """
    rows = sorted(names)
    if EVERYTHING:
        return rows
    return sorted(sorted(rows, key=lambda row: hashlib.sha256(_text_of(about) + row.encode()).digest())[:count])


def drawn_of_each(kinds: Mapping[str, str], count: int, *, about: str = "triton") -> list[str]:
    """Return the rows of a table whose rows repeat kinds: `count` of each kind, all of them in `make test-all`.

    Args:
        kinds: of each row what kind it is
        count: so many rows of a kind
        about: as `drawn` takes it
    """
    of_kind: dict[str, list[str]] = {}
    for row, kind in kinds.items():
        of_kind.setdefault(kind, []).append(row)
    return sorted(row for rows in of_kind.values() for row in drawn(rows, count, about=about))


@functools.cache
def _text_of(room: str) -> bytes:
    files = sorted((Path(__file__).resolve().parents[1] / "scripts" / "pypto_op" / room).rglob("*.py"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).digest()


def share(rows: Sequence[Row], every: int = 3) -> list[Row]:
    """Return the rows that a loop within a test takes: all of them, or each `every`th where it has to be quick."""
    return list(rows)[:: every if QUICK else 1]


def examples(count: int) -> int:
    """Return how many random examples a property is tried on: `count`, or a fifth of it where it has to be quick."""
    return max(10, count // 5) if QUICK else count


def needs_package(name: str) -> pytest.MarkDecorator:
    """Skip where a package is not installed; unlike `pytest.importorskip`, without importing it."""
    return pytest.mark.skipif(find_spec(name) is None, reason=f"{name} is not installed; run `make setup`")


def skip_without(name: str) -> None:
    """Leave a whole module of tests out where a package is not installed; unlike `pytest.importorskip`, without importing it."""
    if find_spec(name) is None:
        pytest.skip(f"{name} is not installed; run `make setup`", allow_module_level=True)


def read_table(path: Path) -> Any:
    """Read a table in YAML with libyaml's parser, which takes a tenth of the time."""
    return yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
