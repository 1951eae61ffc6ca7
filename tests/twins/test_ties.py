"""What a golden decides on the way stays decided in float64, and where honest code parts at a tie both sides are right."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.quickly import examples

from pypto_op.backends.worker.reference import truths
from pypto_op.twins.ties import nearest, own_rounding, shifted


def ways(golden: Any, *values: Any) -> list[list[torch.Tensor]]:
    found, facts = truths(golden, list(values), Path("op_golden.py"))
    each = len(found) // facts["ways"]
    return [found[n * each : (n + 1) * each] for n in range(facts["ways"])]


def noise(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def quantised(x: torch.Tensor, residual: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    h = (x.float() + residual.float()).to(x.dtype)
    y = h.float() * torch.rsqrt(h.float().square().mean(-1, keepdim=True) + 1e-6)
    scale = y.abs().amax(-1, keepdim=True) / 127.0
    return h, torch.clamp(torch.round(y / scale), -128, 127).to(torch.int8), scale


def quantised_without_the_rounding(x: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
    h = x.float() + residual.float()
    y = h * torch.rsqrt(h.square().mean(-1, keepdim=True) + 1e-6)
    return torch.clamp(torch.round(y / (y.abs().amax(-1, keepdim=True) / 127.0)), -128, 127).to(torch.int8)


def test_a_16_bit_rounding_that_is_used_further_stays_in_the_truth() -> None:
    x, residual = noise(64, 256).half(), noise(64, 256, seed=1).half()
    native = quantised(x, residual)
    exact, *others = ways(quantised, x, residual)
    assert int((exact[1] != native[1]).sum()) <= 2
    plain = quantised_without_the_rounding(x, residual)
    missed = nearest(plain, [native[1], exact[1], *(way[1] for way in others)]) != plain
    assert int(missed.sum()) > 20, "without the rounding whole steps differ"
    h = exact[0]
    assert torch.equal(h, x.double() + residual.double()), "an output's own last rounding is not taken"


def test_a_small_value_beside_large_ones_has_its_own_rounding() -> None:
    x = noise(64, 64)
    found = ways(lambda x: torch.exp(8.0 * x) > 0.001, x)
    exponential = torch.exp(8.0 * x.double())
    told = (exponential < 0.00099) | (exponential > 0.00101)
    assert float(exponential.max()) > 1e8, "rounding of the large ones reaches beyond the bound"
    for (way,) in found:
        assert torch.equal(way[told].bool(), (exponential > 0.001)[told])


@pytest.mark.slow
def test_one_over_scale_is_an_honest_quantisation() -> None:
    steps = 0
    for seed in range(6):
        x, residual = noise(128, 300, seed=seed).half(), noise(128, 300, seed=seed + 50).half()
        h, q, scale = quantised(x, residual)
        y = h.float() * torch.rsqrt((h.float() * h.float()).sum(-1, keepdim=True) * (1 / 300) + 1e-6)
        other = torch.clamp(torch.round(y * (1.0 / scale)), -128, 127).to(torch.int8)
        steps += int((other != q).sum())
        answers = [q, *(way[1] for way in ways(quantised, x, residual))]
        assert torch.equal(nearest(other, answers), other)
    assert steps > 0, "the two forms part somewhere, or this shows nothing"


def test_a_wrong_quantisation_is_near_no_answer() -> None:
    x, residual = noise(64, 256).half(), noise(64, 256, seed=1).half()
    q = quantised(x, residual)[1]
    answers = [q, *(way[1] for way in ways(quantised, x, residual))]
    for wrong in (q.roll(1, 0), torch.clamp(q + 1, max=127), (q.float() * 0.98).round().to(torch.int8)):
        assert int((nearest(wrong, answers) != wrong).sum()) > q.numel() // 10


def cut_off(k: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    scale = k.abs().amax(-1, keepdim=True) / 127.0
    return (k / scale).clamp(-127, 127).to(torch.int8), scale


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_quotient_of_16_bits_may_be_cut_off_before_it_is_rounded_to_them(dtype: torch.dtype) -> None:
    k = noise(40, 64).to(dtype)
    usual, scale = cut_off(k)
    answers = [way[0] for way in ways(cut_off, k)]
    kernel = (k.float() / scale.float()).clamp(-127, 127).to(torch.int8)
    assert bool((kernel != usual).any()) and torch.equal(nearest(kernel, [usual, *answers]), kernel)
    greatest = usual.abs() == 127
    for wrong in (torch.where(greatest, usual.sign() * 126, usual), torch.where(usual == 0, -1, usual).to(torch.int8)):
        assert not torch.equal(nearest(wrong, [usual, *answers]), wrong)


def test_near_ties_of_an_order_may_fall_either_way() -> None:
    def gate(x: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        values, chosen = torch.topk(torch.softmax(x.float() @ w.float(), -1), 4, dim=-1)
        return values, chosen.to(torch.int32)

    x, w = noise(256, 64).half(), noise(64, 32, seed=1).half()
    x[7], w[:, 3] = x[7], w[:, 5] * (1 + 2**-11)  # two experts almost alike
    chosen = gate(x, w)[1]
    answers = [chosen, *(way[1] for way in ways(gate, x, w))]
    logits = (x.double() @ w.double()).float()
    honest = torch.topk(torch.exp(logits - logits.amax(-1, keepdim=True)), 4, dim=-1).indices.to(torch.int32)
    assert torch.equal(nearest(honest, answers), honest)
    assert not torch.equal(nearest(chosen.roll(1, -1), answers), chosen.roll(1, -1))


def test_of_many_scores_that_are_nearly_alike_any_may_be_the_best() -> None:
    """Noise of 256 draws that are nearly alike was refused where another kernel rounded the scores by a bit."""

    def best(u: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
        return torch.argmax(z - torch.log(-torch.log(u)), -1).to(torch.int32)

    u, z = 2e-6 - 6e-10 * noise(64, 256).abs(), 1e-8 * noise(64, 256, seed=1)
    golden = best(u, z)
    answers = [golden, *(way[0] for way in ways(best, u, z))]
    last_bits = 2.0**-22 * torch.randint(-1, 2, u.shape, generator=torch.Generator().manual_seed(2))
    honest = torch.argmax(z - torch.log(-torch.log(u)) + last_bits, -1).to(torch.int32)
    assert int((honest != golden).sum()) > 16, "the two forms part, or this shows nothing"
    assert torch.equal(nearest(honest, answers), honest)
    far = torch.argmin(-torch.log(-torch.log(u)), -1).to(torch.int32)
    assert int((nearest(far, answers) != far).sum()) > 56


def test_of_scores_that_are_made_of_equal_inputs_the_first_is_the_best() -> None:
    """The last of equal scores passed, because all that lies within rounding of the best might be taken."""

    def best(u: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
        return torch.argmax(z - torch.log(-torch.log(u)), -1).to(torch.int32)

    u, z = 0.5 + 0.4 * torch.tanh(noise(64, 64)), noise(64, 64, seed=1)
    u, z = torch.cat([u, u.flip(-1)], -1), torch.cat([z, z.flip(-1)], -1)
    answers = [best(u, z), *(way[0] for way in ways(best, u, z))]
    assert torch.equal(nearest(answers[0], answers), answers[0])
    assert bool((nearest(127 - answers[0], answers) != 127 - answers[0]).all())


def best_before(score: torch.Tensor, steps: torch.Tensor, said: torch.Tensor) -> torch.Tensor:
    """Return the first row that reaches the maximum of a column, as a golden that promises the first of equal ones writes it."""
    candidates = score.float().unsqueeze(2) + steps.float() + 0.0 * said.float().unsqueeze(1)
    best = candidates.amax(dim=1)
    rows = torch.arange(steps.shape[0]).reshape(1, -1, 1)
    return torch.where(candidates == best.unsqueeze(1), rows, steps.shape[0]).amin(dim=1).to(torch.int32)


def test_the_place_of_a_maximum_that_is_found_by_equality_may_be_a_neighbour_within_rounding() -> None:
    """A right Viterbi step that adds what is said of a state before the maximum was refused."""
    score, steps, said = 1e5 * noise(256, 1, seed=7) + noise(256, 32), noise(32, 32, seed=1), 30.0 * noise(256, 32, seed=2)
    golden = best_before(score, steps, said)
    honest = (score.unsqueeze(2) + (steps + said.unsqueeze(1))).argmax(dim=1).to(torch.int32)
    answers = [golden, *(way[0] for way in ways(best_before, score, steps, said))]
    assert 0 < int((honest != golden).sum()) < 64, "the two forms part somewhere, or this shows nothing"
    assert torch.equal(nearest(honest, answers), honest)
    for wrong in (golden.roll(1, 0), (golden + 1) % 32, best_before(score, steps.T, said)):
        assert int((nearest(wrong, answers) != wrong).sum()) > golden.numel() // 2


def test_equal_numbers_without_rounding_have_one_first() -> None:
    values = torch.randint(0, 4, (64, 16), generator=torch.Generator().manual_seed(0)).float()
    found = ways(lambda x: torch.where(x == x.amax(1, keepdim=True), torch.arange(16), 16).amin(1), values)
    assert all(torch.equal(way[0].long(), values.argmax(1)) for way in found)


def nucleus(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Keep the probabilities down to the one before which less than 0.7 lies; count them."""
    p = torch.softmax(x.float(), -1)
    ordered = torch.sort(p, dim=-1, descending=True).values
    front = torch.cumsum(ordered, -1) - ordered
    stays = p >= torch.where(front < 0.7, ordered, torch.full_like(ordered, 2.0)).amin(-1, keepdim=True)
    kept = torch.where(stays, p, torch.zeros_like(p))
    return kept / kept.sum(-1, keepdim=True), stays.sum(-1).to(torch.int32)


