"""Weights that an implementation did not take, and constants that it knows by heart: a message or a caveat names them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.triton import lab

KERNELS = """
@triton.jit
def scaled(x_ptr, w_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    w = tl.load(w_ptr + i % 8, mask=i < n)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n) * w, mask=i < n)
"""
FORWARD = "out = torch.empty_like(x)\nscaled[(1,)](x, self.scale, out, x.numel(), BLOCK=64)\nreturn out"


@pytest.mark.parametrize(("init", "told"), [("torch.rand(8)", False), ("torch.rand(1, 8)", True)])
def test_weights_that_were_not_taken_are_named(init: str, told: bool, place: Path) -> None:
    asked = lab.task("return x * self.scale", "[torch.randn(5, 8)]", init="self.scale = nn.Parameter(torch.rand(8))")
    made = lab.impl(FORWARD.replace("x.numel()", "x.numel() - 8"), init=f"self.scale = nn.Parameter({init})", kernels=KERNELS)
    if told:
        made = made.replace("x.numel() - 8", "x.numel()").replace("torch.rand(1, 8)", "2 + torch.rand(1, 8)")
    result = lab.verify(lab.folder(place, asked, made))
    assert result["status"] == "FAIL"
    assert ("the reference's scale found no parameter" in result["failures"][0]["error_msg"]) is told, result["failures"]


READ = "tl.load(w_ptr + i % 8, mask=i < n)"
SLOPES = "nn.Parameter(torch.tensor([2.0 ** -(i + 1) for i in range(8)]), requires_grad=False)"
HEARTS = {
    "self.scale = " + SLOPES: "tl.exp2(-(i % 8 + 1).to(tl.float32))",
    'self.register_buffer("scale", torch.arange(1.0, 9.0))': "(i % 8 + 1).to(tl.float32)",
}


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("init", sorted(HEARTS))
def test_a_kernel_that_knows_the_constants_of_the_task_by_heart_is_named(init: str, known: bool, place: Path) -> None:
    """A kernel may compute a window or slopes on its own, so that is a caveat and no failure."""
    asked = lab.task("return x * self.scale", "[torch.randn(5, 8)]", init=init)
    made = lab.impl(FORWARD, init=init, kernels=KERNELS.replace(READ, HEARTS[init]) if known else KERNELS)
    result = lab.verify(lab.folder(place, asked, made))
    assert result["status"] == "PASS", result["failures"]
    assert any("constants scale" in caveat for caveat in result["caveats"]) is known, result["caveats"]
