"""What is nearly right around zero alone is refused: in the later passes, inputs that lie there are moved."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tests.triton import lab

from pypto_op.triton.run import skewed

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


@pytest.mark.parametrize(
    "tensor",
    [NORMAL.abs(), NORMAL.sign(), (NORMAL * 4).round(), NORMAL.to(torch.float8_e4m3fn), NORMAL[0, :8], (NORMAL * 100).int(),
     NORMAL.masked_fill(NORMAL > 2, float("inf")), NORMAL + 2, torch.zeros(0), torch.where(NORMAL > 0, 0.5, -0.5)],
    ids=["positive", "signs", "whole", "float8", "few", "integers", "infinite", "aside", "none", "two_values"],
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
"""
# name: (reference, input, kernel, shape of the output, MASKED, status)
ROWS = {
    "variance_with_its_padding": ("F.layer_norm(x, (1000,))", "torch.randn(4, 1000)", "norm_kernel", "x.shape", False, "FAIL"),
    "variance": ("F.layer_norm(x, (1000,))", "torch.randn(4, 1000)", "norm_kernel", "x.shape", True, "PASS"),
    "constant_of_a_log": ("x.logsumexp(-1)", "torch.randn(4, 70000).half()", "constant_kernel", "4", False, "FAIL"),
    "log_of_a_sum": ("x.logsumexp(-1)", "torch.randn(4, 70000).half()", "constant_kernel", "4", True, "PASS"),
    "triangle": ("x.sum(-1)", "torch.randn(50, 50).tril()", "lower_kernel", "50", True, "PASS"),
    "reference_that_takes_no_other": ("self.small(x).sum(-1)", "torch.randn(8, 50).tril()", "lower_kernel", "8", True, "PASS"),
    "reference_ending_infinite": ("x.sum(-1) / (x.sum() < 99)", "torch.randn(50, 50).tril()", "lower_kernel", "50", True, "PASS"),
}  # fmt: skip
SMALL = """
    def small(self, x):
        assert x.sum() < 20
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
        assert skewed.TOLD in result["failures"][0]["error_msg"]