@pytest.mark.parametrize("equal", [3, 9, 20, 31])
@pytest.mark.parametrize("stable", ["first", "last"])
@pytest.mark.parametrize("count", [1, 2, 12])
def test_many_equal_values_may_be_taken_from_either_end(equal: int, stable: str, count: int) -> None:
    """Behind a relu half of a row is 0; a kernel takes the places of such in order, or against it."""
    x = torch.relu(noise(6, 32))
    x[:, :equal] = 0.0
    x = x.gather(1, torch.rand(x.shape, generator=torch.Generator().manual_seed(1)).argsort(1))
    for sign in (1.0, -1.0):
        values = sign * x
        order = values.flip(1) if stable == "last" else values
        places = order.sort(dim=1, descending=True, stable=True).indices[:, :count]
        mine = 31 - places if stable == "last" else places
        answers = [way[0].long() for way in ways(lambda x: torch.topk(x, count)[1], values)]  # noqa: B023 - called here
        assert torch.equal(nearest(mine, answers), mine)
        wrong = values.sort(dim=1).indices[:, :count]
        told = values.gather(1, wrong) < values.gather(1, mine)
        assert int((nearest(wrong, answers) != wrong)[told].sum()) >= 0.8 * int(told.sum())


@pytest.mark.parametrize("equal", [*range(2, 10), 20])
def test_few_equal_values_may_stand_in_any_place(equal: int) -> None:
    x = noise(4, 32)
    x[:, 3 : 3 + equal] = 9.0
    answers = [way[0].long() for way in ways(lambda x: torch.topk(x, 2)[1], x)]
    for first, second in itertools.permutations(range(3, 3 + equal), 2):
        mine = torch.tensor([[first, second]] * 4)
        assert torch.equal(nearest(mine, answers), mine)


