"""A suite has cases in which every second row of one tensor is that of another, wherever right kernels pass them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from tests.generators.test_draws import made, placed, tensor

from pypto_op.generators import suite as suite_cases
from pypto_op.generators.evaluation import inputs_text
from pypto_op.generators.rehearsal import Offers, Rehearsed, rehearse
from pypto_op.generators.sources import gather
from pypto_op.workspace import OpWorkspace


def tried(bare: OpWorkspace, result: str) -> Rehearsed:
    """Rehearse an ordinary case and those of tensors that are alike."""
    bare.golden.write_text(f"import torch\n\n\ndef chain_golden(x, y):\n    return {result}\n")
    sources = gather(bare)
    bare.test_inputs.write_text(inputs_text(sources))
    maker = suite_cases.filled(sources)
    cases = [case for case in maker.cases if case["id"].startswith(("L2_base", "L5_alike"))]
    return rehearse(bare, cases, sources.spec.policy(), offers=Offers(instead=maker.in_place_of))


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
    assert [case["draw_alike"] for case in found] == [{"y": "x"}] * kept
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
    assert [case["draw_alike"] for case in suite_cases.cases(sources) if "draw_alike" in case] == pairs
    assert ("draw_alike" in inputs_text(sources)) is bool(pairs), "what no operator needs is not in its file"
