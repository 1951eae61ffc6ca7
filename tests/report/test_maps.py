"""What a heat map says in words, and which of several is shown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pypto_op.errors import ContractError
from pypto_op.report import maps, sources, words
from pypto_op.report.maps import HeatMap
from pypto_op.workspace import OpWorkspace

GOOD, BAD = 0.01, 50.0


def grid(rows: int, columns: int, bad: set[int], *, by_column: bool = False) -> list[list[float]]:
    return [[BAD if (c if by_column else r) in bad else GOOD for c in range(columns)] for r in range(rows)]


@pytest.mark.parametrize(
    ("cells", "shape", "sentence"),
    [
        (grid(31, 96, set(range(16, 31))), (31, 96), "Outside the tolerance: rows 16 to 30 (the last is 30), in every column."),
        (grid(17, 8, {16}), None, "Outside the tolerance: row 16 (the last is 16), in every column."),
        (grid(8, 10, {8, 9}, by_column=True), None, "Outside the tolerance: columns 8 to 9 (the last is 9), in every row."),
        (grid(48, 96, {47}), (131, 256), "Outside the tolerance: rows 128 to 130 (the last is 130), in every column."),
        (grid(12, 4, {1, 5, 9}), None, "Outside the tolerance: rows 1, 5, 9 (the last is 11), in every column."),
        ([[GOOD, BAD], [GOOD, GOOD], [BAD, GOOD]], None, "Outside the tolerance: rows 0, 2 (the last is 2), in some columns."),
        (grid(4, 4, set()), None, "No element is outside the tolerance."),
        (grid(4, 4, {0, 1, 2, 3}), None, "Every part of the output is outside the tolerance."),
        ([[GOOD, BAD], [BAD, GOOD]], None, "Elements all over the output are outside the tolerance: 2 of 4 cells of the map."),
        ([[BAD]], None, "Every part of the output is outside the tolerance."),
    ],
)
def test_a_map_says_where_the_error_lies(cells, shape, sentence) -> None:
    assert maps.described(HeatMap("case", cells, "", shape)) == sentence


def test_the_map_that_tells_is_neither_wrong_everywhere_nor_in_one_row_of_many() -> None:
    everywhere, one_row = HeatMap("all", grid(15, 96, set(range(15))), ""), HeatMap("one", grid(17, 96, {16}), "")
    tail = HeatMap("tail", grid(31, 96, set(range(16, 31))), "")
    assert max([everywhere, one_row, tail], key=maps.telling) is tail


def test_every_cell_is_drawn_once() -> None:
    cells = [[0.0, 0.0, 0.7, 1.0], [1.01, 5.0, 1e6, 1e6]]
    drawn = maps.drawn(HeatMap("case", cells, ""))
    assert sum(width for _, _, width, _ in drawn["runs"]) == 8
    levels = {(x, y): level for x, y, _, level in drawn["runs"]}
    limit = next(level for level, label in maps.legend() if "limit" in label)
    assert levels[(2, 0)] == limit < levels[(0, 1)] < levels[(2, 1)] == len(maps.legend()) - 1


def verdict_and_maps(tmp_path: Path) -> tuple[OpWorkspace, dict]:
    ws = OpWorkspace(tmp_path / "custom" / "demo", "demo")
    leaf = {"name": "out", "shape": [2, 31, 96]}
    checks = []
    for case, status, bad in (("fine", "PASS", 0), ("one_row", "FAIL", 1), ("tail", "FAIL", 24), ("all", "FAIL", 48)):
        checks.append({"id": case, "status": status, "modes": {"sim": {"per_tensor": [leaf]}}})
        path = ws.error_map(case)
        path.parent.mkdir(parents=True, exist_ok=True)
        cells = grid(48, 96, set(range(48 - bad, 48)))
        path.write_text(json.dumps({"case": case, "mode": "sim", "output": "out", "impl": "a", "cells": cells}))
    return ws, {"checks": checks, "hashes": {"impl": "a"}}


def test_failing_maps_come_first_and_the_telling_one_of_them(tmp_path: Path) -> None:
    ws, verdict = verdict_and_maps(tmp_path)
    found = sources.error_maps(ws, verdict)
    assert [m.title for m in found] == ["tail", "one_row", "all", "fine"]
    assert found[0].shape == (62, 96)
    assert [m.title for m in sources.error_maps(ws, verdict, ["one_row"])] == ["one_row"]


def test_maps_of_other_bytes_are_not_shown(tmp_path: Path) -> None:
    ws, verdict = verdict_and_maps(tmp_path)
    assert sources.error_maps(ws, {**verdict, "hashes": {"impl": "b"}}) == []


@pytest.mark.parametrize("text", ["{", "[]", '{"impl": "a"}', '{"impl": "a", "cells": 3, "mode": "sim", "output": "o"}'])
def test_a_damaged_map_names_its_file(tmp_path: Path, text: str) -> None:
    ws, verdict = verdict_and_maps(tmp_path)
    ws.error_map("tail").write_text(text)
    with pytest.raises(ContractError, match=r"tail\.json: is no error map"):
        sources.error_maps(ws, verdict)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0.0 s"), (9.94, "9.9 s"), (9.96, "10 s"), (59.6, "1 min"), (125, "2 min 5 s"), (3599.9, "1 h"), (3660, "1 h 1 min"),
     (86399.9, "1 d"), (97200, "1 d 3 h")],
)  # fmt: skip
def test_durations(seconds: float, text: str) -> None:
    assert words.duration(seconds) == text
