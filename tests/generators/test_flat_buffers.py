"""Lengths of whole buffers: one of 0, one that is far larger than another, and a bound of their ratio far above its default."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from benchmarks import fresh, fresh_kernels
from tests.generators.test_draws import made as made_of
from tests.generators.test_draws import placed, tensor, with_inputs

from pypto_op.documents.knobs import SCALE, ZONE
from pypto_op.generators.cases import suite as suite_cases
from pypto_op.generators.cases import values
from pypto_op.generators.operator.sources import gather
from pypto_op.generators.rehearsing.rehearsal import Offers, rehearse
from pypto_op.workspace import OpWorkspace

BUFFERS = ("param", "grad", "m", "v")
WRONG = {
    "L3_empty_param_float32": ("zero_weight",),
    "L3_only_param_float32": ("zero_update", "decay_or"),
    "L3_empty_m_float32": ("eps_length",),
    "L3_only_grad_float32": ("one_uncapped",),
    "L3_cap_far_above_float32_beside_large_param": ("cap_at_most_10", "cap_at_most_100"),
}


def made(root: Path, call: Any) -> list[dict[str, Any]]:
    """Return the cases that `harness new` writes without trying them."""
    assert call("harness", "new", "--no-rehearsal", root).code == 0
    cases: list[dict[str, Any]] = json.loads((root / "eval" / "adversarial_suite.json").read_text(encoding="utf-8"))["cases"]
    return cases


@pytest.mark.slow
def test_each_flat_buffer_is_0_throughout_once_and_each_is_the_only_one_that_is_not(tmp_path: Path, call: Any) -> None:
    """A kernel that took a trust ratio of 0 for a weight of 0 passed."""
    zeros = {case["id"].rsplit("_", 1)[0]: case for case in made(fresh.workspace("lamb_step", tmp_path), call) if ZONE in case}
    for name in BUFFERS:
        assert zeros[f"L3_empty_{name}"][ZONE] == {name: "zero_row"}
        only = zeros[f"L3_only_{name}"]
        assert set(only[ZONE]) == set(BUFFERS) - {name} and only["decay"] == 0.0, "a decay keeps an update from 0"
    assert zeros["L3_only_grad"]["cap"] < 1.0, "a ratio of 1 that stands for zeros has the same bound"
    beside = zeros["L3_empty_m"]
    assert beside[SCALE]["grad"] < 1e-5 and beside["cap"] > 1e6, "a guard of 1e-6 shows beside a short update that no bound hides"
    other = made(fresh.workspace("layer_norm_bwd", tmp_path / "rows"), call)
    assert not [case["id"] for case in other if "_empty_" in case["id"] or "_only_" in case["id"]], "rows of zeros are enough"


RANGES = [(["0 <= gain"], 77.0), (["0 < gain", "gain <= 8"], None), ([], None), (["gain <= 2"], None)]


@pytest.mark.parametrize(("said", "far"), RANGES)
def test_a_scalar_is_tried_far_above_its_default_where_its_range_has_no_upper_end(
    said: list[str], far: float | None, tmp_path: Path
) -> None:
    """`min(gain, 10.0)` passed. Without a range a wrapper may refuse so large a number."""
    ports = [tensor("x"), {"name": "gain", "shape": [], "dtype": "float32"}]
    ws = placed(tmp_path, ports, shape_constraints=said, default_params={"gain": 1.0})
    found = [case["gain"] for case in suite_cases.cases(gather(ws)) if "_far_above" in case["id"]]
    assert found == ([] if far is None else [far])


@pytest.mark.slow
def test_a_bound_that_no_ordinary_case_reaches_is_tried_beside_one_large_tensor(tmp_path: Path) -> None:
    ws = OpWorkspace.at(fresh.workspace("lamb_step", tmp_path))
    sources = with_inputs(ws)
    maker = suite_cases.filled(sources)
    cases = [case for case in maker.cases if case["id"] in ("L2_base_float32", "L3_cap_far_above_float32")]
    done = rehearse(
        ws, cases, sources.spec.policy(), scalars=sources.scalars, offers=Offers(telling=partial(values.telling, maker))
    )
    [beside] = [case for case in done.cases if SCALE in case]
    assert beside["cap"] == 770.0 and beside[SCALE] == {"param": 1e4} and beside["decay"] == 0.0, done.dropped


@pytest.mark.sim
@pytest.mark.slow
def test_real_kernels_that_forget_them_are_refused_and_right_ones_are_not(tmp_path: Path, call: Any) -> None:
    root = fresh.workspace("lamb_step", tmp_path)
    cases = made(root, call)
    plain = next(case for case in cases if case["id"] == "L3_cap_far_above_float32")
    beside = {**plain, "id": f"{plain['id']}_beside_large_param", SCALE: {"param": 1e4}, "decay": 0.0}
    path = root / "eval" / "adversarial_suite.json"
    suite = json.loads(path.read_text(encoding="utf-8"))
    told = [case for case in [*suite["cases"], beside] if case["id"] in WRONG or case["level"] == "L2"]
    path.write_text(json.dumps({**suite, "cases": told}), encoding="utf-8")
    kernels = {kernel.id: kernel for kernel in fresh_kernels.kernels("lamb_step")}
    # A part of the suite: no drawn shape decides, and they are dear.
    of_right = [(name, ["--levels", "L3"], 0) for name in ("lamb_step", "bound_guards")]
    for name, part, code in [*of_right, *((name, ["--case", case], 1) for case, wrong in WRONG.items() for name in wrong)]:
        (root / "lamb_step_impl.py").write_text(kernels[name].text, encoding="utf-8")
        answer = call("verify", "--modes", "sim", *part, root)
        assert answer.code == code, f"{part} {name} {answer}"


@pytest.mark.parametrize(
    ("result", "named"),
    [
        ("x / (x * x).mean().sqrt().clamp(min=1e-3) + y", ["x", "y"]),
        ("x - y.amax()", ["x", "y"]),
        ("x - torch.sum(y)", ["x", "y"]),
        ("x - torch.sum(y, -1, keepdim=True)", []),
        ("x / (x * x).mean(-1, keepdim=True) + y", []),
        ("x / (x * x).mean(dim=-1, keepdim=True) + y", []),
        ("x + y * max(2, 3)", []),
    ],
)
def test_tensors_of_rows_are_0_throughout_where_a_whole_one_is_reduced(tmp_path: Path, result: str, named: list[str]) -> None:
    """An Adafactor step that divided by the length of its update first passed: no case had a gradient of 0."""
    ws = placed(tmp_path, [tensor("x"), tensor("y"), tensor("gate")], input_ranges={"gate": "(0, inf)"})
    ws.golden.write_text(f"def op_golden(x, y, gate):\n    return ({result}) * gate\n")
    found = [case for case in suite_cases.cases(gather(ws)) if "_empty_" in case["id"]]
    assert [case[ZONE] for case in found] == [{name: "zeros"} for name in named]
    for case, name in zip(found, named, strict=True):
        assert not made_of(ws, **case)[name].any(), "the judge takes what is all zero where a knob says so"
