"""Operators of a reference that change nothing for the task's inputs are found, reached, or told."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from pypto_op.triton.run.inputs import division, domains, idle, narrow, reaching, sides, signed

DRAWS = torch.Generator().manual_seed(0)
EVEN = torch.rand(9, 20, generator=DRAWS)
NORMAL = torch.randn(9, 20, generator=DRAWS)
WHOLE = torch.randint(0, 9, (9, 20), generator=DRAWS)
BINS = torch.linspace(-1, 1, 5)
BYTES = torch.arange(-60, 60, dtype=torch.int8)


def _shallow(watch: idle.Idle) -> list[str]:
    """Return what was idle but for sides that few numbers never come to (`test_domains`, `test_narrow`)."""
    return [key for key in watch.found if not any(f"({side})" in key for side in (domains.DEEP, *narrow.SIDES))]


BESIDE = "add (beside a small number), add (guard of zero)"


@pytest.mark.parametrize(
    ("forward", "found"),
    [(lambda: F.relu6(EVEN), "hardtanh (lower), hardtanh (upper)"), (lambda: EVEN.clone().relu_(), "relu (lower)"),
     (lambda: F.leaky_relu(EVEN), "leaky_relu (lower)"), (lambda: torch.clamp(WHOLE, max=100), "clamp (upper)"),
     (lambda: torch.clamp(NORMAL, -9, 1), "clamp (lower)"), (lambda: torch.clamp(NORMAL, min=NORMAL - 1), "clamp (lower)"),
     (lambda: torch.nan_to_num(NORMAL), "nan_to_num"), (lambda: F.hardswish(EVEN), "hardswish (lower), hardswish (upper)"),
     (lambda: F.huber_loss(EVEN, EVEN.flip(0)), "huber_loss"), (lambda: torch.relu(EVEN - 2), "relu (upper)"),
     (lambda: torch.where(NORMAL > 50, EVEN, NORMAL), "gt, where"), (lambda: (WHOLE != -1).long(), "ne"),
     (lambda: EVEN < 9, "lt"), (lambda: NORMAL.isnan(), "isnan"), (lambda: EVEN.floor(), "floor (lower)"),
     (lambda: torch.remainder(EVEN, 0.5), "remainder (lower)"), (lambda: F.softshrink(EVEN), "softshrink (lower)"),
     (lambda: torch.histc(EVEN, 4, 0.0, 1.0), "histc (lower), histc (upper)"),
     (lambda: NORMAL.softmax(1), "softmax (far below), softmax (far)"),
     (lambda: F.softplus(NORMAL, beta=2.0), "softplus (far)"), (lambda: NORMAL.argmax(1), "argmax (one sign), argmax (ties)"),
     (lambda: NORMAL.min(0)[0], "min (one sign), min (ties)"), (lambda: (NORMAL * 1000).tanh(), ""),
     (lambda: torch.where(NORMAL > EVEN, NORMAL, EVEN), "gt (equal)"), (lambda: NORMAL.exp() > EVEN, "gt (zero against zero)"),
     (lambda: torch.bucketize(NORMAL, BINS), "bucketize (equal)"), (lambda: torch.cdist(NORMAL, EVEN), "cdist (equal)"),
     (lambda: torch.xlogy(EVEN, EVEN), "xlogy (zero)"),
     (lambda: F.binary_cross_entropy(EVEN, EVEN), "binary_cross_entropy (zero)"),
     (lambda: torch.atan2(EVEN, EVEN), "atan2 (lower)"), (lambda: EVEN**3, "pow (lower)"), (lambda: EVEN**2, ""),
     (lambda: torch.copysign(NORMAL, EVEN), "copysign (lower)"),
     (lambda: torch.copysign(EVEN, -1.0), ""), (lambda: torch.logit(EVEN), ""),
     (lambda: torch.logit(EVEN, 1e-6), "logit (lower), logit (upper)"), (lambda: torch.logaddexp(EVEN, EVEN), "logaddexp (far)"),
     (lambda: F.max_pool1d(NORMAL, 2, return_indices=True)[1], "max_pool2d_with_indices (ties)"),
     (lambda: torch.sort(NORMAL, stable=True, dim=1)[1], "sort (equal elements), sort (ties)"),
     (lambda: NORMAL.sort(1).indices, "sort (equal elements)"),
     (lambda: NORMAL.topk(3).values, "topk (equal elements), topk (one sign)"),
     (lambda: NORMAL.median(1).values, "median (equal elements)"), (lambda: NORMAL.median(), "median (equal elements)"),
     (lambda: WHOLE.float().repeat(1, 2).sort(1).values, "sort (one sign)"),
     (lambda: WHOLE.float().repeat(1, 2).kthvalue(3, 1).values, ""),
     (lambda: F.nll_loss(NORMAL, WHOLE[:, 0], ignore_index=10, reduction="sum").long(), "nll_loss (without 10)"),
     (lambda: F.embedding_bag(WHOLE + 1, EVEN.T, padding_idx=0, mode="sum"), "embedding_bag (without 0)"),
     (lambda: EVEN + 1 + 1e-8, BESIDE), (lambda: EVEN.sum(1).add_(1e-6), BESIDE), (lambda: NORMAL.exp() < 1.0, ""),
     (lambda: NORMAL.cumsum(1) < 1.0, "lt (at the number)"), (lambda: NORMAL.cumsum(1) < 0.9, ""),
     (lambda: EVEN + 1 + 1e-12, "add (guard of zero)"),
     (lambda: (NORMAL * EVEN) >= 0.5, "ge (at the number)"), (lambda: (NORMAL * 0.3) >= 0.5, ""), (lambda: NORMAL < 1.0, ""),
     (lambda: EVEN + 1e-3, ""), (lambda: EVEN + 1 + 0.5, ""), (lambda: WHOLE + 1e-6, ""),
     (lambda: EVEN.sqrt(), "sqrt (root of zero)"), (lambda: NORMAL.norm(dim=1), "linalg_vector_norm (root of zero)"),
     (lambda: F.embedding_bag(WHOLE, EVEN.T, mode="sum"), ""), (lambda: WHOLE.sqrt(), ""),
     (lambda: NORMAL.round(), "round (halfway)"), (lambda: ((NORMAL * 8 - 0.5) / 2).round(), "round (halfway)"),
     (lambda: (NORMAL * 0.3).round(), "round (halfway by a scale)"),
     (lambda: (NORMAL / NORMAL.amax()).round(), "amax (one sign), round (halfway by a scale)"),
     (lambda: NORMAL.round(decimals=1), "round (halfway)"),
     (lambda: torch.nan_to_num(NORMAL.masked_fill(NORMAL > 1, torch.nan)), "nan_to_num"),
     (lambda: EVEN.norm(1), "linalg_vector_norm (lower), linalg_vector_norm (root of zero)"),
     (lambda: EVEN.prod(1), "prod (factor of zero), prod (lower)"),
     (lambda: torch.div(EVEN, 0.5, rounding_mode="floor"), "div (lower)"), (lambda: EVEN.erf(), "erf (lower)"),
     (lambda: EVEN / 0.5, ""), (lambda: torch.fmax(EVEN, NORMAL), "fmax (nan)"), (lambda: NORMAL.nansum(), "nansum (nan)"),
     (lambda: BYTES + BYTES, "add (wraps)"), (lambda: BYTES * BYTES, ""), (lambda: BYTES // 9 * BYTES, ""),
     (lambda: WHOLE.mul(9).to(torch.int8), "to_copy (wraps)"), (lambda: WHOLE.mul(99).to(torch.int8), ""),
     (lambda: EVEN.scatter_reduce(0, WHOLE, EVEN, "amax"), "scatter_reduce (unnamed place)"),
     (lambda: EVEN.scatter_reduce(0, WHOLE // 2, EVEN, "amax"), ""),
     (lambda: (NORMAL / 4).round(decimals=1), "round (halfway)"), (lambda: (NORMAL / 3).round(decimals=2), ""),
     (lambda: NORMAL.cummax(1), "cummax (ties)"), (lambda: WHOLE.cummin(0), ""),
     (lambda: NORMAL.amax(1, keepdim=True) == NORMAL, "amax (one sign), eq (twice in a row)"),
     (lambda: NORMAL.max() != NORMAL, "max (one sign), ne (twice in a row)"),
     (lambda: WHOLE.amax(1, keepdim=True) == WHOLE, ""), (lambda: NORMAL == EVEN, "eq"),
     (lambda: EVEN.sub(EVEN) >= EVEN.mul(0), "ge, ge (close)"),
     (lambda: torch.isclose(EVEN, NORMAL), "eq, le, le (close), le (zero against zero), ne"),
     (lambda: (NORMAL @ EVEN.T) > 0, "gt (zero against zero)"), (lambda: (NORMAL * 0) > 0, "gt"),
     (lambda: F.max_pool1d(EVEN.gt(0.5) * 0.5, 2), "max_pool2d_with_indices (one sign)"),
     (lambda: F.max_pool1d(EVEN * EVEN.gt(0.4), 2), "max_pool2d_with_indices (one sign), max_pool2d_with_indices (ties)"),
     (lambda: (EVEN - NORMAL).abs() > 0.1, ""), (lambda: (EVEN - NORMAL).abs() < 1e-6, "lt, lt (close)"),
     (lambda: EVEN.asin(), "asin (lower)"), (lambda: torch.linalg.det(NORMAL[:8, :8]), "linalg_det (zero)"),
     (lambda: (EVEN + 1).cummax(1), "cummax (one sign), cummax (ties)"),
     (lambda: (EVEN + 1).sort(1), "sort (equal elements), sort (one sign)"),
     (lambda: F.embedding_bag(WHOLE, EVEN.T + 1, mode="max"), "embedding_bag (one sign)"),
     (lambda: F.max_pool1d(EVEN + 1, 2), "max_pool2d_with_indices (one sign), max_pool2d_with_indices (ties)"),
     (lambda: (NORMAL * EVEN.gt(0.5)) >= EVEN.gt(0.5) * NORMAL.abs(), ""),
     (lambda: (WHOLE - 1).amax(1), "amax (one sign)"), (lambda: (WHOLE - 1).argmax(1), "argmax (one sign)"),
     (lambda: (WHOLE - 7).min(0).values, "min (one sign)"), (lambda: (WHOLE - 1).amin(), "amin (one sign)"),
     (lambda: WHOLE.amax(1), ""), (lambda: (NORMAL - 9).amax(1), ""),
     (lambda: NORMAL.sub(99).logsumexp(1), "logsumexp (far)"), (lambda: (EVEN + 1).amax(1), "amax (one sign)"),
     (lambda: (WHOLE[:1] - 8).amax(0), ""), (lambda: WHOLE >> 1, "rshift (lower)"),
     (lambda: torch.complex(EVEN, NORMAL).angle(), "angle (lower)"), (lambda: torch.complex(NORMAL, EVEN).angle(), ""),
     (lambda: torch.complex(EVEN, NORMAL).sgn(), "sgn (zero)"), (lambda: WHOLE % 9, "remainder (turn of 9)"),
     (lambda: WHOLE % 8, ""), (lambda: WHOLE % WHOLE.add(1), "")],
)  # fmt: skip
def test_what_changes_nothing_is_found(forward: Callable[[], torch.Tensor], found: str) -> None:
    with idle.Idle(Path(__file__)) as watch:
        forward()
    assert ", ".join(sorted(key.rpartition(" in ")[0] for key in _shallow(watch))) == found
    assert all(key.endswith(f"in line {forward.__code__.co_firstlineno}") for key in watch.found)


@pytest.mark.parametrize(
    "forward",
    [lambda: F.relu(NORMAL), lambda: NORMAL.clone().clamp_(max=1), lambda: F.huber_loss(EVEN, EVEN.flip(0), delta=0.1),
     lambda: torch.exp(EVEN), lambda: [F.relu(one) for one in (EVEN, NORMAL)], lambda: WHOLE > 3, lambda: NORMAL < 0,
     lambda: WHOLE // 2,
     lambda: torch.histc(NORMAL, 4), lambda: EVEN[0, 0] < 9, lambda: (NORMAL - 9).max(), lambda: WHOLE.argmax(),
     lambda: F.nll_loss(NORMAL, WHOLE[:, 0], ignore_index=int(WHOLE[0, 0]))],
    ids=["relu", "in_place", "huber", "no_bound", "one_of_two_calls", "both_answers", "floats", "places", "its_own_range", "one",
         "of_all", "tied", "met"],
)  # fmt: skip
def test_what_changes_something_is_not(forward: Callable[[], object]) -> None:
    with idle.Idle(Path(__file__)) as watch:
        forward()
    assert not _shallow(watch)


@pytest.mark.parametrize(("task", "found"), [("F.cross_entropy(x, t)", 0), ("F.cross_entropy(x, t, ignore_index=-100)", 1)])
def test_a_number_that_is_always_left_out_counts_where_the_task_says_it(task: str, found: int, tmp_path: Path) -> None:
    (tmp_path / "op_torch.py").write_text(task, encoding="utf-8")
    with idle.Idle(tmp_path / "op_torch.py") as watch:
        F.nll_loss(NORMAL, WHOLE[:, 0])
    assert len(watch.found) == found


def test_each_of_two_operators_in_a_line_is_known() -> None:
    with idle.Idle(Path(__file__)) as watch:
        _ = (EVEN.mul(0) + 1e-6) / (EVEN.add(1) + 1e-6)
    (idles,) = {name for name in watch.found if sides.GUARD in name}
    (busy,) = {name for name in watch.busy if sides.GUARD in name}
    assert idles == f"{busy}, place 2"


def test_whole_numbers_alone_are_known() -> None:
    with idle.Idle(Path(__file__)) as watch:
        _ = torch.clamp(WHOLE, max=100), WHOLE != -1, torch.relu(EVEN), NORMAL >= 8
    assert [*watch.found.values()] == [True, True, False, False]


def test_ties_count_only_where_whole_numbers_are_returned_that_are_said_to_be_the_first() -> None:
    with idle.Idle(Path(__file__)) as watch:
        found = NORMAL.mul(2.0**18).sub(2.0**21).max(1)
    assert watch.idle(found[0]) == {}
    assert [*watch.idle(list(found))] == [*watch.found] != []
    with watch:
        NORMAL.sort(1)
    assert watch.idle(list(found)) == {}


def test_torch_does_not_load_its_compiler_for_it() -> None:
    lines = [
        "import sys, torch",
        "from pathlib import Path",
        "from pypto_op.triton.run.inputs.idle import Idle",
        "with Idle(Path('x')):",
        "    torch.ones(2).relu()",
        "sys.exit('torch._dynamo.eval_frame' in sys.modules)",
    ]
    folder = Path(idle.__file__).parents[4]
    assert subprocess.run([sys.executable, "-c", "\n".join(lines)], cwd=folder, check=False).returncode == 0


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
    assert {*found["meet ignored"][1][found["meet ignored"][1] != WHOLE].tolist()} == {-100}
    within = dict(reaching.meeting([NORMAL, WHOLE + 5], {"ne in line 3": True}, [0.0, 3.0, -100.0, 5000.0]))["meet within"][1]
    assert {0, 3} <= {*within.reshape(-1).tolist()} <= {*range(14)}
    assert "meet ignored" not in dict(reaching.meeting([NORMAL, WHOLE], {"ne in line 3": True}, [7.0]))


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


def test_an_operator_that_picks_elements_is_known() -> None:
    for forward, picks in ((lambda: NORMAL.amax(1), True), (lambda: NORMAL.topk(3), True), (lambda: NORMAL.sum(1), False)):
        with idle.Idle(Path(__file__)) as watch:
            forward()
        assert watch.picks is picks


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


@pytest.mark.parametrize("sign", [1, -1])
def test_half_of_the_whole_numbers_of_both_signs_have_one(sign: int) -> None:
    (found, floats) = signed.of_sign([WHOLE - 3, NORMAL], sign)
    assert bool((found[:4] * sign > 0).all()) and torch.equal(found[5:], WHOLE[5:] - 3) and torch.equal(floats, NORMAL)
    assert found.min() >= -3 and found.max() <= 5
    assert signed.of_sign([WHOLE, NORMAL], sign) is None


def test_whole_numbers_of_a_wide_range_become_alike() -> None:
    wide = torch.randint(-500, 70000, (9, 20), generator=DRAWS)
    (found, floats) = signed.alike([wide, NORMAL])
    assert 2 <= found.unique().numel() <= 6 and found.min() == wide.min() and bool((found <= wide).all())
    assert torch.equal(floats, NORMAL) and signed.alike([torch.arange(50), WHOLE % 3]) is None


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


def test_gross_passes_leave_idle_what_is_no_overflow() -> None:
    with idle.Idle(Path(__file__)) as watch:
        watch.found = {}
    before = {"eq in line 3": False, "softmax (far) in line 4": False, "softmax (far below) in line 4": False}
    assert watch.still_idle(before, NORMAL, gross=True) == {"eq in line 3": False}
    assert watch.still_idle(before, NORMAL, gross=False) == {}


def test_whole_numbers_meet_those_of_the_files() -> None:
    found = reaching.meeting([NORMAL, WHOLE], {"ne in line 3": True}, [-1.0, 0.5, 77.0])
    every, above, below, _ = (whole for _, (_, whole) in found)
    assert {-1, 77, 8, 9, 10, 19, 20, 21} <= {*every.flatten().tolist()}
    assert int(above.min()) == 0 and int((above != WHOLE).sum()) <= 45
    assert int(below.min()) == -1 and int(below.max()) == 8
    assert not list(reaching.meeting([WHOLE], {"relu in line 3": False}, [1.0]))


def test_what_stays_idle_is_said() -> None:
    assert idle.told([]) == idle.told(["softmax (far) in line 4"]) == []
    assert idle.told(["relu in line 3"])[0].startswith("of the reference relu in line 3 changed nothing in any pass")


@pytest.mark.parametrize(
    ("forward", "found"),
    [(lambda x: x.sort(1).values, True), (lambda x: x >= x.kthvalue(3, 1, keepdim=True).values, True),
     (lambda x: x.gather(1, x.topk(2, 1).indices), False), (lambda x: x.topk(2, 1), True),
     (lambda x: x.topk(2, 1).indices.int(), True), (lambda x: x.topk(2, 1).indices.float(), False)],
)  # fmt: skip
def test_equal_elements_count_where_nobody_looks_at_their_places(forward: Callable[[torch.Tensor], Any], found: bool) -> None:
    with idle.Idle(Path(__file__)) as watch:
        outputs = forward(NORMAL)
    assert any(f"({sides.ALIKE})" in key for key in watch.still_idle(None, outputs, gross=False)) is found


def test_places_are_an_order_s_where_it_may_name_any_of_equal_elements() -> None:
    for stable, count in ((False, 1), (True, 0)):
        with idle.Idle(Path(__file__)) as watch:
            outputs = NORMAL.sort(stable=stable, dim=1)
        assert len(watch.orders([*outputs])) == count


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
    assert [name.split()[2] for name in ways if name.startswith(reaching.WITHIN)] == ["0", "1", *[reaching.WEIGHTS] * 2]
    assert bool((ways.pop("within opposed weights too")[0] <= 0).all())
    for name, (one, other) in ways.items():
        product = one @ other.T
        assert bool((product < 0).all()) is (reaching.WEIGHTS not in name)
        assert bool((product.amax(1) < -89).all()) is (name.split()[0] == reaching.REACH and reaching.WEIGHTS not in name)
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
