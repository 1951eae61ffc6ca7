"""Attention in 16 bits rounds the softmax before its product with the values: outputs near 0 are right, but relatively off."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.triton import lab

from pypto_op.triton.bench.benchmark import benchmark_triton
from pypto_op.triton.bench.request import Request

KERNEL = """
@triton.jit
def attention(q_ptr, k_ptr, v_ptr, o_ptr, S, scale, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    m0, b = tl.program_id(0), tl.program_id(1)
    rm = m0 * BM + tl.arange(0, BM)
    d = tl.arange(0, D)
    q = tl.load(q_ptr + b * S * D + rm[:, None] * D + d[None, :], mask=rm[:, None] < S, other=0.0)
    top = tl.full([BM], float("-inf"), tl.float32)
    total = tl.zeros([BM], tl.float32)
    acc = tl.zeros([BM, D], tl.float32)
    for n0 in range(0, (m0 + 1) * BM, BN):
        rn = n0 + tl.arange(0, BN)
        keys = tl.load(k_ptr + b * S * D + rn[None, :] * D + d[:, None], mask=rn[None, :] < S, other=0.0)
        s = tl.dot(q, keys, allow_tf32=False) * scale
        s = tl.where((rm[:, None] >= rn[None, :]) & (rn[None, :] < S), s, float("-inf"))
        higher = tl.maximum(top, tl.max(s, 1))
        p = tl.exp(s - higher[:, None])
        shrink = tl.exp(top - higher)
        total = total * shrink + tl.sum(p, 1)
        v = tl.load(v_ptr + b * S * D + rn[:, None] * D + d[None, :], mask=rn[:, None] < S, other=0.0)
        acc = acc * shrink[:, None] + tl.dot(p.to(v.dtype), v, allow_tf32=False)
        top = higher
    tl.store(o_ptr + b * S * D + rm[:, None] * D + d[None, :], acc / total[:, None], mask=rm[:, None] < S)
"""
FORWARD = """
out = torch.empty_like(x)
grid = (triton.cdiv(x.shape[1], 16), x.shape[0])
attention[grid](x, xs[1], xs[2], out, x.shape[1], x.shape[2] ** -0.5, D=32, BM=16, BN=16)
return out
"""
CHANGES = {
    "right": ("", ""),
    "the softmax in 7 bits": ("p.to(v.dtype)", "p.to(tl.float8e4nv).to(v.dtype)"),
    "another scale": ("* scale", "* scale * 1.01"),
    "the newest key left out": ("rm[:, None] >= rn[None, :]", "(rm[:, None] > rn[None, :]) | (rm[:, None] == 0)"),
    "no rescaling": ("acc * shrink[:, None]", "acc"),
}


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", CHANGES)
def test_attention_of_16_bits(name: str, dtype: str, place: Path) -> None:
    want = "return torch.nn.functional.scaled_dot_product_attention(x, xs[1], xs[2], is_causal=True)"
    asked = lab.task(want, f"[torch.randn(2, 40, 32).to(torch.{dtype}) for _ in range(3)]")
    result = lab.verify(lab.folder(place, asked, lab.impl(FORWARD, kernels=KERNEL.replace(*CHANGES[name]))))
    if name == "right":
        assert result["status"] == "PASS", result["failures"]
    else:
        assert lab.first_error(result) == "PrecisionError", result["failures"]


@pytest.mark.slow
def test_what_is_verified_is_timed_too(place: Path) -> None:
    """Each timed call is judged as the verification judged: on a device, softmax and values meet in 16 bits there, too."""
    want = "return torch.nn.functional.scaled_dot_product_attention(x, xs[1], xs[2], is_causal=True)"
    project = lab.folder(
        place, lab.task(want, "[torch.randn(2, 40, 32).half() for _ in range(3)]"), lab.impl(FORWARD, kernels=KERNEL)
    )
    assert lab.verify(project)["status"] == "PASS"
    (row,) = benchmark_triton(project, Request(target="interpret", warmup=1, repeats=3, checked=3))["per_shape_results"]
    assert row["status"] == "pass", row
