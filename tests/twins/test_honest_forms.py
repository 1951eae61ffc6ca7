"""Right rewrites of goldens with whole numbers, orders and 16-bit roundings are accepted, wrong ones refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from pypto_op.documents.policy import get_policy
from pypto_op.twins.reordering import OTHER_TIES, Reordered

from .honest_forms import Judge

POLICIES = (get_policy("allclose@1"), get_policy("twin@2"))
SEEDS = range(20)


def noise(*shape: int, seed: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def two(seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    return noise(32, 96, seed=seed, dtype=torch.float16), noise(96, 48, seed=seed + 500, dtype=torch.float16)


def product(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """x @ w, added up from the end in blocks of 16, as no golden does."""
    a, b = x.float(), w.float()
    total = torch.zeros(a.shape[0], b.shape[1])
    for start in range(a.shape[1] - 16, -1, -16):
        total = total + a[:, start : start + 16] @ b[start : start + 16]
    return total


# -- per-row dynamic quantisation -----------------------------------------------------------------------------------


def quantise(x: torch.Tensor, w: torch.Tensor) -> Any:
    y = x.float() @ w.float()
    scale = y.abs().amax(-1, keepdim=True) / 127.0
    return torch.clamp(torch.round(y / scale), -128, 127).to(torch.int8), scale


def _quantised(how: Callable[[torch.Tensor, torch.Tensor], torch.Tensor], scale_of: Any = None) -> Any:
    def run(x: torch.Tensor, w: torch.Tensor) -> Any:
        y = product(x, w)
        scale = y.abs().amax(-1, keepdim=True) * (1 / 127.0)
        return how(y, scale if scale_of is None else scale_of(scale)).to(torch.int8), scale

    return run


QUANTISE_RIGHT = {
    "reciprocal": _quantised(lambda y, s: torch.round(y * (1 / s)).clamp(-128, 127)),
    "clamp before round": _quantised(lambda y, s: (y / s).clamp(-128, 127).round()),
    "reciprocal of amax": _quantised(lambda y, s: torch.round(y * (127.0 / y.abs().amax(-1, keepdim=True)))),
}
QUANTISE_WRONG = {
    "a step more": _quantised(lambda y, s: (torch.round(y / s) + 1).clamp(-128, 127)),
    "truncated": _quantised(lambda y, s: torch.trunc(y / s)),
    "floor": _quantised(lambda y, s: torch.floor(y / s)),
    "half away from zero, of a half more": _quantised(lambda y, s: torch.floor(y / s + 0.51)),
    "scale of another row": _quantised(lambda y, s: torch.round(y / s).clamp(-128, 127), lambda s: s.roll(1, 0)),
    "one scale for all": _quantised(lambda y, s: torch.round(y / s).clamp(-128, 127), lambda s: s.amax().expand_as(s)),
    "16-bit product": _quantised(lambda y, s: torch.round(y.half().float() / s).clamp(-128, 127)),
    "clamped early": _quantised(lambda y, s: torch.round(y / s).clamp(-100, 100)),
}


# -- affine quantisation with a zero point --------------------------------------------------------------------------


def affine(x: torch.Tensor, w: torch.Tensor) -> Any:
    y = torch.matmul(x.float(), w.float())
    return torch.clamp(torch.round(y / 0.21) + 3, 0, 255).to(torch.uint8)


AFFINE_RIGHT = {
    "reciprocal": lambda x, w: (torch.round(product(x, w) * (1 / 0.21)) + 3).clamp(0, 255).to(torch.uint8),
    "clamp first": lambda x, w: (torch.round((product(x, w) / 0.21).clamp(-3, 252)) + 3).to(torch.uint8),
}
AFFINE_WRONG = {
    "zero point within the rounding": lambda x, w: torch.round(product(x, w) / 0.21 + 3.4).clamp(0, 255).to(torch.uint8),
    "no zero point": lambda x, w: torch.round(product(x, w) / 0.21).clamp(0, 255).to(torch.uint8),
    "wraps": lambda x, w: (torch.round(product(x, w) / 0.21) + 3).to(torch.int32).to(torch.uint8),
}


# -- orders ---------------------------------------------------------------------------------------------------------


def gate(x: torch.Tensor, w: torch.Tensor) -> Any:
    values, chosen = torch.topk(torch.softmax(x.float() @ w.float(), -1), 4, dim=-1)
    return values / values.sum(-1, keepdim=True), chosen.to(torch.int32)


def _gated(pick: Callable[[torch.Tensor], tuple[torch.Tensor, torch.Tensor]]) -> Any:
    def run(x: torch.Tensor, w: torch.Tensor) -> Any:
        logits = product(x, w)
        values, chosen = pick(torch.exp(logits - logits.amax(-1, keepdim=True)))
        return values / values.sum(-1, keepdim=True), chosen.to(torch.int32)

    return run


def _sorted(scores: torch.Tensor, start: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    values, index = scores.sort(-1, descending=True)
    return values[:, start : start + 4].contiguous(), index[:, start : start + 4].contiguous()


GATE_RIGHT = {"sorted": _gated(_sorted), "top k": _gated(lambda s: tuple(torch.topk(s, 4, -1)))}
GATE_WRONG = {
    "from the second": _gated(lambda s: _sorted(s, 1)),
    "least": _gated(lambda s: tuple(torch.topk(s, 4, -1, largest=False))),
    "one index twice": _gated(lambda s: (_sorted(s)[0], _sorted(s)[1][:, [0, 0, 2, 3]])),
    "neighbours exchanged": _gated(lambda s: (_sorted(s)[0], _sorted(s)[1][:, [1, 0, 2, 3]])),
    "index of another row": _gated(lambda s: (_sorted(s)[0], _sorted(s)[1].roll(1, 0))),
    "tail of the axis forgotten": _gated(lambda s: _sorted(s[:, :40])),
}


def order(x: torch.Tensor, w: torch.Tensor) -> Any:
    y = x.float() @ w.float()
    return torch.argsort(y, dim=-1), y.argmax(-1), torch.sort(x, dim=-1).indices


ORDER_RIGHT = {
    "stable": lambda x, w: (
        product(x, w).argsort(dim=-1, stable=True), product(x, w).max(-1).indices, x.float().sort(dim=-1, stable=True).indices
    ),
    "other places of equal ones": lambda x, w: (
        product(x, w).argsort(-1), product(x, w).argmax(-1), 95 - x.flip(-1).sort(dim=-1, stable=True).indices
    ),
}  # fmt: skip
ORDER_WRONG = {
    "descending": lambda x, w: (product(x, w).argsort(-1, descending=True), product(x, w).argmax(-1), x.sort().indices),
    "least": lambda x, w: (product(x, w).argsort(-1), product(x, w).argmin(-1), x.sort().indices),
    "one off": lambda x, w: (product(x, w).argsort(-1), (product(x, w).argmax(-1) + 1) % 48, x.sort().indices),
    "unsorted": lambda x, w: (product(x, w).argsort(-1), product(x, w).argmax(-1), torch.arange(96).expand(32, 96).clone()),
}


# -- bins and counts ------------------------------------------------------------------------------------------------

EDGES = torch.linspace(-20, 20, 17)


def counts(x: torch.Tensor, w: torch.Tensor) -> Any:
    y = x.float() @ w.float()
    bins = torch.bucketize(y, EDGES)
    return bins.to(torch.int32), torch.bincount(bins.reshape(-1), minlength=18), (y > 0.5).sum(-1)


def _counted(bins_of: Callable[[torch.Tensor], torch.Tensor], above: float = 0.5) -> Any:
    def run(x: torch.Tensor, w: torch.Tensor) -> Any:
        y = product(x, w)
        bins = bins_of(y)
        return bins.to(torch.int32), F.one_hot(bins.long(), 18).sum((0, 1)), (y > above).sum(-1)

    return run


COUNTS_RIGHT = {
    "searched": _counted(lambda y: torch.searchsorted(EDGES, y)),
    "compared": _counted(lambda y: (y.unsqueeze(-1) > EDGES).sum(-1)),
    "ceil": _counted(lambda y: torch.ceil((y + 20) * 0.4).clamp(0, 17)),
}
COUNTS_WRONG = {
    "a bin off": _counted(lambda y: (torch.bucketize(y, EDGES) - 1).clamp(min=0)),
    "floor": _counted(lambda y: torch.floor((y + 20) * 0.4).clamp(0, 17)),
    "nearest": _counted(lambda y: torch.round((y + 20) * 0.4).clamp(0, 17)),
    "another threshold": _counted(lambda y: torch.bucketize(y, EDGES), 0.6),
    "at least none": _counted(lambda y: torch.bucketize(y, EDGES), 0.0),
}


# -- 16-bit roundings on the way to a float32 output ------------------------------------------------------------------


def rounded(x: torch.Tensor, w: torch.Tensor) -> Any:
    h = (x.float() @ w.float()).to(torch.float16)
    return h.float() * 3 + 1, h.float().square().sum(-1)


def _rounded(round_: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    def run(x: torch.Tensor, w: torch.Tensor) -> Any:
        h = round_(product(x, w)).float()
        return h * 3 + 1, (h * h).sum(-1)

    return run


ROUNDED_RIGHT = {"half": _rounded(lambda y: y.half()), "type": _rounded(lambda y: y.type(torch.float16))}
ROUNDED_WRONG = {
    "left out": _rounded(lambda y: y),
    "bfloat16": _rounded(lambda y: y.bfloat16()),
    "cut": _rounded(lambda y: torch.nextafter(y.half(), torch.zeros_like(y.half()))),
    "a thousandth more": _rounded(lambda y: (y * 1.001).half()),
}

FORMS = {
    "quantise": (quantise, QUANTISE_RIGHT, QUANTISE_WRONG),
    "affine": (affine, AFFINE_RIGHT, AFFINE_WRONG),
    "gate": (gate, GATE_RIGHT, GATE_WRONG),
    "order": (order, ORDER_RIGHT, ORDER_WRONG),
    "counts": (counts, COUNTS_RIGHT, COUNTS_WRONG),
    "rounded": (rounded, ROUNDED_RIGHT, ROUNDED_WRONG),
}


@pytest.mark.slow
@pytest.mark.parametrize("policy", POLICIES, ids=str)
@pytest.mark.parametrize("form", FORMS)
def test_right_rewrites_pass_on_many_seeds_and_wrong_ones_on_none(form: str, policy: Any) -> None:
    golden, right, wrong = FORMS[form]
    refused, taken = [], []
    for seed in SEEDS:
        judge = Judge(golden, two(seed), policy)
        refused += [(name, seed, judge(way).summary) for name, way in {"golden": golden, **right}.items() if not judge.takes(way)]
        if seed < 4:
            taken += [(name, seed) for name, way in wrong.items() if judge.takes(way)]
    assert not refused and not taken


@pytest.mark.slow
@pytest.mark.parametrize(
    "cast",
    [
        lambda y: y.half(),
        lambda y: y.to(torch.float16),
        lambda y: y.type(torch.float16),
        lambda y: y.type(torch.HalfTensor),
        lambda y: y.to(dtype=torch.float16),
        lambda y: y.type_as(torch.zeros(1, dtype=torch.float16)),
        lambda y: torch.zeros(y.shape, dtype=torch.float16).copy_(y),
        lambda y: torch.tensor(y, dtype=torch.float16),
    ],
)
@pytest.mark.filterwarnings("ignore:To copy construct")
def test_however_a_golden_says_it_the_rounding_stays(cast: Any) -> None:
    def golden(x: torch.Tensor, w: torch.Tensor) -> Any:
        h = cast(x.float() @ w.float()).float()
        return h * 3 + 1, h.square().sum(-1)

    for policy in POLICIES:
        judge = Judge(golden, two(1), policy)
        assert judge.takes(ROUNDED_RIGHT["half"])
        assert not judge.takes(ROUNDED_WRONG["left out"])


def cancelled(x: torch.Tensor, w: torch.Tensor) -> Any:
    """Terms that cancel over the real numbers: what is left is the golden's rounding."""
    y = x.float() @ w.float()
    return (y * 1.1 + y * 0.7 - y * 1.8).half(), y