def test_zeros_that_a_softmax_makes_may_come_in_the_order_of_its_logits() -> None:
    """Who takes the k largest logits tells apart what is 0 behind a softmax; beyond 256 equal values only the ends count."""
    for wide in (64, 300):
        x = noise(8, wide) * 1e30
        answers = [way[0].long() for way in ways(lambda x: torch.topk(torch.softmax(x, -1), 4)[1], x)]
        mine = torch.topk(x, 4)[1]
        assert torch.equal(nearest(mine, answers), mine) == (wide == 64)
        least = torch.topk(x, 1, largest=False)[1].expand(-1, 4)
        assert bool((nearest(least, answers)[:, 0] != least[:, 0]).all()), "the greatest is 1, and no tie"


def test_a_threshold_is_no_tie_for_the_value_that_it_was_taken_from() -> None:
    x = noise(64, 96)
    probs, count = nucleus(x)
    found = ways(nucleus, x)
    least = torch.where(probs > 0, probs, torch.full_like(probs, 2.0)).amin(-1, keepdim=True)
    short = torch.where(probs > least, probs, torch.zeros_like(probs))  # without the value at the threshold
    for place, right, wrong in ((0, probs, short / short.sum(-1, keepdim=True)), (1, count, count - 1)):
        near = nearest(wrong, [right, *(way[place].to(right.dtype) for way in found)])
        missed = ~torch.isclose(near.double(), wrong.double(), rtol=1e-4, atol=1e-6)
        assert bool(missed.reshape(64, -1).any(-1).all()), "in every row"


