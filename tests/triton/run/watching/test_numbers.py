"""A number of the host that goes through a tensor of PyTorch's and comes back is no data; one of a weight, or of an input, is."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.triton import lab

pytestmark = pytest.mark.slow

KERNEL = """
    @triton.jit
    def scaled(x_ptr, out_ptr, factor, n, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n) * factor, mask=i < n)
"""
LINES = "out = torch.empty_like(x)\nscaled[(4,)](x, out, factor, x.numel(), BLOCK=64)\nreturn out"


@pytest.mark.parametrize(
    ("line", "status"),
    [
        ("factor = torch.tensor(self.factor, dtype=x.dtype, device=x.device).item()", "PASS"),
        ("factor = float(torch.tensor(self.factor, device=x.device))", "PASS"),
        ("factor = float(torch.tensor([self.factor, 1.0], device=x.device).tolist()[0])", "PASS"),
        ("factor = self.weight.item()", "FAIL"),
        ("factor = self.factor * float(x[0, 0] == x[0, 0])", "FAIL"),
    ],
)
def test_a_fraction_of_the_host_comes_back_from_a_tensor(line: str, status: str, place: Path) -> None:
    init = "self.factor = 0.75\nself.weight = nn.Parameter(torch.tensor(0.75))"
    task = lab.task("return x * 0.75", "[torch.randn(5, 40)]", init=init)
    result = lab.verify(lab.folder(place, task, lab.impl(f"{line}\n{LINES}", init=init, kernels=KERNEL)))
    assert result["status"] == status, result["failures"] or result["caveats"]
