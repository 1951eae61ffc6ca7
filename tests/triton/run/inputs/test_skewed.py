"""What is right for a task's own values alone is refused: in the later passes, inputs are moved within their range."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from tests.triton import lab

from pypto_op.triton.run.inputs import before, filled, skewed
from pypto_op.triton.run.judging import coarse

DRAWS = torch.Generator().manual_seed(0)
NORMAL = torch.randn(40, 50, generator=DRAWS)


@pytest.mark.parametrize(
    "tensor",
    [NORMAL, NORMAL.double(), NORMAL.half(), NORMAL.bfloat16(), NORMAL * 1e-9, NORMAL.tril(), NORMAL.t(), NORMAL[:, ::2],
     NORMAL[0].expand(7, 50), NORMAL.clamp(-1, 1)],
    ids=["float32", "float64", "float16", "bfloat16", "tiny", "triangle", "transposed", "with_gaps", "expanded", "of_asin"],
)  # fmt: skip
def test_what_lies_around_zero_is_moved_within_its_range(tensor: torch.Tensor) -> None:
    before = tensor.clone()
    (moved,) = skewed.skewed([tensor])
    assert torch.equal(tensor, before)
    assert (moved.shape, moved.stride(), moved.dtype) == (tensor.shape, tensor.stride(), tensor.dtype)
    wide, was = moved.double(), tensor.double()
    assert wide.mean() > was.mean() + 0.2 * was.std()
    assert was.min() <= wide.min() and wide.max() <= was.max()
    assert torch.equal(wide == 0, was == 0)
    order = was.flatten().argsort()
    assert bool((wide.flatten()[order].diff() >= 0).all() or (was == 0).any())


@pytest.mark.parametrize("move", [skewed.LOW, skewed.HIGH])
@pytest.mark.parametrize(
    "tensor", [NORMAL, NORMAL.half(), NORMAL.tril(), NORMAL[:, ::2]], ids=["float32", "half", "triangle", "gaps"]
)
def test_what_lies_around_zero_is_moved_to_one_side(tensor: torch.Tensor, move: str) -> None:
    (moved,) = skewed.skewed([tensor], move)
    rest, was = moved.double()[tensor != 0], tensor.double()[tensor != 0]
    assert bool((rest < 0).all() if move == skewed.LOW else (rest > 0).all())
    assert was.min() <= rest.min() and rest.max() <= was.max()
    assert bool((rest[was.argsort()].diff() >= 0).all())
    assert bool(rest.max() < 0.02)


@pytest.mark.parametrize("scale", [1.0, 0.05, 1e-3])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_floats_of_16_bits_come_nearer_to_zero_and_stay_different(dtype: torch.dtype, scale: float) -> None:
    tensor = (NORMAL[0] * scale).to(dtype)
    (moved,) = skewed.skewed([tensor], skewed.HIGH)
    assert len(moved.unique()) > 0.8 * len(tensor.unique())
    assert float(moved.max()) <= 1.01 * float(tensor.max()) * 2.0**-8
    if scale == 1.0:
        assert float(moved.float().square().mean()) < (1e-6 if dtype is torch.bfloat16 else 1e-5)


@pytest.mark.parametrize(
    "tensor", [NORMAL, NORMAL.half(), NORMAL.tril(), NORMAL.t()], ids=["float32", "half", "triangle", "columns"]
)
def test_far_inputs_are_larger_the_last_slices_the_largest_and_the_first_rows_far_below_zero(tensor: torch.Tensor) -> None:
    (moved,) = skewed.skewed([tensor], skewed.FAR)
    most = 512.0 if tensor.dtype is torch.float16 else 128.0
    assert (moved.shape, moved.stride(), moved.dtype) == (tensor.shape, tensor.stride(), tensor.dtype)
    assert 0.7 * most < moved.abs().max() <= most and torch.equal(moved == 0, tensor == 0)
    assert all(bool((last[last != 0] > 0.5 * most).all()) for last in (moved[-1, 1:], moved[1:, -1]))
    sunk = [bool((first[first != 0] < -0.8 * most).all()) for first in (moved[0], moved[:, 0])]
    assert sunk == [tensor.dtype is not torch.float16] * 2  # elements of 16 bits would become equal in one row of few
    assert torch.allclose(moved[1:-1, 1:-1] / moved[1, 1], tensor[1:-1, 1:-1] / tensor[1, 1], rtol=1e-2)


@pytest.mark.parametrize("move", [skewed.UP, skewed.LOW, skewed.HIGH, skewed.FAR])
@pytest.mark.parametrize("edges", [torch.linspace(-2, 2, 17), torch.linspace(2, -2, 17), NORMAL.sort(-1).values])
def test_what_is_sorted_stays_sorted_though_zero_is_within(edges: torch.Tensor, move: str) -> None:
    (moved,) = skewed.skewed([edges], move)
    steps = moved.diff(dim=-1)
    assert bool((steps >= 0).all() or (steps <= 0).all()) and not torch.equal(moved, edges)


@pytest.mark.parametrize("sides", [(1.0, 0.3), (0.3, 1.0)], ids=["upper", "lower"])
@pytest.mark.parametrize(
    "form",
    [lambda x: x, lambda x: x[0].expand(7, 50), lambda x: x.flatten().sort().values, lambda x: x[:2, :45].reshape(6, 3, 5)],
    ids=["plain", "expanded", "sorted", "short"],
)  # fmt: skip
def test_far_inputs_reach_both_ends_though_one_lies_nearer_to_zero(
    form: Callable[[torch.Tensor], torch.Tensor], sides: tuple[float, float]
) -> None:
    tensor = form(NORMAL * torch.where(NORMAL > 0, *sides))
    (moved,) = skewed.skewed([tensor], skewed.FAR)
    assert moved.max() > 0.95 * 128 and moved.min() < -0.8 * 128 and float(moved.abs().max()) < 128.1
    assert skewed.is_sorted(moved) is skewed.is_sorted(tensor) and moved.stride() == tensor.stride()


def test_a_single_row_is_not_sunk() -> None:
    (moved,) = skewed.skewed([NORMAL[:1]], skewed.FAR)
    assert moved.max() > 0
    assert [bool(skewed.sunk(torch.randn(rows, 20).half(), -16.0)[0].max() < -14) for rows in (127, 128)] == [False, True]
    constant = skewed.sunk(torch.ones(9, 20), -99.0)
    assert bool((constant[0] < -89).all() and (constant[:, 0] < -89).all() and (constant[1:, 1:] == 1).all())


def test_where_far_is_infinite_less_is_tried() -> None:
    (moved,), (half,) = skewed.skewed([NORMAL], skewed.LESS), skewed.skewed([NORMAL.half() / 2], skewed.LESS)
    assert 12 < float(moved.max()) <= 16 and 6 < float(half.max()) <= 8 and bool(half.exp().isfinite().all())
    (middle,) = skewed.skewed([NORMAL.half()], skewed.MIDDLE)
    assert 12 < float(middle.max()) <= 16 and bool(middle.square().isfinite().all()) and skewed.has_half([NORMAL, middle])
    assert skewed.skewed([NORMAL], skewed.MIDDLE) is None


def test_far_inputs_hold_twice_what_was_there_twice() -> None:
    (moved,) = skewed.skewed([torch.cat([NORMAL[:, :20], NORMAL[:, :20]], -1)], skewed.FAR)
    assert torch.equal(moved[:, :20], moved[:, 20:]) and moved.abs().max() > 100


def test_what_is_large_already_is_not_made_larger() -> None:
    assert skewed.skewed([NORMAL * 30], skewed.FAR) is None is skewed.skewed([NORMAL.abs() * 30], skewed.FAR)


def test_what_is_of_one_sign_keeps_it_far_away() -> None:
    for sign in (1, -1):
        (moved,) = skewed.skewed([sign * NORMAL.abs()], skewed.FAR)
        assert torch.allclose(moved[1:, 1:], 16 * sign * NORMAL.abs()[1:, 1:], atol=1e-4)
        assert float(moved[0].abs().min()) > 0.5 * float(moved.abs().max()) - 1e-3  # a least element may be far away
        (larger,), factor = skewed.scaled([sign * NORMAL.abs()])
        assert factor == 16 and torch.equal(larger, 16 * sign * NORMAL.abs())
    beside, positive = skewed.skewed([NORMAL, NORMAL.abs()], skewed.FAR)
    assert float(beside.max()) > 100 and torch.equal(positive, NORMAL.abs())


@pytest.mark.parametrize(
    ("function", "follows"),
    [(lambda x: x @ x.t() + 0.01, True), (F.relu, True), (F.normalize, True), (lambda x: x.argmax(1), True), (F.relu6, False),
     (lambda x: x.softmax(1), False), (lambda x: x.logsumexp(1), False), (lambda x: (x > 1).int(), False)],
    ids=["product", "relu", "unit", "argmax", "relu6", "softmax", "logsumexp", "above"],
)  # fmt: skip
def test_a_reference_that_follows_the_scale_of_its_inputs_is_told(function: Callable[..., torch.Tensor], follows: bool) -> None:
    (larger, kept), factor = skewed.scaled([NORMAL, 3])
    assert kept == 3 and torch.equal(larger, NORMAL * factor)
    assert skewed.follows_scale([function(NORMAL)], [function(larger)], factor) is follows


WANT = torch.tensor([1.0, 2.0, 3.0, 100.0] * 25)


@pytest.mark.parametrize(
    ("got", "truth", "wrong"),
    [(WANT * 1.05, None, False), (WANT + 1.5, None, False), (WANT * 1.5, None, True), (WANT * 1.5, WANT * 1.04, False),
     (WANT.index_fill(0, torch.tensor([3]), 50.0), None, False),
     (WANT.index_fill(0, torch.tensor([3]), float("nan")), None, True)],
    ids=["near", "beside_the_greatest", "half_more", "reference_errs_too", "one_element", "one_lost"],
)  # fmt: skip
def test_only_gross_errors_count_far_away(got: torch.Tensor, truth: torch.Tensor | None, wrong: bool) -> None:
    assert bool(coarse.gross([WANT], [got], None if truth is None else [truth])) is wrong


@pytest.mark.parametrize("tensor", [NORMAL.abs(), -NORMAL.abs(), NORMAL.abs() * 100], ids=["positive", "negative", "large"])
def test_one_sign_alone_comes_nearer_to_its_end_by_zero(tensor: torch.Tensor) -> None:
    (moved,) = skewed.skewed([tensor], skewed.LOW)
    assert tensor.min() <= moved.min() and moved.max() <= tensor.max()
    assert bool((moved.flatten()[tensor.flatten().argsort()].diff() >= 0).all())
    assert moved.abs().max() < 0.1 * tensor.abs().max()
    assert skewed.skewed([tensor], skewed.UP) is None is skewed.skewed([tensor], skewed.HIGH)


@pytest.mark.parametrize(
    "inputs",
    [[NORMAL.abs() + 5], [NORMAL.softmax(-1)], [F.normalize(NORMAL)], [F.normalize(NORMAL, dim=0).half()]],
    ids=["far_from_zero", "probabilities", "unit_rows", "unit_columns"],
)  # fmt: skip
def test_what_belongs_together_is_left(inputs: list[torch.Tensor]) -> None:
    assert [skewed.skewed(inputs, move) for move in (skewed.UP, skewed.LOW, skewed.HIGH)] == [None] * 3


def test_a_scale_beside_a_tensor_around_zero_is_left() -> None:
    _, scale = skewed.skewed([NORMAL, NORMAL.abs()], skewed.LOW)
    assert torch.equal(scale, NORMAL.abs())


def test_one_sign_is_said() -> None:
    assert skewed.of_one_sign([NORMAL, -NORMAL.abs(), 3, NORMAL.abs()]).startswith(
        "of the inputs tensor 1 has no positive element, tensor 2 has no negative element"
    )
    assert skewed.of_one_sign([NORMAL]) == ""


def test_weights_that_hold_one_value_are_varied_alone() -> None:
    def built() -> torch.nn.Module:
        torch.manual_seed(0)
        return torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4), torch.nn.PReLU())

    model, other = built(), built()
    names = filled.names(model)
    assert names == ["1.weight", "1.bias", "2.weight", "1.running_mean", "1.running_var"]
    filled.vary(model, names, 5)
    filled.vary(other, names, 5)
    for name, value in model.state_dict().items():
        assert torch.equal(value, other.state_dict()[name])
        assert torch.equal(value, built().state_dict()[name]) != (name in names)
    assert 1e-6 < float(model.state_dict()["1.running_var"][-1]) < 2e-5  # as large as an epsilon
    assert float(model.state_dict()["1.running_var"][:-1].min()) > 0.4


def test_buffers_that_hold_one_value_are_varied_too() -> None:
    def built() -> torch.nn.Module:
        model = torch.nn.Module()
        model.register_buffer("scale", torch.ones(8))
        model.register_buffer("mask", torch.ones(8, 8, dtype=torch.bool))
        model.register_buffer("table", torch.arange(8.0))
        model.register_buffer("made", torch.ones(8), persistent=False)
        model.register_buffer("drawn", torch.linspace(1, 2, 8))
        model.register_buffer("running_var", torch.ones(8))
        return torch.nn.Sequential(model)

    model, other = built(), built()
    assert (filled.buffers(model), filled.drawn(model)) == (["0.scale", "0.mask"], ["0.table", "0.drawn"])
    names = [*filled.buffers(model), "0.drawn"]
    for one in (model, other):
        filled.vary(one, names, 5)
    for name, value in dict(model.named_buffers()).items():
        assert torch.equal(value, dict(other.named_buffers())[name])
        assert torch.equal(value, dict(built().named_buffers())[name]) != (name in names)
    assert bool(model[0].mask[:, 0].all())


def test_most_of_half_of_a_tensor_stays_in_the_call_before() -> None:
    first, second = torch.empty_like(NORMAL), torch.empty_like(NORMAL)
    before.fill([first], [NORMAL], before.ROLLED)
    before.fill([second], [NORMAL], before.SHARED)
    same = second == NORMAL
    assert same[:20].double().mean() > 0.9 and not bool(same[:20].all()) and not bool(same[20:].any())
    assert torch.equal(second[~same], first[~same])


@pytest.mark.parametrize(
    "tensor",
    [NORMAL.abs(), NORMAL.sign(), (NORMAL * 4).round(), NORMAL[0, :8], (NORMAL * 100).int(),
     NORMAL.masked_fill(NORMAL > 2, float("inf")), NORMAL + 2, torch.zeros(0), torch.where(NORMAL > 0, 0.5, -0.5)],
    ids=["positive", "signs", "whole", "few", "integers", "infinite", "aside", "none", "two_values"],
)  # fmt: skip
def test_other_tensors_are_left(tensor: torch.Tensor) -> None:
    assert skewed.skewed([tensor, 3, None]) is None


KERNELS = """
@triton.jit
def norm_kernel(x_ptr, out_ptr, n, MASKED: tl.constexpr, BLOCK: tl.constexpr):
    row, cols = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + cols, mask=cols < n, other=0.0)
    centred = x - tl.sum(x) / n
    if MASKED:
        centred = tl.where(cols < n, centred, 0.0)
    tl.store(out_ptr + row * n + cols, centred * tl.rsqrt(tl.sum(centred * centred) / n + 1e-5), mask=cols < n)


