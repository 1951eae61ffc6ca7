"""Indices that all name one place: what a kernel has room for of it shows in no even draw."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.generators.test_draws import made, placed, tensor

from pypto_op.generators.cases import suite as suite_cases
from pypto_op.generators.operator.sources import gather

IDS = tensor("ids", "int32", ("S",))


@pytest.mark.parametrize(
    ("front", "named"),
    [
        ({"shape_constraints": ["0 <= ids < D"]}, lambda shape: shape["D"] - 1),
        ({"shape_constraints": ["0 <= ids <= D"]}, lambda shape: shape["D"]),
        ({"shape_constraints": ["0 <= ids < 9"]}, None),
        ({"shape_constraints": ["0 <= ids <= D"], "input_ranges": {"ids": {"row_order": "rising"}}}, None),
        ({"shape_constraints": ["0 <= ids < D"], "fixed_inputs": ["ids"]}, None),
    ],
)
def test_all_indices_name_the_last_place(tmp_path: Path, front: dict[str, Any], named: Any) -> None:
    """A gradient of an embedding passed that had room for 32 tokens of a row in a tile of 64: no tile held more than ten."""
    ws = placed(tmp_path, [tensor("x"), IDS], **front)
    cases = [case for case in suite_cases.cases(gather(ws)) if "draw_range" in case]
    assert [case["id"] for case in cases] == (["L3_one_ids_float32"] if named else [])
    for case in cases:
        assert set(made(ws, **case)["ids"].tolist()) == {named(case["shape"])}
