"""Every order of additions is exact over the reals, covers every term once, and really is another order."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.quickly import examples

from pypto_op.twins.orders import ORDERS, contract, scan, total
from pypto_op.twins.reordering import GOLDEN, ROUNDED_OPERANDS, TWINS, Reordered, storage_of

NAMES = sorted(ORDERS)


def integers(*shape: int, seed: int = 0) -> torch.Tensor:
    """Return small whole numbers: every order must give the same sum, to the last bit."""
    return torch.randint(-8, 9, shape, generator=torch.Generator().manual_seed(seed)).float()


@settings(max_examples=examples(60))
@given(name=st.sampled_from(NAMES), rows=st.integers(1, 4), count=st.integers(1, 300), seed=st.integers(0, 99))
def test_every_term_is_added_exactly_once(name: str, rows: int, count: int, seed: int) -> None:
    terms = integers(rows, count, seed=seed)
    assert torch.equal(total(terms, ORDERS[name]), terms.double().sum(dim=-1).float())
    assert torch.equal(scan(terms, ORDERS[name]), terms.double().cumsum(dim=-1).float())


@settings(max_examples=examples(60))
@given(
    name=st.sampled_from(NAMES),
    m=st.integers(1, 5),
    k=st.integers(1, 200),
    n=st.integers(1, 5),
    batch=st.sampled_from([(), (3,)]),
)
def test_a_matmul_contracts_every_k_exactly_once(name: str, m: int, k: int, n: int, batch: tuple[int, ...]) -> None:
    left, right = integers(*batch, m, k), integers(*batch, k, n, seed=1)
    assert torch.equal(contract(left, right, ORDERS[name]), torch.matmul(left.double(), right.double()).float())


def test_a_sum_longer_than_the_longest_loop_is_still_whole() -> None:
    terms = integers(2, 100_001)
    for order in ORDERS.values():
        assert torch.equal(total(terms, order), terms.double().sum(dim=-1).float())


@pytest.mark.parametrize(
    ("left", "right"),
    [((4, 1, 64), (4, 64, 32)), ((1, 100), (100, 1)), ((1, 100), (100, 2)), ((5, 1, 300), (300, 2)), ((7, 33), (33, 9))],
)
def test_sequential_adds_one_rounded_product_after_another(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    one, two = torch.randn(left), torch.randn(right).mT.contiguous().mT  # memory the other way round, too
    total = one[..., :1] * two[..., :1, :]
    for k in range(1, left[-1]):
        total = total + one[..., k : k + 1] * two[..., k : k + 1, :]
    assert torch.equal(contract(one, two, ORDERS["sequential"]), total)


@pytest.mark.parametrize("name", NAMES)
def test_an_order_rounds_differently_than_torch_and_no_worse_than_a_plain_loop(name: str) -> None:
    terms = torch.rand(64, 1031, generator=torch.Generator().manual_seed(3))
    exact = terms.double().sum(dim=-1)
    error = (total(terms, ORDERS[name]).double() - exact).abs().max() / exact.abs().max()
    assert 0 < error < 1031 * 2**-24
    assert not torch.equal(total(terms, ORDERS[name]), terms.sum(dim=-1))


def network(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Use every operator that hides a sum: layer_norm, softmax, var, logsumexp, linear, einsum, cumsum, mean."""
    normed = torch.nn.functional.layer_norm(x, (x.shape[-1],))
    mixed = torch.nn.functional.linear(torch.softmax(normed, -1), weight) + torch.einsum("ij,kj->ik", x, weight)
    return mixed.cumsum(-1) + x.var(-1, keepdim=True) + torch.logsumexp(x, 0).mean() + torch.nn.functional.mse_loss(x, normed)


@pytest.mark.parametrize("function", ["var", "std", "var_mean", "std_mean"])
@pytest.mark.parametrize(
    "arguments", [{}, {"dim": -1}, {"dim": (0, 2), "keepdim": True}, {"dim": 1, "correction": 0}, {"dim": 1, "unbiased": False}]
)
def test_variances_in_two_passes_are_variances(function: str, arguments: dict[str, object]) -> None:
    x = torch.randn(5, 7, 9) + 3.0
    wanted = getattr(torch, function)(x, **arguments)
    with torch.no_grad(), Reordered("sequential"):
        got = getattr(torch, function)(x, **arguments)
    torch.testing.assert_close(got, wanted)
    assert isinstance(got, tuple) == isinstance(wanted, tuple)


def test_norms_are_reordered_too() -> None:
    x = torch.randn(8, 4099)
    for norm in (torch.linalg.vector_norm, torch.norm):
        with torch.no_grad(), Reordered("sequential"):
            other = norm(x, dim=-1)
        assert not torch.equal(other, norm(x, dim=-1))
        torch.testing.assert_close(other, norm(x, dim=-1), rtol=1e-5, atol=0.0)  # a loop of 4099 terms errs by more than 1.3e-6


def run(twin: str, *values: torch.Tensor) -> torch.Tensor:
    with torch.no_grad(), Reordered(twin, storage_of(values)):
        return network(*values)


