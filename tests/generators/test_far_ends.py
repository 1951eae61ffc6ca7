"""The far end of a float scalar's range is tried where it shows: a bound of 100 beside lengths that are all near 1 hides much."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from benchmarks import fresh
from tests.generators.test_draws import made, placed, tensor, with_inputs
from tests.generators.test_scalars_lists_and_pools import told_apart

from pypto_op.documents.knobs import SCALE
from pypto_op.generators.cases import far_ends
from pypto_op.generators.cases import suite as suite_cases
from pypto_op.generators.operator.sources import gather
from pypto_op.generators.rehearsing.rehearsal import Offers, rehearse
from pypto_op.workspace import OpWorkspace

GAIN = [tensor("x"), {"name": "gain", "shape": [], "dtype": "float32"}]


@pytest.mark.parametrize(
    ("said", "default", "middle"),
    [
        ("0.1 <= gain <= 100", 1.0, [10.0]),
        ("0.1 <= gain <= 8", 1.0, []),  # nothing lies far from the default
        ("0.001 <= gain <= 2", 1.0, []),  # below the default other cases look
        ("-400 <= gain <= 0", -1.0, [-20.0]),
        ("0.1 <= gain", 1.0, []),
        ("0 <= gain <= 100", 0.0, []),
    ],
)
def test_a_far_end_is_told_from_what_lies_halfway(said: str, default: float, middle: list[float], tmp_path: Path) -> None:
    ws = placed(tmp_path, GAIN, shape_constraints=[said], default_params={"gain": default}, supported_dtypes=["float32"])
    maker = suite_cases.filled(gather(ws))
    found = [far_ends.between(maker, case) for case in suite_cases.in_order(maker)]
    assert [of["gain"] for of in found if of] == middle


@pytest.mark.parametrize(
    ("said", "near"),
    [
        ("0 <= gain < 1", [1.0 - 2.0**-10]),
        ("0 <= gain <= 1", []),
        ("0 < gain", []),
        ("-1 < gain < 1", [-1.0 + 2.0**-6, 1.0 - 2.0**-10]),
    ],
)
def test_a_share_comes_next_to_an_end_that_is_itself_outside(said: str, near: list[float], tmp_path: Path) -> None:
    """A step that took the moments of before the call from a decay of 0.95 on passed."""
    ws = placed(tmp_path, GAIN, shape_constraints=[said], default_params={"gain": 0.9}, supported_dtypes=["float32"])
    assert [case["gain"] for case in suite_cases.cases(gather(ws)) if "_near_end" in case["id"]] == near


@pytest.mark.slow
def test_a_bound_that_only_a_share_next_to_1_reaches_is_tried_beside_one(tmp_path: Path) -> None:
    """An Adafactor step that held its clip to 10 passed: no update's length was beyond 4."""
    ws = OpWorkspace.at(fresh.workspace("adafactor_step", tmp_path))
    sources = with_inputs(ws)
    maker = suite_cases.filled(sources)
    held = replace(sources, scalars={**sources.scalars, "clip": 10.0})
    [end] = [case for case in maker.cases if far_ends.between(maker, case) and case.get("clip") == 100.0][:1]
    assert not told_apart(held, end, "clip"), "the case alone hides it"
    telling, between = partial(far_ends.telling, maker), partial(far_ends.between, maker)
    offers = Offers(telling=telling, between=between)
    done = rehearse(ws, [end], sources.spec.policy(), scalars=sources.scalars, offers=offers)
    [beside] = [case for case in done.cases if SCALE in case]
    assert beside["clip"] == 100.0 and beside["beta2"] == 1.0 - 2.0**-10, done.dropped
    assert told_apart(held, beside, "clip")
    assert not done.dropped


@pytest.mark.parametrize(
    ("said", "least"),
    [
        ({"y": "[0.5, 8]"}, ["y"]),
        ({"y": {"row_length": "[0.1, 100]"}}, ["y"]),
        ({"y": {"row_length": 1}}, []),
        ({"y": "[0, 8]"}, []),
        ({"x": "[1, 8]", "y": "[0.5, 8]"}, []),
    ],
)
def test_what_divides_is_least_beside_each_end_of_a_scalar(tmp_path: Path, said: dict[str, Any], least: list[str]) -> None:
    """Gradients that were held to 100 passed: only a short row beside the greatest scale leaves it."""
    front = {"default_params": {"scale": 1.0}, "shape_constraints": ["0.1 <= scale <= 20"], "input_ranges": said}
    ws = placed(tmp_path, [tensor("x"), tensor("y"), {"name": "scale", "shape": [], "dtype": "float32"}], **front)
    cases = [case for case in suite_cases.cases(gather(ws)) if "beside_least" in case["id"]]
    assert [case["scale"] for case in cases] == ([0.1, 20.0] if least else [])
    for case in cases:
        assert [*case["draw_zone"]] == least
        drawn = made(ws, shape=case["shape"], draw_zone=case["draw_zone"])
        low = 0.1 if "row_length" in str(said) else 0.5
        size = drawn["y"].norm(dim=-1) if low == 0.1 else drawn["y"]
        assert float(size.max()) <= 2.1 * low < float(drawn["x"].abs().max())


def test_a_tensor_reaches_the_far_end_of_its_range_alone(tmp_path: Path) -> None:
    """Sums of squares up to 1e9 were drawn up to 4e4: a kernel that held them at 65504 passed."""
    ports = [tensor("x"), tensor("m2"), tensor("near")]
    said = ["0 <= m2", "m2 <= 1e9", "-100 <= near", "near <= 100"]
    ws = placed(tmp_path, ports, shape_constraints=said, supported_dtypes=["float32"])
    cases = suite_cases.cases(gather(ws))
    [case] = [case for case in cases if "_far_" in case["id"]]
    drawn = made(ws, **case)
    assert case["id"].startswith("L5_far_m2") and 5e8 < float(drawn["m2"].max()) <= 1e9 and float(drawn["m2"].min()) >= 0.0
    assert float(drawn["x"].abs().max()) < 10.0 > float(drawn["near"].abs().max())
