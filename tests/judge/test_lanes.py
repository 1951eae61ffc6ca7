"""Which cases share a process: a function of the suite alone."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pypto_op.judge.running.lanes import CASES_PER_LANE, MOST, lanes_of, onto_the_first, restricted

SIZES = st.dictionaries(st.sampled_from(["N", "D"]), st.integers(1, 6), min_size=1)
CASE = st.fixed_dictionaries(
    {"shape": SIZES, "dtype": st.sampled_from([{"default": "float32"}, "float16"]), "precision": st.booleans()},
    optional={"eps": st.sampled_from([1e-6, 0.5]), "zone": st.sampled_from(["huge", "tiny"])},
)
SUITE = st.lists(CASE, max_size=60).map(lambda cases: [{**case, "id": f"case{i}"} for i, case in enumerate(cases)])


def lane_of(cases: list[dict[str, Any]]) -> dict[int, int]:
    return {position: number for number, lane in enumerate(lanes_of(cases)) for position in lane}


@given(SUITE)
def test_every_case_has_one_lane_in_the_order_of_the_suite(cases: list[dict[str, Any]]) -> None:
    lanes = lanes_of(cases)
    assert sorted(position for lane in lanes for position in lane) == list(range(len(cases)))
    assert all(lane == sorted(lane) and lane for lane in lanes)
    assert len(lanes) <= max(1, min(MOST, len(cases) // CASES_PER_LANE))


@given(SUITE)
def test_cases_of_equal_sizes_share_a_lane_whatever_else_differs(cases: list[dict[str, Any]]) -> None:
    lane, home = lane_of(cases), {}
    for position, case in enumerate(cases):
        sizes = json.dumps(case["shape"], sort_keys=True)
        assert home.setdefault(sizes, lane[position]) == lane[position]


@given(SUITE)
def test_names_knobs_and_the_order_of_keys_have_no_say(cases: list[dict[str, Any]]) -> None:
    bare = [{"shape": dict(reversed(case["shape"].items())), "precision": case["precision"]} for case in cases]
    assert lanes_of(bare) == lanes_of(cases)


@given(SUITE, st.sets(st.integers(0, 59)))
def test_a_selection_keeps_the_lanes_of_the_suite(cases: list[dict[str, Any]], chosen: set[int]) -> None:
    selected = [position for position in range(len(cases)) if position in chosen]
    whole = lane_of(cases)
    kept = restricted(lanes_of(cases), selected)
    assert sorted(position for lane in kept for position in lane) == selected
    for lane in kept:
        assert lane == sorted(lane) and len({whole[position] for position in lane}) == 1
    assert len({whole[lane[0]] for lane in kept}) == len(kept)
    assert [*map(len, kept)] == sorted(map(len, kept), reverse=True)


@given(SUITE)
def test_lanes_are_even_where_shapes_are(cases: list[dict[str, Any]]) -> None:
    """Distinct shapes: the longest lane has at most one case (two trials) more than the shortest."""
    apart = [{**case, "shape": {"N": i + 1}} for i, case in enumerate(cases)]
    load = [sum(2 if apart[position]["precision"] else 1 for position in lane) for lane in lanes_of(apart)]
    assert not load or max(load) - min(load) <= 2


@given(SUITE)
def test_each_dtype_has_cases_of_both_kinds(cases: list[dict[str, Any]]) -> None:
    """The second seed is called on the tensors of the first in every second precision case of a dtype."""
    onto = onto_the_first(cases)
    for dtype in ({"default": "float32"}, "float16"):
        places = [i for i, case in enumerate(cases) if case["dtype"] == dtype and case["precision"]]
        assert [place in onto for place in places] == [i % 2 == 0 for i in range(len(places))]
    assert all(cases[place]["precision"] for place in onto)
