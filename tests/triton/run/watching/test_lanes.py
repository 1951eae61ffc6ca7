"""What the interpreter decides and a device may decide otherwise: lanes that nothing fills, a configuration, a product's bits."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.triton import lab

pytestmark = pytest.mark.slow

KERNELS = """
@triton.jit
def sum_kernel(x_ptr, out_ptr, n, OTHER: tl.constexpr, BLOCK: tl.constexpr):
    row, cols = tl.program_id(0), tl.arange(0, BLOCK)
    if OTHER:
        x = tl.load(x_ptr + row * n + cols, mask=cols < n, other=0.0)
    else:
        x = tl.load(x_ptr + row * n + cols, mask=cols < n)
    tl.store(out_ptr + row, tl.sum(x * x))


@triton.autotune(configs=[triton.Config({"BLOCK": 32 * size, "WRONG": size == LAST}) for size in (1, 2, 4, 8, 16, 32)], key=["n"])
@triton.jit
def silu_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr, WRONG: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    y = x * tl.sigmoid(x)
    tl.store(out_ptr + i, y * 1.01 if WRONG else y, mask=i < n)
"""
SUM = lab.task("return (x * x).sum(1)", "[torch.randn(6, 50)]")
SILU = lab.task("return torch.nn.functional.silu(x)", "[torch.randn(300)]")


@pytest.mark.parametrize("other", [False, True])
def test_a_sum_of_lanes_that_nothing_fills_is_told(other: bool, place: Path) -> None:
    forward = f"out = x.new_empty(6)\nsum_kernel[(6,)](x, out, 50, OTHER={other}, BLOCK=64)\nreturn out"
    result = lab.verify(lab.folder(place, SUM, lab.impl(forward, kernels=f"LAST = 0\n{KERNELS}")))
    assert result["status"] == "PASS", result["failures"]
    assert any("Triton leaves undefined" in line for line in result["caveats"]) is not other


@pytest.mark.parametrize("last", [0, 1, 16, 32])
def test_a_configuration_that_is_wrong_is_refused_whichever_it_is(last: int, place: Path) -> None:
    forward = 'out = torch.empty_like(x)\nsilu_kernel[lambda meta: (triton.cdiv(300, meta["BLOCK"]),)](x, out, 300)\nreturn out'
    kernels = f"LAST = {last}\n{KERNELS}"
    result = lab.verify(lab.folder(place, SILU, lab.impl(forward, kernels=kernels)))
    if last:
        assert lab.first_error(result) == "PrecisionError", result
        return
    assert result["status"] == "PASS", result["failures"]
    assert not [line for line in result["caveats"] if "configurations" in line]


PRODUCT = """
@triton.jit
def product_kernel(x_ptr, y_ptr, out_ptr, K: tl.constexpr, PRECISION: tl.constexpr):
    r, k = tl.arange(0, 16), tl.arange(0, K)
    x = tl.load(x_ptr + r[:, None] * K + k[None, :])
    y = tl.load(y_ptr + k[:, None] * 16 + r[None, :])
    tl.store(out_ptr + r[:, None] * 16 + r[None, :], tl.dot(x, y, input_precision=PRECISION))
"""


@pytest.mark.parametrize("precision", ["ieee", "tf32"])
def test_a_product_that_a_device_may_round_is_told(precision: str, place: Path) -> None:
    asked = lab.task("return x @ xs[1]", "[torch.randn(16, 64), torch.randn(64, 16)]")
    forward = f'out = x.new_empty(16, 16)\nproduct_kernel[(1,)](x, xs[1], out, K=64, PRECISION="{precision}")\nreturn out'
    result = lab.verify(lab.folder(place, asked, lab.impl(forward, kernels=PRODUCT)))
    assert result["status"] == "PASS", result["failures"]
    assert any("rounds its operands to TF32" in line for line in result["caveats"]) is (precision == "tf32")


NORM = """
@triton.jit
def norm_kernel(x_ptr, mean_ptr, out_ptr, momentum, KEEPS: tl.constexpr, N: tl.constexpr, C: tl.constexpr):
    j, i = tl.program_id(0), tl.arange(0, N)
    x = tl.load(x_ptr + i * C + j)
    mean = tl.sum(x) / N
    d = x - mean
    tl.store(out_ptr + i * C + j, d / tl.sqrt(tl.sum(d * d) / N + 1e-5))
    if KEEPS:
        tl.store(mean_ptr + j, (1 - momentum) * tl.load(mean_ptr + j) + momentum * mean)
"""


@pytest.mark.parametrize("keeps", [True, False])
def test_a_buffer_that_forward_should_change_is_told(keeps: bool, place: Path) -> None:
    """A norm's running mean is no output."""
    init = "self.register_buffer('mean', torch.zeros(4))"
    lines = "self.mean.mul_(0.9).add_(0.1 * x.mean(0))\nreturn (x - x.mean(0)) / (x.var(0, unbiased=False) + 1e-5).sqrt()"
    asked = lab.task(lines, "[torch.randn(64, 4)]", init=init)
    forward = f"out = torch.empty_like(x)\nnorm_kernel[(4,)](x, self.mean, out, 0.1, KEEPS={keeps}, N=64, C=4)\nreturn out"
    result = lab.verify(lab.folder(place, asked, lab.impl(forward, init=init, kernels=NORM)))
    assert result["status"] == "PASS", result["failures"]
    assert any("forward of the reference changes mean" in line for line in result["caveats"]) is not keeps


SCALE = """
@triton.jit
def scale_kernel(x_ptr, w_ptr, out_ptr, N: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(out_ptr + i, tl.load(x_ptr + i) * tl.load(w_ptr + tl.arange(0, N)))
"""


@pytest.mark.parametrize("follows", [True, False])
def test_a_constructor_whose_work_does_not_follow_loaded_weights_is_told(follows: bool, place: Path) -> None:
    init = "self.w = nn.Parameter(torch.rand(32))"
    asked = lab.task("return x * self.w", "[torch.randn(6, 32)]", init=init)
    used = "self.w" if follows else "self.table"
    forward = f"out = torch.empty_like(x)\nscale_kernel[(6,)](x, {used}, out, N=32)\nreturn out"
    built = f"{init}\nself.table = self.w.detach().clone()"
    result = lab.verify(lab.folder(place, asked, lab.impl(forward, init=built, kernels=SCALE)))
    assert result["status"] == "PASS", result["failures"]
    assert any("loaded after its constructor" in line for line in result["caveats"]) is not follows
