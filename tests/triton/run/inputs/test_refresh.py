"""Values of further calls: others each time, but what an operator may rely on stays."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tests.triton import lab

from pypto_op.triton.bench.benchmark import benchmark_triton
from pypto_op.triton.bench.request import Request
from pypto_op.triton.run.inputs.refresh import refresh

COUNTS = """
@triton.jit
def bucket_kernel(x_ptr, edges_ptr, out_ptr, n, count, BLOCK: tl.constexpr, EDGES: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    places = tl.arange(0, EDGES)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=0.0)
    edges = tl.load(edges_ptr + places, mask=places < count, other=float("inf"))
    tl.store(out_ptr + offsets, tl.sum((edges[None, :] < x[:, None]).to(tl.int64), 1), mask=offsets < n)
"""
FORWARD = """
out = torch.empty(x.shape, dtype=torch.int64, device=x.device)
bucket_kernel[(triton.cdiv(x.numel(), 64),)](x, xs[1], out, x.numel(), xs[1].numel(), BLOCK=64, EDGES=32)
return out
"""


def _later(tensor: torch.Tensor, shift: int) -> torch.Tensor:
    working = tensor.clone()
    refresh([working], [tensor], shift)
    return working


@pytest.mark.slow
@pytest.mark.parametrize("edges", [31, 5])
def test_a_kernel_that_counts_edges_is_timed_although_a_search_halves_them(edges: int, place: Path) -> None:
    task = lab.task("return torch.bucketize(x, xs[1])", f"[torch.randn(200), torch.randn({edges}).sort().values]")
    project = lab.folder(place, task, lab.impl(FORWARD, kernels=COUNTS))
    assert lab.verify(project)["status"] == "PASS"
    (row,) = benchmark_triton(project, Request(target="interpret", warmup=1, repeats=6, checked=5))["per_shape_results"]
    assert row["status"] == "pass", row


@pytest.mark.parametrize("shift", [1, 2, 4])
def test_what_an_operator_relies_on_stays(shift: int) -> None:
    draws = torch.Generator().manual_seed(3)
    drawn = torch.randn(12, 12, generator=draws)
    assert bool((_later(drawn.flatten().sort().values, shift).diff() >= 0).all())
    assert bool((_later(drawn.sort(1, descending=True).values, shift).diff(dim=1) <= 0).all())
    symmetric = _later(drawn + drawn.mT, shift)
    assert torch.equal(symmetric, symmetric.mT)
    assert torch.allclose(_later(drawn.softmax(-1), shift).sum(-1), torch.ones(12))
    signs = drawn[0].sign()
    assert set(_later(signs, shift).tolist()) == {-1.0, 1.0}


@pytest.mark.parametrize("shift", [1, 2, 4])
def test_each_call_has_other_values_all_the_same(shift: int) -> None:
    """A kernel that returns what it kept of the call before must be wrong in all of these."""
    draws = torch.Generator().manual_seed(3)
    drawn = torch.randn(12, 12, generator=draws)
    kinds = [
        drawn,
        drawn.half(),
        drawn.to(torch.float8_e4m3fn),
        torch.complex(drawn, drawn.mT),
        drawn.softmax(-1),
        drawn + drawn.mT,
        drawn.flatten().sort().values,
        (9 * drawn).round(),
    ]
    kinds += [drawn.to(torch.float8_e4m3fn), torch.complex(drawn, drawn.mT)]
    kinds += [drawn.abs().mul(100).to(dtype) for dtype in (torch.uint8, torch.uint16, torch.uint32, torch.uint64)]
    kinds += [drawn[0].sign(), (100 * drawn).long(), torch.randint(0, 2, (40,), generator=draws).bool()]
    for tensor in kinds:
        wide = torch.complex128 if tensor.is_complex() else torch.float64
        assert not torch.equal(_later(tensor, shift).to(wide), tensor.to(wide)), tensor
    totals = [drawn, (9 * drawn).round()]  # a sum over everything changes, too
    for tensor in totals:
        assert abs(float(_later(tensor, shift).sum() - tensor.sum())) > 0.01 * abs(float(tensor.sum()))
    assert torch.equal(_later(drawn, 0), drawn)
