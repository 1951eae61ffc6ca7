"""Twin policy, version 2: what the average of a row shows that single elements hide."""

from __future__ import annotations

import pytest
import torch

from pypto_op.compare import Comparison, compare_leaves
from pypto_op.comparison.bias import FEWEST_ROWS, SHORTEST_ROW, row_bias
from pypto_op.documents.policy import get_policy
from pypto_op.twins.reordering import TWINS, Reordered, storage_of

NARROW = (torch.float16, torch.bfloat16)


def rms(x: torch.Tensor) -> torch.Tensor:
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    return (wide * torch.rsqrt((wide * wide).mean(-1, keepdim=True) + 1e-6)).to(x.dtype)


def judged(candidate: torch.Tensor, x: torch.Tensor, policy: str = "twin@2") -> Comparison:
    """Judge a candidate for `rms(x)`."""
    rule = get_policy(policy)
    twins = []
    for name in rule.twins:
        with torch.no_grad(), Reordered(name, storage_of([x])):
            twins.append([rms(x)])
    return compare_leaves([candidate], [rms(x.double())], names=["out"], policy=rule, twins=twins)


def rows(dtype: torch.dtype, seed: int = 0, count: int = 16, width: int = 512) -> torch.Tensor:
    return torch.randn((count, width), generator=torch.Generator().manual_seed(seed)).to(dtype)


def with_16_bit_mean(x: torch.Tensor) -> torch.Tensor:
    """The fault: squares are summed in tiles of 64, and the sum is kept in the dtype of the inputs."""
    wide, total = x.float(), torch.zeros(x.shape[0], 1, dtype=x.dtype)
    for tile in (wide * wide).split(64, dim=-1):
        total = (total.float() + tile.sum(-1, keepdim=True)).to(x.dtype)
    return (wide * torch.rsqrt(total.float() / x.shape[-1] + 1e-6)).to(x.dtype)


@pytest.mark.parametrize("seed", range(4))
def test_a_16_bit_accumulator_fails_on_ordinary_inputs(seed: int) -> None:
    x = rows(torch.float16, seed)
    fault = with_16_bit_mean(x)
    assert judged(fault, x, "twin@1").all_close, "each element by itself looks honest"
    found = judged(fault, x)
    assert not found.all_close
    assert [c.name for c in found.per_tensor[0].conditions if not c.ok] == ["bias"]


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [*NARROW, torch.float32])
@pytest.mark.parametrize("seed", range(6))
def test_honest_variants_pass(dtype: torch.dtype, seed: int) -> None:
    x = rows(dtype, seed)
    wide = x.float()
    inverse = torch.rsqrt((wide * wide).mean(-1, keepdim=True) + 1e-6)
    root = torch.sqrt((wide * wide).sum(-1, keepdim=True) / x.shape[-1] + 1e-6)
    largest = wide.abs().amax(-1, keepdim=True)
    scaled = ((wide / largest).square().mean(-1, keepdim=True) + 1e-6 / largest.square()).sqrt() * largest
    variants = {
        "golden": rms(x),
        "divides": (wide / root).to(x.dtype),
        "scaled squares": (wide / scaled).to(x.dtype),
        "rounds twice": ((wide * inverse).to(x.dtype).float() * 1.0).to(x.dtype),
        "fast rsqrt": (wide * (inverse * (1 + 1.2e-7))).to(x.dtype),
    }
    for name, variant in variants.items():
        found = judged(variant, x)
        assert found.all_close, (name, found.message)


def test_a_lost_term_fails_where_the_tolerance_sees_nothing() -> None:
    x = rows(torch.float32)
    wide = x * torch.rsqrt((x * x).mean(-1, keepdim=True))  # eps is lost
    allclose = get_policy({"name": "allclose", "atol": 1e-6, "rtol": 1e-5})
    assert compare_leaves([wide], [rms(x)], names=["out"], policy=allclose).all_close
    assert not judged(wide, x).all_close


def test_a_row_that_honest_rounding_bends_is_no_fault() -> None:
    """One row's factor is nearly 1, so rounding it before the weight gives back the input, all in one direction."""
    x = rows(torch.float16)
    x[3] = 1.0 + 2.0**-9 * torch.randint(-8, 9, (512,))
    weight = rows(torch.float16, 9, 1)
    wide = x.float()
    inverse = torch.rsqrt((wide * wide).mean(-1, keepdim=True) + 1e-6)
    once, twice = (wide * inverse * weight.float()).half(), ((wide * inverse).half().float() * weight.float()).half()
    double = x.double()
    truth = double * torch.rsqrt((double * double).mean(-1, keepdim=True) + 1e-6) * weight.double()
    policy = get_policy("twin@2")
    assert compare_leaves([twice], [truth], names=["o"], policy=policy, twins=[[once]]).all_close


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize(("count", "width"), [(8, 64), (17, 528), (32, 512), (19, 4096)])
def test_rounding_before_the_weight_is_honest(dtype: torch.dtype, count: int, width: int) -> None:
    policy = get_policy("twin@2")
    for seed in range(8):
        x, weight = rows(dtype, seed, count, width), rows(dtype, 100 + seed, 1, width)
        wide, double = x.float(), x.double()
        inverse = torch.rsqrt((wide * wide).mean(-1, keepdim=True) + 1e-6)
        once = (wide * inverse * weight.float()).to(dtype)
        twice = ((wide * inverse).to(dtype).float() * weight.float()).to(dtype)
        truth = double * torch.rsqrt((double * double).mean(-1, keepdim=True) + 1e-6) * weight.double()
        found = compare_leaves([twice], [truth], names=["o"], policy=policy, twins=[[once]])
        assert found.all_close, (seed, found.message)


def test_shifted_and_stretched_rows_are_both_seen() -> None:
    truth = torch.randn(16, 64).double()
    clamp = 0.01
    assert row_bias(truth * 1.01, truth, clamp) == pytest.approx(0.01, rel=0.1)
    assert row_bias(truth.abs() + 0.01 * truth.abs(), truth.abs(), clamp) > 0.009
    noise = truth * (1 + 0.01 * torch.randn(16, 64).double())
    assert row_bias(noise, truth, clamp) < 0.004


def test_short_rows_few_rows_and_non_finite_elements_say_nothing() -> None:
    truth = torch.ones(16, 64, dtype=torch.float64)
    leaning = (truth * 1.01).float()
    assert row_bias(leaning, truth, 0.0) == pytest.approx(0.01, rel=1e-4)
    assert row_bias(leaning[: FEWEST_ROWS - 1], truth[: FEWEST_ROWS - 1], 0.0) == 0.0
    leaning[:, : 64 - SHORTEST_ROW + 1] = torch.nan
    assert row_bias(leaning, truth, 0.0) == 0.0
    short = torch.ones(16, SHORTEST_ROW - 1, dtype=torch.float64)
    found = compare_leaves([short.float()], [short], names=["o"], policy=get_policy("twin@2"), twins=[[short.float()]])
    assert "bias" not in [condition.name for condition in found.per_tensor[0].conditions]


def test_every_twin_that_a_policy_names_exists() -> None:
    assert get_policy("twin@2").twins == TWINS
    assert get_policy("twin@1").twins == ("golden",)
    assert get_policy("allclose@1").twins == ()
