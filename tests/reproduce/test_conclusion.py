"""Innocent or suspect: what follows from two drifts, and which milder case is proposed."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.quickly import examples

from pypto_op.documents import schema
from pypto_op.reproduce import suite_patch
from pypto_op.reproduce.conclusion import ALIKE, judge_drift
from pypto_op.reproduce.suite_patch import Milder, candidates, first_mild, new_id, patch, patched
from pypto_op.vocabulary import Conclusion


def leaf(largest: float, mean: float | None = None, **more: Any) -> dict[str, Any]:
    mean = largest / 10 if mean is None else mean
    return {"name": "out", "max_abs_diff": largest, "max_rel_diff": largest, "mean_diff": mean, "all_close": False, **more}


def drift(*largest: float) -> dict[str, list[dict[str, Any]]]:
    return {f"twin{i}": [leaf(value)] for i, value in enumerate(largest)}


def test_a_kernel_that_drifts_like_honest_code_is_innocent() -> None:
    found = judge_drift(["mismatch"], [leaf(0.2)], drift(0.1, 0.15))
    assert found.conclusion is Conclusion.KERNEL_INNOCENT
    assert found.outputs[0].ratio == pytest.approx(0.2 / 0.15)
    assert "suite patch" in found.next_step


@pytest.mark.parametrize(
    ("reasons", "failing", "other", "words"),
    [
        (["mismatch"], [leaf(0.2)], drift(1e-4), "times as far"),
        (["mismatch"], [leaf(0.2)], drift(0.0), "to the last bit"),
        (["mismatch"], [leaf(0.2, mean=0.19)], drift(0.2), "times as far"),
        (
            ["mismatch"],
            [leaf(0.2), {**leaf(9.0), "name": "lse"}],
            {"t": [leaf(0.2), {**leaf(0.01), "name": "lse"}]},
            "lse is off",
        ),
        (["non_finite", "mismatch"], [leaf(0.2)], drift(0.2), "non_finite"),
        (["mismatch"], [leaf(0.2, zero_output=True)], drift(0.2), "all zero"),
        (["mismatch"], [leaf(0.2, unwritten_elements=3)], drift(0.2), "unwritten"),
        (["mismatch"], [leaf(0.2, special_mismatch_count=1)], drift(0.2), "not finite"),
    ],
)
def test_everything_else_is_suspect(reasons: Any, failing: Any, other: Any, words: str) -> None:
    found = judge_drift(reasons, failing, other)
    assert found.conclusion is Conclusion.KERNEL_SUSPECT
    assert words in found.summary
    assert "pypto-precision-debug" in found.next_step


positive = st.floats(1e-30, 1e30)


@given(kernel=positive, twins=st.lists(positive, min_size=1, max_size=5))
def test_more_drift_of_the_twins_never_incriminates(kernel: float, twins: list[float]) -> None:
    innocent = judge_drift(["mismatch"], [leaf(kernel)], drift(*twins)).conclusion is Conclusion.KERNEL_INNOCENT
    assert innocent == (kernel / max(twins) <= ALIKE or (kernel / 10) / (max(twins) / 10) <= ALIKE)
    if innocent:
        assert judge_drift(["mismatch"], [leaf(kernel / 2)], drift(*twins, kernel)).conclusion is Conclusion.KERNEL_INNOCENT


# -- the milder case ------------------------------------------------------------------------------------------------

CASE = {"id": "L5_scale_A_1e4", "level": "L5", "shape": {"M": 4}, "dtype": "float32", "atol": 1e-3, "rtol": 1e-3, "seed": 42}


def test_scales_shrink_tenfold_down_to_one_and_the_least_change_comes_first() -> None:
    milder = candidates({**CASE, "scale_A": 1e4, "offset": {"b": -300.0}, "eps": 1e-6, "flag": True, "draw_zone": "huge"})
    assert [(m.knob, m.after) for m in milder] == [
        ("scale_A", 1000.0),
        ("offset_b", -30.0),
        ("scale_A", 100.0),
        ("offset_b", -3.0),
        ("scale_A", 10.0),
        ("scale_A", 1.0),
    ]
    assert milder[1].change == {"offset": {"b": -30.0}}


def test_gaps_of_a_cancellation_widen() -> None:
    recipe = [{"input": "x", "pattern": "mirror", "gap": 1e-4}, {"input": "y", "pattern": "repeat"}]
    stress = {"target": "out", "expression": "a - b", "relative_gap": 1e-5, "seed": 42, "recipe": recipe, "reached": 1e5}
    milder = candidates({**CASE, "cancellation_stress": stress})
    assert [m.after for m in milder] == [1e-3, 1e-2, 0.1, 0.3]
    changed = milder[1].change["cancellation_stress"]
    assert [step["gap"] for step in changed["recipe"]] == [1e-2, 1e-2]
    assert "reached" not in changed and stress["reached"] == 1e5
    plain = candidates({**CASE, "cancellation_stress": {k: v for k, v in stress.items() if k != "recipe"}})
    assert [m.after for m in plain][:2] == [1e-4, 1e-3] and plain[0].knob == "relative_gap"


def test_inputs_that_nothing_enlarges_get_a_scale_of_their_own() -> None:
    milder = candidates({**CASE, "draw_zone": "normal"}, ["x", "w"])
    assert [(m.knob, m.after, m.change) for m in milder[:4]] == [
        ("draw_scale", 0.5, {"draw_scale": 0.5}),
        ("draw_scale_x", 0.5, {"draw_scale": {"x": 0.5}}),
        ("draw_scale_w", 0.5, {"draw_scale": {"w": 0.5}}),
        ("draw_scale", 0.25, {"draw_scale": 0.25}),
    ]
    assert [m.knob for m in candidates({**CASE, "draw_scale": 1e2}, ["x", "w"])] == ["draw_scale", "draw_scale"], (
        "down to 1 first"
    )
    assert candidates({**CASE, "draw_scale": {"x": 0.5}}, ["x", "w"])[1].change == {"draw_scale": {"x": 0.5, "w": 0.5}}


def test_the_scales_of_a_recipe_shrink() -> None:
    recipe = [{"input": "x", "pattern": "mirror", "gap": 0.0, "scale": 30.0}, {"input": "y", "pattern": "repeat"}]
    milder = candidates({**CASE, "cancellation_stress": {"expression": "a @ b", "recipe": recipe, "reached": 1e5}})
    scaled = [m for m in milder if m.knob == "recipe_scale"]
    assert [m.after for m in scaled] == [3.0, 1.0, 0.5, 0.25]
    assert [step.get("scale") for step in scaled[1].change["cancellation_stress"]["recipe"]] == [1.0, None]
    assert "reached" not in scaled[0].change["cancellation_stress"]


def test_a_case_without_numbers_has_no_milder_form() -> None:
    assert candidates({**CASE, "draw_zone": "huge", "causal": True, "scale_A": 0.5}) == []


def test_the_first_candidate_with_a_margin_is_taken() -> None:
    milder = [Milder({"s": v}, "s", 1e4, v) for v in (1e3, 1e2, 10.0)]
    drifts = [{"t": [{"max_violation": v}], "u": [{"max_violation": 0.0}]} for v in (1.5, suite_patch.ENOUGH, 0.01)]
    assert first_mild(milder, drifts) == milder[1]
    assert first_mild(milder[:1], drifts[:1]) is None
    assert first_mild(milder[:1], [{"t": [{"max_violation": None}]}]) is None


@pytest.mark.parametrize(
    ("name", "knob", "before", "after", "wanted"),
    [
        ("L5_scale_A_1e4", "scale_A", 1e4, 10.0, "L5_scale_A_10"),
        ("L5_scale_A_1e+04", "scale_A", 1e4, 100.0, "L5_scale_A_100"),
        ("L5_big_10000_fp16", "scale", 10000, 1000.0, "L5_big_1000_fp16"),
        ("L2_p0_1_float32", "scale", 1.0, 0.25, "L2_p0_1_float32_scale_0.25"),
        ("L5_huge", "scale", 1e15, 1e6, "L5_huge_scale_1e6"),
        ("L5_cancellation_stress_out_bestfound", "gap", 1e-5, 1e-3, "L5_cancellation_stress_out_gap_0.001"),
        ("L5_21e4x", "scale", 1e4, 10.0, "L5_21e4x_scale_10"),
    ],
)
def test_the_new_id_tells_the_new_magnitude(name: str, knob: str, before: float, after: float, wanted: str) -> None:
    assert new_id(name, Milder({}, knob, before, after), [name]) == wanted
    assert new_id(name, Milder({}, knob, before, after), [name, wanted]) == f"{wanted}_2"


knobs = st.dictionaries(st.sampled_from(["scale_A", "offset", "gain"]), st.floats(1.5, 1e30), min_size=1)


@pytest.mark.slow
@settings(max_examples=examples(40))
@given(knobs=knobs, key=st.sampled_from(["cases", "test_cases"]), place=st.integers(0, 2))
def test_a_patch_touches_one_case_and_never_a_tolerance(knobs: dict[str, float], key: str, place: int) -> None:
    others = [{**CASE, "id": f"other_{i}"} for i in range(2)]
    case = {**CASE, **knobs}
    suite = {"schema_version": 1, "op": "op", "total_modules": 1, key: [*others[:place], case, *others[place:]]}
    before = copy.deepcopy(suite)
    for milder in candidates(case):
        proposal = patch(suite, case, milder)
        after = patched(suite, proposal)
        assert suite == before, "never applied by itself"
        changed = after[key][place]
        assert (changed["atol"], changed["rtol"]) == (1e-3, 1e-3)
        assert {k for k in changed if changed[k] != case.get(k)} == {"id", milder.knob}
        assert [c for i, c in enumerate(after[key]) if i != place] == others
        assert schema.findings(after, "adversarial_suite") == []
        assert proposal["diff"].count("\n+") >= 2
        json.dumps(proposal, allow_nan=False)
