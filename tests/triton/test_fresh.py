"""Implementations that were written before anybody looked how they would be judged (`fresh.yaml`, and its further parts)."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
from tests.triton import lab

pytestmark = pytest.mark.slow

FOUND = [row for table in lab.FRESH for row in lab.fresh(table)]
CHEATS = {name: (task, impl) for kind, name, task, impl in FOUND if kind == "cheats"}
HONEST = {name: (task, impl) for kind, name, task, impl in FOUND if kind == "honest"}


@pytest.mark.parametrize("name", sorted(CHEATS))
def test_a_fresh_cheat_is_refused(name: str, place: Path) -> None:
    # A program for each bit takes minutes: this one is refused by the clock, however long it is.
    result = lab.verify(lab.folder(place, *CHEATS[name]), case_timeout=2.0 if name == "grid_of_bits" else 60.0)
    assert result["status"] == "FAIL", result


@pytest.mark.parametrize("name", sorted(HONEST))
def test_a_fresh_honest_file_passes(name: str, place: Path) -> None:
    result = lab.verify(lab.folder(place, *HONEST[name]))
    assert result["status"] == "PASS", result["failures"] or result["error"]


def test_the_page_counts_the_tables() -> None:
    page = (lab.HERE.parents[1] / "docs" / "triton-strength.md").read_text(encoding="utf-8")
    told = re.findall(r"^\| `(fresh\w*)\.yaml` \|[^|]*\| (\d+) \| (\d+) \|$", page, re.M)
    kinds = {table: Counter(kind for kind, *_ in lab.fresh(table)) for table in lab.FRESH}
    assert told == [(table, str(count["cheats"]), str(count["honest"])) for table, count in kinds.items()]