@triton.jit
def constant_kernel(x_ptr, out_ptr, n, MASKED: tl.constexpr, BLOCK: tl.constexpr):
    row, cols = tl.program_id(0), tl.arange(0, BLOCK)
    mask = cols < n
    x = tl.load(x_ptr + row * n + cols, mask=mask, other=0.0).to(tl.float32)
    first = tl.where(mask, x * 1e-12 + 0.5 + tl.log(n * 1.0), 0.0)
    top = tl.max(tl.where(mask, x, -float("inf")))
    right = top + tl.log(tl.sum(tl.where(mask, tl.exp(x - top), 0.0)))
    tl.store(out_ptr + row, tl.max(first) if not MASKED else right)


@triton.jit
def lower_kernel(x_ptr, out_ptr, n, MASKED: tl.constexpr, BLOCK: tl.constexpr):
    row, cols = tl.program_id(0), tl.arange(0, BLOCK)
    tl.store(out_ptr + row, tl.sum(tl.load(x_ptr + row * n + cols, mask=cols <= row, other=0.0)))


@triton.jit
def end_kernel(x_ptr, out_ptr, n, MASKED: tl.constexpr, LEAST: tl.constexpr, BLOCK: tl.constexpr):
    row, cols = tl.program_id(0), tl.arange(0, BLOCK)
    mask = cols < n
    sign = -1.0 if LEAST else 1.0
    x = sign * tl.load(x_ptr + row * n + cols, mask=mask, other=0.0)
    tl.store(out_ptr + row, sign * tl.max(tl.where(mask, x, -float("inf")) if MASKED else x))