THRESHOLDS = {
    "median": lambda x: x.median(dim=-1, keepdim=True).values,
    "median of all": torch.median,
    "kthvalue": lambda x: x.kthvalue(5, dim=-1).values.unsqueeze(-1),
    "topk": lambda x: x.topk(3, dim=-1).values[:, -1:],
    "topk of columns": lambda x: torch.topk(x, 3, dim=0).values[-1:],
    "sort": lambda x: torch.sort(x, dim=-1).values[:, 4:5],
    "msort": lambda x: torch.msort(x)[2:3],
    "mode": lambda x: x.mode(dim=-1, keepdim=True).values,
    "max": lambda x: x.max(dim=-1, keepdim=True).values,
    "max of two": lambda x: torch.max(x.roll(1, -1) * 0.5, x.roll(2, -1)),
}


@pytest.mark.parametrize("threshold", THRESHOLDS.values(), ids=THRESHOLDS)
@pytest.mark.parametrize("computed", [False, True])
def test_equal_values_reach_a_threshold_that_is_one_of_them(threshold: Any, computed: bool) -> None:
    """A kernel that lost all but one of the values that equal a median passed: asking for an order had set them apart."""
    x = torch.randint(0, 5, (6, 9), generator=torch.Generator().manual_seed(3)).float() / 3

    def golden(x: torch.Tensor) -> torch.Tensor:
        values = x.exp() * x if computed else x
        return (values >= threshold(values)).float()

    for (way,) in ways(golden, x):
        assert torch.equal(way, golden(x).double())


def test_what_lies_beside_a_threshold_by_a_rounding_stays_free() -> None:
    def above(x: torch.Tensor) -> torch.Tensor:
        p = torch.softmax(x.float(), -1)
        return (p >= p[:, :1]).to(torch.int32)

    x = noise(64, 96)
    x[:, 5] = x[:, 0] - 1e-7 * x[:, 0].abs()
    answers = [way[0] for way in ways(above, x)]
    assert {int(way[7, 5]) for way in answers} == {0, 1} and {int(way[7, 0]) for way in answers} == {1}


def test_exact_comparisons_have_one_answer() -> None:
    grid = (noise(64, 64) * 32).round() / 32
    found = ways(lambda x: (x.ge(0.5), (x * 2).floor().to(torch.int32), x.float().to(torch.float16)), grid)
    assert len(found) == 1, "values of few bits carry no rounding, so nothing lies near a tie"


def test_a_golden_that_decides_nothing_has_one_answer() -> None:
    found = ways(lambda x: torch.softmax(x.float(), -1).to(x.dtype), noise(8, 64).half())
    assert len(found) == 1
    assert found[0][0].dtype is torch.float64


def test_a_golden_whose_path_depends_on_the_dtype_is_widened_as_before() -> None:
    def golden(x: torch.Tensor) -> torch.Tensor:
        y = x.half() if x.dtype is torch.float32 else x.floor()
        return (y.float() * 3).round()

    assert torch.equal(ways(golden, noise(8, 8))[0][0], (noise(8, 8).double().floor() * 3).round())


@pytest.mark.parametrize("form", ["copy", "item", "method", "in_place"])
def test_writing_into_a_16_bit_buffer_rounds(form: str) -> None:
    def golden(x: torch.Tensor) -> torch.Tensor:
        buffer = torch.zeros(x.shape, dtype=torch.bfloat16)
        third = x / 3
        if form == "copy":
            buffer.copy_(third)
        elif form == "item":
            buffer[:] = third
        else:
            buffer = third.to(torch.bfloat16)
        return (buffer.round_() if form == "in_place" else buffer).float() * 7

    x = noise(64, 64) * (10 if form == "in_place" else 1)
    exact = ways(golden, x)[0][0]
    rounded = (x.double() / 3).to(torch.bfloat16).double()
    assert torch.equal(exact, (rounded.round() if form == "in_place" else rounded) * 7)


@settings(max_examples=examples(60))
@given(st.integers(0, 10**6), st.sampled_from([torch.float32, torch.float16, torch.int8]))
def test_the_nearest_lies_between_the_answers(seed: int, dtype: torch.dtype) -> None:
    draw = torch.Generator().manual_seed(seed)
    actual, *answers = [(torch.randn(7, 5, generator=draw) * 3).to(dtype) for _ in range(4)]
    chosen, stacked = nearest(actual, answers), torch.stack(answers)
    assert bool(((stacked.amin(0) <= chosen) & (chosen <= stacked.amax(0))).all())
    inside = (stacked.amin(0) <= actual) & (actual <= stacked.amax(0))
    assert torch.equal(chosen == actual, inside) if dtype.is_floating_point else not bool(((chosen == actual) & ~inside).any())


