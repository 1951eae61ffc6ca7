"""Each word of docs/glossary.md is defined where the page says, and the page names every level, status and kind of mode."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pypto_op.vocabulary import Level, Mode

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines() if line.startswith("| ")]
PLACES = sorted({place for row in ROWS for place in re.findall(r"`([\w./-]+)`", row[-1])})


@pytest.mark.parametrize("place", PLACES)
def test_each_place_is_there(place: str) -> None:
    assert (ROOT / place).exists()


def test_each_row_has_word_meaning_and_place_and_no_word_has_two_rows() -> None:
    rows = [row for row in ROWS if row[0] not in ("word", "---")]
    assert len(rows) >= 30 and all(len(row) == 3 and all(row) for row in rows)
    words = [word for row in rows for word in row[0].split(", ")]
    assert len(words) == len(set(words))


def test_levels_and_modes_are_named() -> None:
    unnamed = [word for word in (*map(str, Level), *map(str, Mode)) if not re.search(rf"\b{word}\b", PAGE)]
    assert unnamed == [], "docs/glossary.md: name these levels in the row `level`, these modes in the row `mode, back end`"
