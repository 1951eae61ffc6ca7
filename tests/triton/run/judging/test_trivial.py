"""Answers that nobody had to compute: a constant, an input, the answer for other inputs."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.triton import lab

CONSTANT = """
@triton.jit
def constant_kernel(out_ptr, n, value: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.full((BLOCK,), value, tl.float32), mask=offsets < n)

@triton.jit
def tiny_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) * 1e-9, mask=mask)

@triton.jit
def softmax_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=float("-inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, 0))
    tl.store(out_ptr + offsets, (e / tl.sum(e, 0)).to(tl.bfloat16), mask=offsets < n)

@triton.jit
def near_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) * 1e-6 + 1.0, mask=mask)
"""

FILLED = """
out = torch.empty_like(x)
constant_kernel[(triton.cdiv(x.numel(), 512),)](out, x.numel(), value={value}, BLOCK=512)
return out
"""
SOFTMAX = lab.task("return torch.softmax(x, -1)", "[torch.randn(131072).bfloat16()]")
TINY = lab.task("return x * 1e-9", "[torch.randn(8, 64)]")
NEAR = lab.task("return x * 1e-6 + 1", "[torch.randn(8, 64)]")


@pytest.mark.parametrize(
    ("task", "value"), [pytest.param(SOFTMAX, "1 / 131072", marks=pytest.mark.slow), (TINY, "1e-9")], ids=["softmax", "tiny"]
)
def test_a_constant_below_the_policys_floor_is_refused(task: str, value: str, place: Path) -> None:
    result = lab.verify(lab.folder(place, task, lab.impl(FILLED.format(value=value), kernels=CONSTANT)))

    assert result["status"] == "FAIL", result
    assert lab.first_error(result) == "PrecisionError"
    assert "without the floor" in result["failures"][0]["error_msg"]


@pytest.mark.parametrize(
    ("task", "forward"),
    [
        (SOFTMAX, "out = torch.empty_like(x)\nsoftmax_kernel[(1,)](x, out, x.numel(), BLOCK=131072)\nreturn out"),
        (TINY, "return run(tiny_kernel, x)"),
    ],
    ids=["softmax", "tiny"],
)
@pytest.mark.slow
def test_a_right_kernel_below_the_floor_passes_without_doubt(task: str, forward: str, place: Path) -> None:
    result = lab.verify(lab.folder(place, task, lab.impl(forward, kernels=CONSTANT)))

    assert result["status"] == "PASS", result
    assert not any("cannot tell" in line for line in result["caveats"])


@pytest.mark.slow
def test_a_task_that_cannot_tell_says_so(place: Path) -> None:
    result = lab.verify(lab.folder(place, NEAR, lab.impl("return run(near_kernel, x)", kernels=CONSTANT)))

    assert result["status"] == "PASS", result
    (line,) = [line for line in result["caveats"] if "cannot tell" in line]
    assert line.startswith("case 1: output 0: a constant and the answer for other inputs")


def test_a_task_whose_answer_is_always_the_same_says_so(place: Path) -> None:
    task = lab.task("return (x * 0).sum(-1) + 7", "[torch.rand(4, 64)]")
    sums = "out = x.new_empty(4)\nconstant_kernel[(1,)](out, 4, value=7.0, BLOCK=4)\nreturn out"

    result = lab.verify(lab.folder(place, task, lab.impl(sums, kernels=CONSTANT)))

    assert result["status"] == "PASS", result
    assert any("the answer for other inputs would pass too" in line for line in result["caveats"])


def test_an_input_in_the_place_of_the_answer_is_refused_or_told(place: Path) -> None:
    """The input's dominant term: the policy lets it pass, and so does the rule without a floor."""
    task = lab.task("return x + 1e-6 * torch.sin(x)", "[torch.rand(8, 64) + 1]")

    result = lab.verify(lab.folder(place, task, lab.impl("return run(copy_kernel, x)")))

    assert any("an input as it is" in line for line in result["caveats"])


@pytest.mark.parametrize(
    ("reference", "copy"),
    [
        ("x.unfold(0, 3, 1).contiguous()", "x.unfold(0, 3, 1).contiguous()"),
        ("x.expand(8, 64).contiguous()", "x.expand(8, 64).contiguous()"),
        ("x.view(8, 8).t().contiguous()", "x.view(8, 8).t().contiguous()"),
        ("x.to(torch.float16)", "x.to(torch.float16)"),
    ],
)
@pytest.mark.slow
def test_a_copy_by_pytorch_that_is_the_whole_task_is_told(reference: str, copy: str, place: Path) -> None:
    """Sanctioned copies pass: that is a policy, and the verdict says what was left for the kernel."""
    task = lab.task(f"return {reference}", "[torch.randn(64)]")

    result = lab.verify(lab.folder(place, task, lab.impl(f"return run(copy_kernel, {copy})")))

    assert result["status"] == "PASS", result
    assert any("output 0: PyTorch's" in line and "was the answer already" in line for line in result["caveats"]), result[
        "caveats"
    ]


def test_a_copy_that_leaves_the_kernel_its_work_is_not_told(place: Path) -> None:
    task = lab.task("return x.view(8, 8).t() * 1e-9", "[torch.randn(64)]")
    forward = "return run(tiny_kernel, x.view(8, 8).t().contiguous())"

    result = lab.verify(lab.folder(place, task, lab.impl(forward, kernels=CONSTANT)))

    assert result["status"] == "PASS", result
    assert not any("answer already" in line for line in result["caveats"])


NEARLY_FLAT = lab.task("return torch.softmax(x * 0.01, -1)", "[torch.randn(65536)]")
FLAT_KERNELS = """
@triton.jit
def whole_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    e = tl.exp(tl.load(x_ptr + offsets, mask=offsets < n, other=float("-inf")) * 0.01)
    tl.store(out_ptr + offsets, e / tl.sum(e, 0), mask=offsets < n)

@triton.jit
def constant_sum_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    e = tl.exp(tl.load(x_ptr + offsets, mask=offsets < n) * 0.01)
    tl.store(out_ptr + offsets, e / 65539.277, mask=offsets < n)
"""


@pytest.mark.parametrize(("kernel", "status"), [("whole_kernel", "PASS"), ("constant_sum_kernel", "FAIL")])
@pytest.mark.slow
def test_a_constant_in_the_place_of_a_sum_that_hardly_matters_is_refused(kernel: str, status: str, place: Path) -> None:
    forward = f"out = torch.empty_like(x)\n{kernel}[(1,)](x, out, x.numel(), BLOCK=65536)\nreturn out"
    result = lab.verify(lab.folder(place, NEARLY_FLAT, lab.impl(forward, kernels=FLAT_KERNELS)))

    assert result["status"] == status, result
    assert (status == "PASS") == (not result["failures"])
    assert not any("leaves them out" in line for line in result["caveats"]) or status == "FAIL"
    if status == "FAIL":
        assert "leaves them out" in result["failures"][0]["error_msg"]


def test_a_sum_that_drowns_in_rounding_is_told(place: Path) -> None:
    """In half precision a right kernel errs by more than the sum's change, so nobody can tell."""
    task = lab.task("return (x + x.square().mean() * 1e-4).half()", "[torch.rand(4096) + 1]")
    result = lab.verify(lab.folder(place, task, lab.impl("return run(copy_kernel, x, torch.empty_like(x, dtype=torch.float16))")))

    assert any("leaves them out" in line for line in result["caveats"]), result
