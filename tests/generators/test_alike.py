"""A suite has cases in which every second row of one tensor is that of another, wherever right kernels pass them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from tests.generators.test_draws import made, placed, tensor
from tests.generators.test_forgotten_branches import refusing

from pypto_op.generators.cases import suite as suite_cases
from pypto_op.generators.evaluation import inputs_text
from pypto_op.generators.operator.sources import gather
from pypto_op.generators.rehearsing.rehearsal import Offers, Rehearsed, rehearse
from pypto_op.workspace import OpWorkspace


def tried(bare: OpWorkspace, result: str) -> Rehearsed:
    """Rehearse an ordinary case and those of tensors that are alike."""
    bare.golden.write_text(f"import torch\n\n\ndef chain_golden(x, y):\n    return {result}\n")
    sources = gather(bare)
    bare.test_inputs.write_text(inputs_text(sources))
    maker = suite_cases.filled(sources)
    cases = [case for case in maker.cases if case["id"].startswith(("L2_base", "L5_alike"))]
    return rehearse(bare, cases, sources.spec.policy(), offers=Offers(instead=maker.in_place_of))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("result", "kept"),
    [
        ("((x - y + 1e-2) * (x - y + 1e-2)).sum(-1, keepdim=True).sqrt() + x", True),
        ("x / (x - y)", False),  # not finite there
        ("1e4 * ((x * 3.7).sum(-1, keepdim=True) - (y * 3.7).sum(-1, keepdim=True)) + x", False),  # right kernels part
    ],
)
def test_alike_tensors_are_a_case_where_the_golden_is_finite_and_honest_orders_agree(
    bare: OpWorkspace, result: str, kept: bool
) -> None:
    """Without eps a distance passed: rows that were alike, of which eps is all that is left, came in no case."""
    done = tried(bare, result)
    found = [case for case in done.cases if "draw_alike" in case]
    assert [case["draw_alike"] for case in found] == [{"y": "x"}] * 2 * kept
    assert [case.get("draw_zone") for case in found] == [None, "tiny"][: 2 * kept]
    assert not any("policy" in case for case in found)
    assert any("alike_y_x" in name for name in done.dropped) is not kept


def test_every_second_row_is_the_other_one_s_and_changes_with_the_seed(tmp_path: Path) -> None:
    ws = placed(tmp_path, [tensor("x"), tensor("y")])
    one, other = (made(ws, seed=seed, draw_alike={"y": "x"}) for seed in (1, 2))
    same = (one["x"] == one["y"]).all(-1)
    assert bool(same[::2].all()) and not bool(same[1::2].any()) and not torch.equal(one["y"], other["y"])


@pytest.mark.parametrize(
    ("ports", "front", "pairs"),
    [
        ([tensor("x"), tensor("y")], {}, [{"y": "x"}]),
        ([tensor("x"), tensor("y"), tensor("z")], {}, [{"y": "x"}, {"z": "x"}, {"z": "y"}]),
        ([tensor("x"), tensor("y")], {"input_ranges": {"y": "[0, 1]"}}, []),
        ([tensor("x"), tensor("y")], {"fixed_inputs": ["y"]}, []),
        ([tensor("x"), tensor("y", "int32")], {}, []),
        ([tensor("x"), {**tensor("y"), "shape": ["D"]}], {}, []),
        ([tensor("x", "int32"), tensor("y", "int32")], {"shape_constraints": ["0 <= x < D", "0 <= y < D"]}, [{"y": "x"}]),
        ([tensor("x", "int32"), tensor("y", "int32")], {"shape_constraints": ["0 <= x < D", "0 <= y < S"]}, []),
    ],
)
def test_tensors_of_one_shape_dtype_and_range_are_made_alike(tmp_path: Path, ports: Any, front: Any, pairs: Any) -> None:
    sources = gather(placed(tmp_path, ports, **front))
    found = [case for case in suite_cases.cases(sources) if "draw_alike" in case]
    assert [case["draw_alike"] for case in found if "draw_zone" not in case] == pairs
    tiny = [case["draw_alike"] for case in found if case.get("draw_zone") == "tiny"]
    assert tiny == [pair for pair in pairs if sources.floating], "whole numbers have no size"
    assert ("draw_alike" in inputs_text(sources)) is bool(pairs), "what no operator needs is not in its file"


def test_a_floor_under_a_root_shows_where_small_tensors_are_alike(bare: OpWorkspace) -> None:
    """A distance whose square had a floor of 1e-6 passed: beside rows that are far apart nobody saw it."""
    near = "((x - y + 1e-6) * (x - y + 1e-6)).sum(-1, keepdim=True){}.sqrt()"
    result = f"torch.relu({near} - (x * x).sum(-1, keepdim=True).sqrt() + 0.5) + x * 0.0"
    cases = [case for case in tried(bare, result.format("")).cases if "draw_alike" in case]
    floored = result.format(".clamp(min=1e-6)")

    def kernel(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.as_tensor(eval(floored, {"torch": torch, "x": x, "y": y}))  # noqa: S307

    assert [case.get("draw_zone") for case in cases if case["id"] in refusing(bare, cases, kernel)] == ["tiny"]
