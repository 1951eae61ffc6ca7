"""Inputs that give an operator something to do which changed nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.triton.run.inputs.test_idle import DRAWS, EVEN, NORMAL, WHOLE

from pypto_op.triton.run import moves
from pypto_op.triton.run.case import Case
from pypto_op.triton.run.inputs import division, domains, filled, idle, reaching, sides
from pypto_op.triton.run.inputs.comes import Comes


def ways(inputs: list[torch.Tensor], found: dict[str, bool]) -> dict[str, list[torch.Tensor]]:
    return {name.strip(): moved for name, moved in reaching.reaching(inputs, found)}


def test_a_root_of_zero_asks_for_zeros_alone() -> None:
    found = ways([NORMAL, WHOLE], {"sqrt (root of zero) in line 3": False})
    assert [*found] == ["within zeros", "within zero"]
    assert not bool(found["within zero"][0][4].any())
    more = ways([NORMAL, WHOLE], {"sqrt (root of zero) in line 3": False, "relu (lower) in line 4": False})
    assert {"within zeros", "within level", "reach both floats"} <= more.keys()


def test_a_number_that_is_left_out_is_met() -> None:
    idles = {"nll_loss (without -100) in line 3": True, "relu in line 4": False}
    found = dict(reaching.meeting([NORMAL, WHOLE], idles, [7.0]))
    assert {*found["meet ignored 1"][1][found["meet ignored 1"][1] != WHOLE].tolist()} == {-100}
    within = dict(reaching.meeting([NORMAL, WHOLE + 5], {"ne in line 3": True}, [0.0, 3.0, -100.0, 5000.0]))["meet within"][1]
    assert {0, 3} <= {*within.reshape(-1).tolist()} <= {*range(14)}
    assert "meet ignored 1" not in dict(reaching.meeting([NORMAL, WHOLE], {"ne in line 3": True}, [7.0]))


def test_a_number_that_one_tensor_alone_may_hold_is_met_there() -> None:
    found = dict(reaching.meeting([WHOLE, WHOLE.clone()], {"ne (without 255) in line 3": True}, []))
    assert [bool((one == 255).any()) for one in found["meet ignored 1"]] == [False, True]


def test_gains_that_a_reference_bounds_are_turned() -> None:
    names = {name for name, _ in reaching.reaching([NORMAL], {"clamp (upper) in line 3": False}, weights=True)}
    assert {"reach gains", "reach opposite gains"} <= names
    assert "reach gains" not in dict(reaching.reaching([NORMAL], {"clamp (upper) in line 3": False}))
    layer = torch.nn.LayerNorm(4).requires_grad_()
    filled.turn(layer, filled.turn_of("reach opposite gains"))
    assert layer.weight.tolist() == [-8.0] * 4 and filled.turn_of("within tiny 8") == ""


def test_inputs_reach_what_was_idle() -> None:
    found = ways([EVEN, EVEN, WHOLE], {"relu in line 3": False})
    even, _, whole = found["reach both floats"]
    assert even.min() == pytest.approx(-8) and even.max() == pytest.approx(8) and torch.equal(whole, WHOLE)
    assert found["reach more"][0].max() == pytest.approx(128)
    zero, levels = found["within zero"][0], found["within level"][0]
    assert bool((zero == 0).all(1).any() and (zero == 0).all(0).any()) and bool((zero != 0).any())
    assert len(levels.unique()) <= 6 and float((levels - EVEN).abs().max()) <= 0.25
    found = ways([NORMAL], {"nan_to_num in line 3": False})
    assert found["reach both floats"][0].abs().max() == pytest.approx(2**14)
    assert bool(found["reach lost"][0].isnan().any()) and bool(found["reach lost"][0].isinf().any())
    small, large = ways([WHOLE.to(torch.uint8), WHOLE], {"clamp in line 3": True})["reach both"]
    assert (int(small.max()), int(large.min()), int(large.max())) == (255, -(2**14), 2**14)
    assert [*ways([WHOLE], {"relu in line 3": False})] == ["within missing"]
    assert ways([WHOLE.flatten().sort().values, torch.randperm(9)], {"clamp in line 3": False}) == {}


def test_signs_and_nan_stand_in_other_places_of_each_tensor() -> None:
    one, two = ways([EVEN, EVEN + 0.1], {"div (lower) in line 3": False})["within mirrored"]
    assert torch.equal(one.abs(), EVEN) and bool((one * two < 0).any() and (one * two > 0).any() and (one[0] <= 0).all())
    one, two = ways([EVEN, NORMAL], {"fmax (nan) in line 3": False})["reach nan"]
    assert bool(one.isnan().any() and two.isnan().any()) and not bool((one.isnan() & two.isnan()).any())
    assert "within mirrored" not in ways([NORMAL], {"relu in line 3": False})


def test_rows_far_below_zero_are_among_what_is_reached() -> None:
    more = ways([EVEN], {"softmax (far) in line 3": False})["reach more"][0]
    assert bool((more[0] < -115).all() and (more[:, 0] < -115).all()) and float(more.max()) == pytest.approx(128)
    beside = ways([NORMAL, EVEN], {"xlogy (zero) in line 3": False})
    assert torch.equal(beside["within zero"][1], EVEN) and bool((beside["within zeros"][1] == 0).all(1).any())
    zeros = ways([EVEN[0].sort().values], {"relu in line 3": False})["within zero"][0]
    assert torch.equal(zeros, EVEN[0].sort().values)


def test_elements_of_two_tensors_become_equal_and_the_least_whole_number_is_missing() -> None:
    other = torch.rand(9, 20, generator=DRAWS)
    found = ways([EVEN, other, WHOLE], {"gt (equal) in line 3": False})
    for target in (0, 1):
        one, two, _ = found[f"within equal {target}"]
        assert int((one == two).sum()) >= 45 and bool((one == two)[:2].all()) and not torch.equal(one, two)
    assert int(found["within missing"][2].min()) == 1 and int(found["within missing"][2].max()) == 8
    assert "reach equal 0" in ways([EVEN, other], {"cdist (equal) in line 3": False})
    edges, values = ways([torch.linspace(0, 1, 9), EVEN], {"bucketize (equal) in line 3": False})["within equal 1"]
    assert bool(torch.isin(values, edges).any()) and torch.equal(edges, torch.linspace(0, 1, 9))


def test_whole_numbers_go_up_or_down_where_the_reference_takes_only_that() -> None:
    found = ways([WHOLE], {"where in line 3": True})
    (both,), (up,), (down,) = (found[f"reach {way}"] for way in ("both", "up", "down"))
    assert (int(both.min()), int(up.min()), int(down.min())) == (-(2**14), 0, -(2**14))
    assert (int(both.max()), int(up.max()), int(down.max())) == (2**14, 2**14, 8)


def test_the_way_that_comes_to_most_is_taken_once() -> None:
    known: dict[str, set[str]] = {}
    comes = {1: {"a"}, 2: {"a", "b"}, 3: {"c"}, 4: set()}
    asked: list[int] = []

    def come_to(_: str, moved: int) -> set[str]:
        asked.append(moved)
        return comes[moved]

    def taken(idle: str) -> tuple[str, int | None]:
        return reaching.chosen(((f"kind {number}", number) for number in comes), idle, known, come_to)

    assert [taken("abc"), taken("c"), taken(""), taken("c")] == [("kind 2", 2), ("kind 3", 3), ("", None), ("", None)]
    assert asked == [1, 2, 3, 4]


def test_what_comes_there_within_the_range_is_taken_before_what_only_shows_gross_errors() -> None:
    comes = {"within level": {"eq"}, "reach lost": {"eq", "nan"}, "reach both": {"eq"}}
    known: dict[str, set[str]] = {}

    def taken(idle: list[str]) -> tuple[str, str | None]:
        return reaching.chosen(((name, name) for name in comes), idle, known, lambda name, _: comes[name])

    assert [taken(["eq", "nan"]), taken(["nan"]), taken(["eq"])] == [
        ("within level", "within level"),
        ("reach lost", "reach lost"),
        ("reach both", "reach both"),
    ]
    names = [name.split()[0] for name, _ in reaching.reaching([NORMAL, WHOLE], {"eq in line 3": False, "ne in line 4": True})]
    assert names == sorted(names, reverse=True) and {*names} == {"within", "reach"}


def test_whole_numbers_meet_those_of_the_files() -> None:
    found = reaching.meeting([NORMAL, WHOLE], {"ne in line 3": True}, [-1.0, 0.5, 77.0])
    every, above, below, _ = (whole for _, (_, whole) in found)
    assert {-1, 77, 8, 9, 10, 19, 20, 21} <= {*every.flatten().tolist()}
    assert int(above.min()) == 0 and int((above != WHOLE).sum()) <= 45
    assert int(below.min()) == -1 and int(below.max()) == 8
    assert not list(reaching.meeting([WHOLE], {"relu in line 3": False}, [1.0]))


def test_few_numbers_meet_them_a_second_time_whatever_is_idle_by_then() -> None:
    """A mean over too many elements comes within the tolerance once in a hundred draws."""
    idle = {"ne in line 3": True}
    comes = Comes(torch.device("cpu"), [77.0], lambda name, moved, seed: {*idle})
    first, second = (comes.by(reaching.MEET, 0, [WHOLE], left, 0) for left in (idle, {}))
    assert first[0] == second[0] == f"{reaching.MEET} all" and bool((second[1][0] == 77).any())
    few, many = Case(0, outputs=[torch.zeros(())]), Case(0, outputs=[torch.zeros(8)])
    assert not any(moves.may_move(reaching.MEET, case) for case in (few, many))
    few.met = many.met = True
    assert moves.may_move(reaching.MEET, few) and not moves.may_move(reaching.MEET, many)


@pytest.mark.parametrize("number", [7.0, 15.0, 127.0, 255.0])
@pytest.mark.parametrize("axis", [0, 1])
def test_codes_make_scales_exact_and_quotients_halves(number: float, axis: int) -> None:
    """However a kernel divides: by the scale, by its reciprocal, or by the number after a product."""
    key = "round (halfway by a scale) in line 3"
    draws = torch.randn(32, 32, generator=torch.Generator().manual_seed(1))
    ((name, (moved,)),) = (
        way for way in reaching.reaching([draws], {key: False}, lambda: division.divisors([])) if way[0] == f"codes {number:g}"
    )
    top = moved.abs().amax(axis, keepdim=True)
    codes = moved / (top / number)
    assert torch.equal(codes, moved * (number / top)) and torch.equal(codes, moved * (1 / (top * (1 / number))))
    assert not sides.is_seldom_halfway(codes) and sides.is_seldom_halfway(draws / (draws.abs().amax(axis, keepdim=True) / number))
    assert name.startswith(reaching.CODES) and float(moved.abs().max()) <= float(draws.abs().max())


@pytest.mark.parametrize("back", [True, False])
def test_links_that_lead_one_way_meet_numbers_and_form_no_ring(back: bool) -> None:
    """A kernel that follows links one by one is as right as one that doubles them, but not around a ring."""
    places = torch.arange(40)
    links = (torch.rand(4, 40, generator=torch.Generator().manual_seed(1)) * places).long()
    links = links if back else places + (39 - places).mul(0.5).long().expand(4, 40)
    ways = dict(reaching.meeting([links], {"ne in line 3": True}, [7.0, 20.0]))
    (found,) = ways["meet within"]
    assert bool((found <= places if back else found >= places).all()) and bool((found != links).any())


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("elements", [12, 13])
def test_the_first_and_the_last_element_of_rows_peak_along_any_axis(axis: int, elements: int) -> None:
    """The greatest of the first of blocks, and that of the last one, are far off then, whatever their size."""
    shape = [3, 4, 5]
    shape[axis] = elements
    draws = torch.randn(shape, generator=torch.Generator().manual_seed(1))
    ways = reaching.reaching([draws], {f"logsumexp ({side}) in line 3": False for side in (domains.STEEP, domains.PEAKS)})
    come = []
    for name, (moved,) in ways:
        with idle.Idle(Path(__file__)) as watch:
            moved.logsumexp(axis)
        come += [name] if sum(f"({side})" in word for word in watch.busy for side in domains.SIDES) == 2 else []
    assert {*come} >= {f"{reaching.REACH} peaks {axis - 3} {step:g}" for step in domains.STEPS}


@pytest.mark.parametrize(("number", "comes"), [(127.0, False), (255.0, True)])
def test_codes_with_a_zero_point_come_halfway_only_where_their_scale_is_exact(number: float, comes: bool) -> None:
    """Where it is not, a quotient falls on either side by how a device divides: a right kernel was refused on an H200."""
    draws = torch.randn(32, 64, generator=torch.Generator().manual_seed(1))
    ways = reaching.reaching([draws], {"round (halfway by a scale) in line 3": False}, lambda: [number])
    ((moved,),) = [found for name, found in ways if name == f"codes {number:g}"]
    with idle.Idle(Path(__file__)) as watch:
        least = moved.amin(-1, keepdim=True)
        ((moved - least) / ((moved.amax(-1, keepdim=True) - least) / 255)).round()
    assert any(name.startswith("round (halfway by a scale)") for name in watch.busy) is comes


@pytest.mark.parametrize(
    ("forward", "side", "kind"),
    [
        (lambda x: x / (x.norm(dim=-1, keepdim=True) + 1e-6), sides.BESIDE, reaching.WITHIN),
        (lambda x: x / (x.std(-1, keepdim=True) + 1e-5), sides.BESIDE, reaching.WITHIN),
        (lambda x: x / (x.abs().sum(-1, keepdim=True) + 1e-8), sides.BESIDE, reaching.WITHIN),
        (lambda x: x.cumsum(-1) < 1.0, sides.AT, reaching.EXACT),
        (lambda x: x @ x.T >= 2.0, sides.AT, reaching.EXACT),
    ],
)
def test_small_numbers_and_numbers_compared_with_are_met(forward: Callable[[Any], Any], side: str, kind: str) -> None:
    x = torch.randn(16, 64, generator=torch.Generator().manual_seed(1))

    def met(given: Any) -> set[str]:
        with idle.Idle(Path(__file__)) as watch:
            forward(given)
        return {name for name in watch.busy if f"({side})" in name}

    with idle.Idle(Path(__file__)) as watch:
        forward(x)
    wanted = {name: whole for name, whole in watch.found.items() if f"({side})" in name}
    assert len(wanted) == 1
    assert any(name.startswith(kind) and met(given[0]) == {*wanted} for name, given in reaching.reaching([x], wanted))


def test_sums_of_products_come_below_zero() -> None:
    whole, far = {"amax (one sign) in line 3": False}, {"logsumexp (far below) in line 3": False}
    ways = dict(reaching.reaching([NORMAL, NORMAL.clone()], whole | far, weights=True))
    assert [name.split()[2] for name in ways if name.startswith(reaching.WITHIN)] == ["0", "1", *[filled.WEIGHTS] * 2]
    assert bool((ways.pop("within opposed weights too")[0] <= 0).all())
    for name, (one, other) in ways.items():
        product = one @ other.T
        assert bool((product < 0).all()) is (filled.WEIGHTS not in name)
        assert bool((product.amax(1) < -89).all()) is (name.split()[0] == reaching.REACH and filled.WEIGHTS not in name)
    assert not dict(reaching.reaching([NORMAL], whole)) and not dict(reaching.reaching([EVEN, EVEN.clone()], {}))
    ((_, (one, other)), *_) = reaching.reaching([EVEN, EVEN.clone()], whole)
    assert torch.equal(one, EVEN) and torch.equal(other, EVEN)  # what is never negative stays so


def test_whole_numbers_below_a_bound_are_zero_too() -> None:
    ways = dict(reaching.reaching([WHOLE + 1], {"clamp (lower) in line 3": True}))
    (lengths,) = ways["reach both zeros"]
    assert 0 < int((lengths == 0).sum()) < lengths.numel() // 2 and bool((lengths < 0).any())
    (steps,) = dict(reaching.reaching([torch.arange(1, 30)], {"clamp (lower) in line 3": True}))["reach both zeros"]
    assert bool((steps.diff() > 0).all())  # what is sorted stays so


def test_a_ring_goes_round() -> None:
    places = torch.tensor([3, 17, 40, 41])
    found = ways([NORMAL, places], {"remainder (turn of 64) in line 3": True})
    assert found["within turned 1 64"][1].tolist() == [3, 17, 104, 105]
    assert not any("turned" in name for name in ways([NORMAL, places.to(torch.int8)], {"remainder (turn of 99) in line 3": True}))


def test_logarithms_of_nothing_stand_in_one_and_in_both() -> None:
    scores = [NORMAL[0].clone(), EVEN[0].clone()]
    found = ways([NORMAL, *scores], {"isinf in line 3": False})
    rows, one, other = found["reach hidden (20,)"]
    assert torch.equal(rows, NORMAL) and bool((one.isinf() & other.isinf()).any() and (one.isinf() & ~other.isinf()).any())
    assert "reach hidden (20,)" not in ways([NORMAL, *scores], {"relu in line 3": False})


def test_a_guard_meets_zeros_in_a_mask_and_beside_it() -> None:
    mask = (EVEN > 0.5).float()
    for side, flags in ((sides.GUARD, True), (sides.ROOT, False)):
        found = ways([EVEN + 1, mask], {f"add ({side}) in line 3": False})
        assert ("within nothing" in found) is flags
        assert not flags or bool(((found["within nothing"][0] == 0) & (found["within nothing"][1] == 0)).all(1).any())


def test_stable_functions_are_tried_where_an_exponential_overflows() -> None:
    names = {f"{name} (far) in line 3": False for name in ("softplus", "log_sigmoid", "softmax", "sigmoid")}
    assert {name.split()[0] for name in reaching.within_reason([NORMAL], names)} == {"softplus", "log_sigmoid"}


def test_scores_of_a_router_are_all_below_zero() -> None:
    found = ways([NORMAL, NORMAL[0].clone()], {"topk (one sign) in line 3": False})
    assert bool((found["reach opposed 1 8"][0].sigmoid() + found["reach opposed 1 8"][1] < 0).all())


def test_a_segment_between_bounds_is_empty() -> None:
    bounds, places = torch.tensor([0, 3, 5, 9, 12]), torch.arange(5)
    found = ways([NORMAL, bounds, places], {"gt in line 3": False})
    assert found["within missing"][1].tolist() == [0, 3, 3, 9, 12]
    assert torch.equal(found["within missing"][2], places)


def test_two_inputs_are_alike_or_opposite_where_a_margin_is_not_reached() -> None:
    found = ways([NORMAL, NORMAL.flip(0).contiguous()], {"relu (lower) in line 3": False})
    for name, sign in (("within close 0", 1), ("within opposite 0", -1)):
        one, other = found[name]
        assert float(torch.cosine_similarity(one, other, dim=1).mul(sign).min()) > 0.5 and not torch.equal(one, other)
    assert not any("opposite" in name for name in ways([NORMAL], {"relu (lower) in line 3": False}))


def test_a_least_scale_is_met_by_rows_below_it_and_not_by_zeros_alone() -> None:
    ((_, (moved,)), *_) = reaching.reaching([NORMAL], {"clamp (lower) in line 3": False})
    rows = moved.abs().amax(-1)
    assert bool(((rows > 0) & (rows < 1e-5)).any()) and bool((rows == 0).any())


def test_a_count_of_nothing_is_reached_in_one_tensor_before_both_hold_one_value() -> None:
    """Then an edge leaves a node that none reaches; with one value throughout, nothing names such a node."""
    ends = [torch.cat([torch.arange(10), torch.tensor([3, 0, 4, 1, 5, 0, 2, 6])]) for _ in range(2)]
    idle = {"eq in line 8": False, "eq (a small count) in line 8": True, "masked_fill in line 8": False}
    names = [name for name, _ in reaching.reaching([torch.randn(10, 4), *ends], idle, lambda: [])]
    assert "within of one value" not in names
    assert names.index("within missing 2") < names.index("within once")