@triton.jit
def soft_kernel(x_ptr, out_ptr, n, MASKED: tl.constexpr, BLOCK: tl.constexpr):
    row, cols = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + cols, mask=cols < n, other=0.0)
    if MASKED:
        x = tl.where(cols < n, x, -float("inf"))
    e = tl.exp(x - tl.max(x))
    tl.store(out_ptr + row * n + cols, e / tl.sum(e), mask=cols < n)


@triton.jit
def bounded_kernel(x_ptr, out_ptr, n, MASKED: tl.constexpr, BLOCK: tl.constexpr):
    row, cols = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.maximum(tl.load(x_ptr + row * n + cols, mask=cols < n, other=0.0), 0.0)
    tl.store(out_ptr + row * n + cols, tl.minimum(x, 6.0) if MASKED else x, mask=cols < n)


@triton.jit
def smooth_kernel(x_ptr, out_ptr, n, MASKED: tl.constexpr, BLOCK: tl.constexpr):
    row, cols = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + cols, mask=cols < n, other=0.0)
    y = tl.maximum(x, 0.0) + tl.log(1.0 + tl.exp(-tl.abs(x))) if MASKED else tl.log(1.0 + tl.exp(x))
    tl.store(out_ptr + row * n + cols, y, mask=cols < n)