@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_zeros_pass_where_the_golden_is_noise_and_nowhere_else(policy: Any) -> None:
    judge = Judge(cancelled, two(3), policy)
    noise_, y = judge.reference.native.outputs
    assert bool(noise_.any()), "the golden does not answer zeros itself"
    assert judge.takes([torch.zeros_like(noise_), y])
    assert not judge.takes([noise_, torch.zeros_like(y)])
    assert not judge.takes([torch.full_like(noise_, torch.nan), y])
    assert not judge.takes([torch.ones_like(noise_), y])
    small = Judge(lambda x: x.float() * 1e-6, two(3)[:1], policy)
    assert not small.takes([torch.zeros(32, 96)]), "small, but no noise"


@pytest.mark.slow
def test_a_right_kernel_beyond_a_tight_tolerance_is_a_near_miss_and_a_wrong_one_is_not() -> None:
    tight = get_policy({"name": "allclose", "atol": 2e-6, "rtol": 1e-7})
    flags = []
    for seed in SEEDS:
        judge = Judge(lambda x, w: x.float() @ w.float(), two(seed), tight)
        verdict = judge(product)
        flags += [verdict.near_miss] if not verdict.near_miss or verdict.reasons else []
        assert not judge(lambda x, w: product(x, w) * 1.001).near_miss
        assert not judge(lambda x, w: product(x.roll(1, 0), w)).near_miss
    assert len(flags) > 10 and all(flags)


# -- equal values that no order tells apart ---------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["topk", "sort", "argsort"])
def test_the_golden_that_takes_the_last_of_equal_values_first(how: str) -> None:
    """Whole rows of equal values: more than the ways near a tie tell, so a case with them must be left out."""

    def golden(x: torch.Tensor) -> torch.Tensor:
        return {"topk": lambda: x.topk(4).indices, "sort": lambda: x.sort().indices, "argsort": lambda: x.argsort()}[how]()

    tied = torch.zeros(3, 40)
    with Reordered(OTHER_TIES):
        assert golden(tied)[0, :4].tolist() == [39, 38, 37, 36]
        apart = noise(5, 40, seed=1)
        found = golden(apart)
    assert torch.equal(found, golden(apart)), "values that differ have one order"


def test_a_stable_sort_leaves_nothing_open() -> None:
    tied = torch.zeros(2, 9)
    with Reordered(OTHER_TIES):
        assert tied.sort(stable=True).indices[0].tolist() == list(range(9))
        assert tied.argmax(-1).tolist() == [0, 0]
