"""Error maps: where the error of an output lies, what a map shows in one sentence, and which of several tells most."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

_STEPS = (1e-3, 1e-2, 0.1, 0.5, 1.0, 2.0, 10.0, 100.0, 1e4)
"""Upper ends of the colour classes but the last, as error divided by what is allowed; up to 1 is within tolerance."""


@dataclass(frozen=True)
class HeatMap:
    """Where the error of one output lies."""

    title: str  # the case and the verdict it belongs to
    # error divided by what is allowed, largest per cell, rows by columns; above 1 an element fails
    cells: Sequence[Sequence[float]]
    note: str  # one sentence on what is shown
    # rows and columns of the output itself, which may have more of them than the map; the map's own when None
    shape: tuple[int, int] | None = None


def from_file(data: Mapping[str, Any], check: Mapping[str, Any], title: str) -> HeatMap:
    """Return the map that `_debug/error_maps/<case>.json` holds; `check` is the case in the verdict, for the shape."""
    leaves = check.get("modes", {}).get(data["mode"], {}).get("per_tensor", [])
    shape = next((leaf.get("shape") for leaf in leaves if leaf.get("name") == data["output"]), None)
    size = (math.prod(shape[:-1]), shape[-1]) if shape else None
    return HeatMap(title, data["cells"], f"Output {data['output']} in {data['mode']}.", size)


def telling(heat_map: HeatMap) -> tuple[float, float, int]:
    """Return how much a map says about where a fault lies, to compare maps by.

    A map that is wrong everywhere, or in one row of many, says little; one with right and wrong regions of like size
    says most. Of equals the one with the greatest error is better, then the finer one.
    """
    cells = [cell for row in heat_map.cells for cell in row]
    wrong = sum(cell > 1 for cell in cells) / max(len(cells), 1)
    return round(wrong * (1 - wrong), 6), max(cells, default=0.0), len(cells)


def described(heat_map: HeatMap) -> str:
    """Return in one sentence which rows or columns of the output are outside the tolerance."""
    rows, columns = _size(heat_map)
    shown_rows, shown_columns = len(heat_map.cells), len(heat_map.cells[0])
    wrong = [[cell > 1 for cell in row] for row in heat_map.cells]
    total = sum(map(sum, wrong))
    if not total:
        return "No element is outside the tolerance."
    if total == shown_rows * shown_columns:
        return "Every part of the output is outside the tolerance."
    across = list(zip(*wrong, strict=True))
    for name, other, lines, count in (("row", "column", wrong, rows), ("column", "row", across, columns)):
        bad = [index for index, line in enumerate(lines) if any(line)]
        if len(bad) < len(lines):
            where = f"every {other}" if all(all(lines[index]) for index in bad) else f"some {other}s"
            return f"Outside the tolerance: {_ranges(bad, len(lines), count, name)} (the last is {count - 1}), in {where}."
    return f"Elements all over the output are outside the tolerance: {total} of {shown_rows * shown_columns} cells of the map."


def drawn(heat_map: HeatMap) -> dict[str, Any]:
    """Return what the template draws: runs of cells of one colour class as (x, y, width, class), sizes and sentence."""
    runs = []
    for y, row in enumerate(heat_map.cells):
        x = 0
        for level, cells in groupby(_level(cell) for cell in row):
            width = len(list(cells))
            runs.append((x, y, width, level))
            x += width
    rows, columns = _size(heat_map)
    return {
        "title": heat_map.title,
        "note": heat_map.note,
        "sentence": described(heat_map),
        "runs": runs,
        "width": len(heat_map.cells[0]),
        "height": len(heat_map.cells),
        "last_row": rows - 1,
        "last_column": columns - 1,
    }


def legend() -> list[tuple[int, str]]:
    """Return (colour class, its label) from small errors to large ones."""
    labels = [f"to {step:g}" for step in _STEPS]
    labels[_STEPS.index(1.0)] += " (limit)"
    return list(enumerate([*labels, "more"]))


def _level(ratio: float) -> int:
    return next((index for index, step in enumerate(_STEPS) if ratio <= step), len(_STEPS))


def _size(heat_map: HeatMap) -> tuple[int, int]:
    return heat_map.shape or (len(heat_map.cells), len(heat_map.cells[0]))


def _ranges(bad: Sequence[int], shown: int, count: int, name: str) -> str:
    """Say which rows `bad` lines of a map stand for: line i of `shown` covers rows i*count/shown up to (i+1)*count/shown."""
    spans: list[list[int]] = []
    for index in bad:
        if spans and spans[-1][1] == index - 1:
            spans[-1][1] = index
        else:
            spans.append([index, index])
    texts = []
    for first, last in spans[:4]:
        begin, end = first * count // shown, -(-(last + 1) * count // shown) - 1
        texts.append(f"{begin}" if begin == end else f"{begin} to {end}")
    more = f" and {len(spans) - 4} more ranges" if len(spans) > 4 else ""
    return f"{name if texts == [str(bad[0])] else name + 's'} {', '.join(texts)}{more}"