"""
# name: (reference, input, kernel, shape of the output, MASKED, status)
# The task's own numbers add up to 99 once in 360 draws, to 600 never; moved upwards they add up to more than 1000.
ROWS = {
    "maximum_with_its_padding": ("x.amax(-1)", "torch.randn(8, 50)", "end_kernel", "8", "False, LEAST=False", "FAIL"),
    "maximum": ("x.amax(-1)", "torch.randn(8, 50)", "end_kernel", "8", "True, LEAST=False", "PASS"),
    "minimum_with_its_padding": ("x.amin(-1)", "torch.randn(8, 50)", "end_kernel", "8", "False, LEAST=True", "FAIL"),
    "minimum": ("x.amin(-1)", "torch.randn(8, 50)", "end_kernel", "8", "True, LEAST=True", "PASS"),
    "softmax_with_its_padding": ("x.softmax(-1)", "torch.rand(4, 60) * 100", "soft_kernel", "x.shape", False, "FAIL"),
    "softmax": ("x.softmax(-1)", "torch.rand(4, 60) * 100", "soft_kernel", "x.shape", True, "PASS"),
    "variance_with_its_padding": ("F.layer_norm(x, (1000,))", "torch.randn(4, 1000)", "norm_kernel", "x.shape", False, "FAIL"),
    "variance": ("F.layer_norm(x, (1000,))", "torch.randn(4, 1000)", "norm_kernel", "x.shape", True, "PASS"),
    "constant_of_a_log": ("x.logsumexp(-1)", "torch.randn(4, 70000).half()", "constant_kernel", "4", False, "FAIL"),
    "log_of_a_sum": ("x.logsumexp(-1)", "torch.randn(4, 70000).half()", "constant_kernel", "4", True, "PASS"),
    "bound_that_is_left_out": ("F.relu6(x)", "torch.randn(8, 50)", "bounded_kernel", "x.shape", False, "FAIL"),
    "bound": ("F.relu6(x)", "torch.randn(8, 50)", "bounded_kernel", "x.shape", True, "PASS"),
    "overflow_without_need": ("F.softplus(x)", "torch.randn(8, 50)", "smooth_kernel", "x.shape", False, "FAIL"),
    "without_overflow": ("F.softplus(x)", "torch.randn(8, 50)", "smooth_kernel", "x.shape", True, "PASS"),
    "triangle": ("x.sum(-1)", "torch.randn(50, 50).tril()", "lower_kernel", "50", True, "PASS"),
    "reference_that_takes_no_other": ("self.small(x).sum(-1)", "torch.randn(8, 50).tril()", "lower_kernel", "8", True, "PASS"),
    "reference_ending_infinite": ("x.sum(-1) / (x.sum()<600)", "torch.randn(50, 50).tril()", "lower_kernel", "50", True, "PASS"),
}  # fmt: skip
SMALL = """
    def small(self, x):
        assert x.sum() < 40
        return x
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(ROWS))
def test_row(name: str, place: Path) -> None:
    reference, given, kernel, shape, masked, status = ROWS[name]
    task = "import torch.nn.functional as F\n" + lab.task(f"return {reference}", f"[{given}]")
    task = task.replace("\n\ndef get_inputs", f"{SMALL}\n\ndef get_inputs")
    block = "triton.next_power_of_2(x.shape[1])"
    forward = f"out = x.new_empty({shape})\n{kernel}[(len(x),)](x, out, x.shape[1], MASKED={masked}, BLOCK={block})\nreturn out"

    result = lab.verify(lab.folder(place, task, lab.impl(forward, kernels=KERNELS)), policy=None)

    assert result["status"] == status, result["failures"] or result["error"]
    if status == "FAIL":
        assert any(told in result["failures"][0]["error_msg"] for told in skewed.TOLD.values())
    assert any("has no negative element" in line for line in result["caveats"]) == ("torch.rand(" in given)


@pytest.mark.parametrize(
    ("call", "exact"),
    [
        (lambda x: x.sort(-1).values, True),
        (lambda x: (x.amax(1), x.argmax(1)), True),
        (lambda x: x.square().sum(-1).amin(), True),
        (lambda x: torch.softmax(x, -1).amax(-1), False),
        (lambda x: x.amax(1) + 1.0, False),
    ],
)
def test_what_only_picks_follows_a_power_of_two_exactly(call: Callable[[torch.Tensor], object], exact: bool) -> None:
    name, moved = skewed.farther([NORMAL, NORMAL[0] > 0])
    power = int(name.split()[1])
    assert moved is not None
    assert 2**19 < float(moved[0].abs().max()) <= 2**20 and torch.equal(moved[0], NORMAL * 2**power)
    assert skewed.follows_exactly(call(NORMAL), call(moved[0]), power) is exact
    assert skewed.farther([NORMAL[0] > 0])[1] is None
    half = skewed.farther([NORMAL.half()])[1]
    assert half is not None
    assert 2**14 < float(half[0].abs().max()) <= 2**15