@pytest.mark.parametrize("twin", [twin for twin in TWINS if twin not in (GOLDEN, ROUNDED_OPERANDS)])
@pytest.mark.slow
def test_a_twin_of_a_whole_network_differs_by_rounding_only(twin: str) -> None:
    generator = torch.Generator().manual_seed(5)
    x, weight = torch.randn(33, 190, generator=generator), torch.randn(21, 190, generator=generator)
    golden, other = run(GOLDEN, x, weight), run(twin, x, weight)
    assert torch.equal(golden, network(x, weight))
    assert not torch.equal(golden, other)
    torch.testing.assert_close(other, golden, rtol=1e-4, atol=1e-3)


def test_a_twin_leaves_float64_and_integers_alone() -> None:
    x, weight = torch.randn(9, 70).double(), torch.randn(5, 70).double()
    counts = torch.arange(70)
    for twin in TWINS:
        assert torch.equal(run(twin, x, weight), network(x, weight))
        with Reordered(twin):
            assert torch.equal(counts.sum(), torch.tensor(2415))


def test_rounded_operands_round_matmuls_only_and_only_for_16_bit_inputs() -> None:
    x, weight = torch.randn(8, 64), torch.randn(8, 64)
    assert torch.equal(run(ROUNDED_OPERANDS, x, weight), network(x, weight))
    narrow = torch.randn(8, 64).bfloat16()

    def golden(value: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        weights = torch.exp(value.float())
        return weights.sum(-1), weights @ value.float().T

    with Reordered(ROUNDED_OPERANDS, storage_of([narrow])):
        sums, product = golden(narrow)
    plain_sums, plain_product = golden(narrow)
    assert torch.equal(sums, plain_sums)
    weights = torch.exp(narrow.float())
    assert torch.equal(product, weights.bfloat16().float() @ narrow.float().T)
    assert not torch.equal(product, plain_product)


def test_an_unknown_twin_is_refused() -> None:
    with pytest.raises(ValueError, match="no twin 'lucky'"):
        Reordered("lucky")


def test_empty_and_scalar_tensors_pass_through() -> None:
    for twin in TWINS:
        with Reordered(twin), torch.no_grad():
            assert torch.zeros(0, 3).sum() == 0
            assert torch.tensor(2.5).sum() == 2.5
            assert torch.equal(torch.zeros(4, 0) @ torch.zeros(0, 2), torch.zeros(4, 2))
            assert torch.zeros(2, 0).sum(-1).shape == (2,)


def test_the_sequential_order_is_a_loop_over_the_terms_bit_for_bit() -> None:
    terms = torch.randn(3, 1031, generator=torch.Generator().manual_seed(5)) * 10.0 ** torch.arange(-40, 1023 - 32).clamp(max=3)
    running, told = torch.zeros(3), []
    for term in terms.unbind(-1):
        running = running + term
        told.append(running)
    assert torch.equal(total(terms, ORDERS["sequential"]), running)
    assert torch.equal(scan(terms, ORDERS["sequential"]), torch.stack(told, -1))


def test_a_twin_says_whether_the_golden_ordered_values() -> None:
    x = torch.randn(4, 9)
    for function, ordered in ((torch.argsort, True), (torch.topk, True), (torch.sum, False)):
        with torch.no_grad(), Reordered("tiled") as mode:
            function(x, 2, -1) if function is torch.topk else function(x, -1)
        assert mode.orders_values is ordered


FUSED = {
    "add": lambda x, y: torch.add(x, y, alpha=2.5),
    "sub": lambda x, y: torch.sub(x, y, alpha=2.5),
    "method": lambda x, y: x.add(y, alpha=-0.3),
    "addcmul": lambda x, y: torch.addcmul(x, y, y, value=0.7),
    "lerp": lambda x, y: torch.lerp(x, y, 0.3),
    "lerp by a tensor": lambda x, y: torch.lerp(x, y, y.sigmoid()),
}


@pytest.mark.parametrize("name", FUSED)
def test_a_product_that_torch_fuses_with_a_sum_is_rounded_by_itself(name: str) -> None:
    """A kernel multiplies, rounds and adds; where the sum cancels, torch's one rounding is far nearer to the truth."""
    generator = torch.Generator().manual_seed(5)
    y = 1e4 * torch.randn(4096, generator=generator)
    x = 1e4 * torch.randn(4096, generator=generator)
    exact = FUSED[name](x.double(), y.double())
    with Reordered("reversed"):
        twin = FUSED[name](x, y)
    assert twin.dtype is torch.float32
    assert not torch.equal(twin, FUSED[name](x, y))
    assert float((twin - exact).abs().max() / exact.abs().max()) < 1e-6
    with Reordered("reversed"):
        assert torch.equal(FUSED[name](x.double(), y.double()), exact)


def test_a_plain_sum_stays_what_it_is() -> None:
    x, y = (torch.randn(64, generator=torch.Generator().manual_seed(seed)) for seed in (1, 2))
    with Reordered("tiled"):
        assert torch.equal(x + y, torch.add(x, y))
        assert torch.equal(x - 2, torch.sub(x, 2))
        assert torch.equal(3 + x, torch.add(x, 3))
        assert torch.equal(x.add(y, alpha=1), torch.add(x, y))
