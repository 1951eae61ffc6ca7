"""Where values come from: honest ways to prepare a launch pass, and a verdict speaks of every file that was loaded."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.triton import lab

from pypto_op.triton.bench import gate

SCALED = """
@triton.jit
def scale_kernel(x_ptr, out_ptr, factor, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) * factor, mask=mask)


@triton.jit
def table_kernel(x_ptr, table_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) * tl.load(table_ptr + offsets, mask=mask), mask=mask)
"""
DOUBLED = "return x * 2"
PLAIN = "[torch.randn(64)]"

HONEST = {
    "a table of constants": (
        DOUBLED,
        PLAIN,
        """
        import numpy as np
        table = torch.from_numpy(np.full(64, 2.0, dtype=np.float32))
        out = torch.empty_like(x)
        table_kernel[(1,)](x, table, out, 64, BLOCK=64)
        return out
        """,
        "",
    ),
    "a table that the first call makes": (
        DOUBLED,
        PLAIN,
        """
        if self.table is None:
            self.table = torch.full((64,), 2.0).to(x.dtype)
        out = torch.zeros_like(x)
        out.zero_()
        table_kernel[(1,)](x, self.table, out, 64, BLOCK=64)
        return out
        """,
        "self.table = None",
    ),
    "in place on a copy": (
        DOUBLED,
        PLAIN,
        """
        out = x.clone()
        scale_kernel[(1,)](out, out, 2.0, 64, BLOCK=64)
        return out
        """,
        "",
    ),
    "gaps, a transposition and another dtype": (
        "return (x.double() * 2).t().float()",
        "[torch.randn(8, 8)]",
        """
        rows = torch.empty_strided((8, 8), (16, 1), dtype=torch.float64)
        rows.copy_(x)
        out = torch.empty((8, 8), dtype=torch.float64)
        scale_kernel[(1,)](rows.contiguous(), out, 2.0, 64, BLOCK=64)
        return out.t().to(torch.float32).contiguous()
        """,
        "",
    ),
    "a number that is drawn": (
        "return x / xs[1]",
        "[torch.randn(64), float(torch.rand(())) + 1]",
        """
        out = torch.empty_like(x)
        scale_kernel[(1,)](x, out, 1 / xs[1], 64, BLOCK=64)
        return out
        """,
        "",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(HONEST))
def test_honest_preparation_passes(name: str, place: Path) -> None:
    reference, inputs, forward, init = HONEST[name]
    project = lab.folder(place, lab.task(reference, inputs), lab.impl(forward, init=init, kernels=SCALED))

    result = lab.verify(project)

    failed = result["failures"]
    assert not [entry for entry in failed if entry["error_type"] not in ("Degenerate",)], failed
    if failed:  # what the static check refuses by its policy is not this test's matter
        assert "numpy" in failed[0]["error_msg"]


@pytest.mark.slow
def test_a_helper_that_was_swapped_after_the_pass_closes_the_benchmark(place: Path) -> None:
    helper, line = "expo_triton_common", "from expo_triton_common import copy_kernel\n"
    text = lab.impl("return run(copy_kernel, x)")
    kernel = text[text.index("@triton.jit") : text.index("def run")]
    project = lab.folder(place, lab.task("return x * 1", "[torch.randn(64)]"), text.replace(kernel, line))
    (place / f"{helper}.py").write_text("import triton\nimport triton.language as tl\n\n\n" + kernel)
    (place / "expo_triton_other_impl.py").write_text("ANOTHER = 1\n")
    assert lab.verify(project)["status"] == "PASS"

    (place / "expo_triton_other_impl.py").write_text("ANOTHER = 2\n")
    gate.check(project, "interpret")
    (place / f"{helper}.py").write_text((place / f"{helper}.py").read_text().replace("tl.load(", "1 + tl.load("))

    with pytest.raises(gate.GateClosed, match="changed since it was verified: siblings"):
        gate.check(project, "interpret")
