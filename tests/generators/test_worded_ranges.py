"""Inputs stay within limits that SPEC.md says in words alone, and `harness new` says what it made of the words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.generators.test_draws import make_inputs_of, placed, tensor

from pypto_op.generators.cases import suite as suite_cases
from pypto_op.generators.cases.case_maker import Maker
from pypto_op.generators.cases.refusals import refusals
from pypto_op.generators.operator.sources import gather
from pypto_op.generators.rehearsing.smallness import small
from pypto_op.stress.patterns import within
from pypto_op.workspace import OpWorkspace

HEAD = "| name | kind | shape | dtype | meaning |\n|---|---|---|---|---|\n"
X = "| x | input | [S, D] | float32, bfloat16 | patches; values lie between 0.001 and about 100 |\n"
G = "| g | input | [S, D] | dtype of x | gradient, {} |\n"
GAIN = {"name": "gain", "shape": [], "dtype": "float32"}


def worded(folder: Path, of_g: str = "up to about 1e6", **front: Any) -> OpWorkspace:
    body = HEAD + X + G.format(of_g) + "| gain | scalar | - | float | positive, never more than 10 |\n"
    return placed(folder, [tensor("x"), tensor("g"), GAIN], body=body, default_params={"gain": 1.0}, **front)


def test_no_zone_leaves_a_limit_that_words_say(tmp_path: Path) -> None:
    """A pooling by powers had no suite: its golden is not finite below 0, where right kernels take logarithms."""
    ws = worded(tmp_path)
    sources, make_inputs = gather(ws), make_inputs_of(ws)
    cases = [case for case in suite_cases.cases(sources) if "cancellation_stress" not in case]
    assert {case["gain"] for case in cases if "gain" in case} >= {10.0}
    for case in cases:
        made = make_inputs(case)
        x, g = (made[name].float()[torch.isfinite(made[name])] for name in ("x", "g"))
        assert x.numel() == 0 or 0.001 * (1 - 2**-7) <= x.min() <= x.max() <= 100.5, case["id"]
        assert g.numel() == 0 or g.abs().max() <= 1.01e6, case["id"]
        assert 0.0 < made["gain"] <= 10.0, case["id"]


def test_all_is_small_but_what_has_a_least_value(tmp_path: Path) -> None:
    maker = Maker(gather(worded(tmp_path)))
    assert [set(case["draw_scale"]) for case in small(maker)] and all(set(case["draw_scale"]) == {"g"} for case in small(maker))


def test_what_lies_within_a_wide_range_keeps_its_digits() -> None:
    """Gradients of a range to 1e6 were rounded to sixteenths: each was folded, also where it lay inside."""
    tiny = torch.tensor([1e-9, -3e-7, 0.1, -2.5])
    for ends in ((-1e6, 1e6, False, False), (-1e6, float("inf"), False, False), (-float("inf"), 1e6, False, False)):
        assert torch.equal(within(tiny, torch.float32, ends), tiny)
    assert within(torch.tensor([1.5e6]), torch.float32, (-1e6, 1e6, False, False)) == 5e5


def test_harness_new_tells_which_words_it_read_and_which_not(tmp_path: Path, call: Any) -> None:
    ws = worded(tmp_path, of_g="usually between -1 and 1", shape_constraints=["x[:, 0] <= g[:, 0]", "D <= 64"])
    told = call("harness", "new", "--no-rehearsal", ws.root).stdout
    x = "0.001 <= x and x <= 100 (`values lie between 0.001 and about 100`)"
    gain = "0 < gain and gain <= 10 (`positive, never more than 10`)"
    assert f"limits read from words of SPEC.md: {x}; {gain}; where one means something else" in told
    assert "SPEC.md may limit g by `usually between -1 and 1`, which is not understood" in told
    assert "no draw is made to obey `x[:, 0] <= g[:, 0]` of SPEC.md's shape_constraints: where one breaks it, let test_in" in told
    data = json.loads(call("harness", "new", "--no-rehearsal", ws.root, "--json").stdout)
    assert set(data["worded"]) == {"x", "gain"} and data["unread"] == ["g by `usually between -1 and 1`"]
    assert data["unranged"] == [] and data["unheeded"] == ["x[:, 0] <= g[:, 0]"]


@pytest.mark.parametrize("constraint", ["0 <= label < D", "1 <= label <= S"])
def test_an_empty_axis_that_whole_numbers_point_into_is_tried(tmp_path: Path, constraint: str) -> None:
    """Such a call was left out, because no label is legal there; so nobody tried that it is refused."""
    ports = [tensor("x"), tensor("label", "int32", ("S",))]
    body = "## 9. Edge cases\n- S = 0, D = 0: the wrapper raises ValueError.\n"
    ws = placed(tmp_path, ports, body=body, shape_constraints=[constraint])
    make_inputs = make_inputs_of(ws)
    drawn = [make_inputs(told) for told in refusals(Maker(gather(ws)))]
    assert [0 in one["x"].shape for one in drawn] == [True, True]