def test_nan_is_never_the_nearer_answer() -> None:
    usual, other = torch.tensor([1.0, torch.nan]), torch.tensor([torch.nan, 2.0])
    assert torch.equal(nearest(torch.tensor([5.0, 2.0]), [usual, other])[:1], torch.tensor([1.0]))


def test_a_twin_keeps_the_rounding_that_no_tie_explains() -> None:
    truth, beyond = torch.zeros(4, dtype=torch.float64), torch.ones(4, dtype=torch.float64)
    twin = torch.tensor([1.001, 0.001, 1.0, -0.001])
    assert torch.allclose(
        shifted(twin, own_rounding(twin, [truth, beyond]), truth), torch.tensor([0.001, 0.0, 0.0, -0.001]), atol=1e-6
    )


def _repeated(values: torch.Tensor, place: tuple[int, ...], dim: int) -> bool:
    row = values[tuple(slice(None) if axis == dim else at for axis, at in enumerate(place))].tolist()
    return len(set(row)) < len(row)


def _plainly(actual: torch.Tensor, answers: list[torch.Tensor], place: tuple[int, ...]) -> float:
    """Return what `nearest` says of one place, as its docstring has it."""
    mine, told = actual[place].item(), [answer[place].item() for answer in answers]
    if actual.is_floating_point():
        if not torch.isfinite(actual[place]):
            return mine if mine in told else told[0]
        return min(max(mine, min(told)), max(told))
    if mine not in told and not (min(told) <= mine <= max(told) and max(told) - min(told) <= 16):
        return told[0]
    taken = torch.equal(actual, answers[0])
    for dim in () if taken else range(actual.dim()):
        if _repeated(actual, place, dim) and not any(_repeated(answer, place, dim) for answer in answers):
            return told[0]
    return mine


@settings(max_examples=examples(60))
@given(st.integers(0, 10**6), st.sampled_from([2, 5, 40]), st.sampled_from([torch.int8, torch.int32, torch.float32]))
def test_nearest_is_what_it_says_place_by_place(seed: int, numbers: int, dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(seed)
    shape = (int(torch.randint(1, 4, (1,), generator=generator)), int(torch.randint(1, 8, (1,), generator=generator)))
    usual = torch.randint(0, numbers, shape, generator=generator).to(dtype)
    answers = [usual]
    for _ in range(3):  # most places agree, as they do where few values lie near a tie
        moved = torch.rand(shape, generator=generator) < 0.2
        answers.append(torch.where(moved, torch.randint(0, numbers, shape, generator=generator).to(dtype), usual))
    actual = torch.where(torch.rand(shape, generator=generator) < 0.3, answers[1] + 1, answers[2])
    if dtype.is_floating_point:
        actual[torch.rand(shape, generator=generator) < 0.1] = torch.inf
    found = nearest(actual, answers)
    for place in itertools.product(*map(range, shape)):
        assert found[place].item() == _plainly(actual, answers, place), (actual, answers, place)


def dequantised(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """Return the product of the codes of x, one step for each row, with whole weights."""
    step = x.float().abs().amax(-1, keepdim=True) / 127.0
    return (torch.round(x.float() / step) @ w.float()) * step


def test_codes_at_ties_may_fall_either_way_one_by_one_within_a_sum() -> None:
    """What a way does to all codes says little about a sum of some: a product with 1 / step was refused."""
    x, w = noise(16, 64, seed=3), torch.randint(-127, 128, (64, 48), generator=torch.Generator().manual_seed(4))
    x = x.clamp(-2.0, 2.0)
    x[:, 0], x[3, 5], x[3, 9], x[3, 20] = 127.0 / 32, 7.5 / 32, 11.5 / 32, -20.5 / 32  # the step is 1 / 32: three ties in a row
    step = x.abs().amax(-1, keepdim=True) / 127.0
    answers = [dequantised(x, w), *(way[0] for way in ways(dequantised, x * (1.0 + 2.0**-23), w))]
    codes = torch.round(x / step)
    for subset in itertools.product((0, 1), repeat=3):
        honest = codes.clone()
        for place, up, low in zip((5, 9, 20), subset, (7, 11, -21), strict=True):
            honest[3, place] = low + up
        out = (honest @ w.float()) * step
        assert torch.allclose(nearest(out, answers), out, rtol=1e-5, atol=1e-4)
    for wrong in (((codes + 1.0) @ w.float()) * step, (torch.trunc(x / step) @ w.float()) * step):
        missed = ~torch.isclose(nearest(wrong, answers), wrong, rtol=1e-5, atol=1e-4)
        assert float(missed.float().mean()) > 0.8, "rows without a tie have no such room"
