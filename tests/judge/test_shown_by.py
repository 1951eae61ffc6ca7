"""docs/exploits.md names tests that are there, and docs/staged-path.md every check of the self-test."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pypto_op.judge.self_test.selftest import CHECKS

ROOT = Path(__file__).parents[2]
TABLE = (ROOT / "docs" / "exploits.md").read_text(encoding="utf-8").partition("## What broke once")[2]
NAMED = re.findall(
    r"`([\w/.*]+(?:::\w+)?|::\w+)`", "\n".join(line.split("|")[3] for line in TABLE.splitlines() if line.count("|") == 4)
)


def named_files() -> list[tuple[str, str]]:
    file, found = "", []
    for words in NAMED:
        path, _, function = words.partition("::")
        file = path or file
        if "test_" in file or "/" in file or function:
            found.append((file, function))
    return found


@pytest.mark.parametrize(("file", "function"), named_files())
def test_what_a_row_names_exists(file: str, function: str) -> None:
    base = ROOT if file.startswith("tests/") else ROOT / "tests" / "judge"
    found = list(base.glob(file.rstrip("*") + "*"))
    assert found, f"docs/exploits.md names {file}, which is not there"
    assert not function or f"def {function}(" in found[0].read_text(encoding="utf-8")


def test_the_table_is_read() -> None:
    assert len(named_files()) > 25


def test_the_page_names_every_check_of_the_self_test() -> None:
    page = (ROOT / "docs" / "staged-path.md").read_text(encoding="utf-8")
    table = page.partition("| check | fails when |")[2].partition("\n\n")[0]
    assert re.findall(r"^\| `(\w+)` \|", table, re.M) == list(CHECKS)
