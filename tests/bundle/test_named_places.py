"""Every test, rule, gate, path and quotation that docs/seed-coverage.md and docs/architecture.md name exists."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from pypto_op.state.gates import GATES
from pypto_op_lint.registry import all_rules

ROOT = Path(__file__).parents[2]
COVERAGE = (ROOT / "docs/seed-coverage.md").read_text(encoding="utf-8")
MAP = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")


def rows(page: str, heading: str) -> Iterator[list[str]]:
    """Yield the cells of each row of the tables whose last column is called `heading`."""
    reading = False
    for line in page.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")] if line.startswith("|") else []
        if not cells:
            reading = False
        elif cells[-1] == heading:
            reading = True
        elif reading and not re.fullmatch(r"[|\s-]+", line):
            yield cells


@cache
def text(path: str) -> str:
    return " ".join((ROOT / path).read_text(encoding="utf-8").split())


ENFORCED = list(rows(COVERAGE, "shown by"))
SAID = list(rows(COVERAGE, "words"))
TESTS = sorted(set(re.findall(r"`([\w/]+\.py)(?:::(\w+))?`", "\n".join(row[-1] for row in ENFORCED))))
PATHS = sorted(set(re.findall(r"`([\w.-]+(?:/[\w.*-]+)+/?)`", COVERAGE.partition("## Coder")[0] + MAP)))


@pytest.mark.parametrize(("file", "function"), TESTS)
def test_a_named_test_is_there(file: str, function: str) -> None:
    assert re.search(rf"^(?:async )?def {function}\(", (ROOT / "tests" / file).read_text(encoding="utf-8"), re.M)


@pytest.mark.parametrize("row", ENFORCED, ids=lambda row: row[0][:60])
def test_a_row_of_the_code_shows_something(row: list[str]) -> None:
    assert re.search(r"`[\w/]+\.py::\w+`|\b(?:OL|PX)\d\d\b", row[-1]), "names neither a test nor a rule"


@pytest.mark.parametrize("row", SAID, ids=lambda row: row[0][:60])
def test_a_quotation_stands_on_its_page(row: list[str]) -> None:
    assert row[2].strip('"') in text(row[1].strip("`"))


def test_rules_and_gates_are_there() -> None:
    rules = set(all_rules())
    assert set(re.findall(r"\b(?:OL|PX)\d\d\b", COVERAGE)) <= rules
    gates = {
        name
        for row in ENFORCED
        for words in re.findall(r"\bgates? ((?:`\w+`(?:, )?)+)", row[1])
        for name in re.findall(r"\w+", words)
    }
    assert gates and gates <= set(GATES)


@pytest.mark.parametrize("path", PATHS)
def test_a_named_path_is_there(path: str) -> None:
    below = (ROOT, ROOT / "scripts/pypto_op", ROOT / "lint/pypto_op_lint", ROOT / "examples/ops/softmax")
    assert any(any(folder.glob(path.rstrip("/"))) for folder in below)


def test_the_pages_are_read() -> None:
    assert len(ENFORCED) > 50 and len(SAID) > 15 and len(TESTS) > 40 and len(PATHS) > 20


def test_every_room_can_be_found_by_what_one_wants_to_change() -> None:
    table = MAP.partition("## Where to make a change")[2].partition("\n## ")[0]
    rooms = [
        *(ROOT / "scripts/pypto_op").iterdir(),
        *(folder for folder in (ROOT / "lint/pypto_op_lint").iterdir() if folder.is_dir()),
    ]
    names = {room.name for room in rooms if not room.name.startswith(("_", ".", "py.typed"))} - {"data"}
    assert {name for name in names if not re.search(rf"[`/]{re.escape(name)}[/`]", table)} == set()


def test_every_room_has_the_tests_that_the_map_promises() -> None:
    elsewhere = {"comparison": "compare", "proof": "state"}
    rooms = [room.name for room in (ROOT / "scripts/pypto_op").iterdir() if room.is_dir() and not room.name.startswith("_")]
    assert [room for room in rooms if not list((ROOT / "tests" / elsewhere.get(room, room)).glob("test_*.py"))] == []


def test_each_tool_of_the_debugger_has_a_row() -> None:
    from pypto_op.debug.commands import debug

    told = " ".join(row[1] for row in ENFORCED)
    assert set(debug.commands) <= set(re.findall(r"[a-z]+(?:-[a-z]+)*", told))
