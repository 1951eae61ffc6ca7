"""A golden that only moves elements: `pypto-op check` called a tolerance of 0 too fine for it."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks import fresh
from tests.calling import command

from pypto_op.documents.moves import only_moves

HEAD = "import torch\n\n\ndef op_golden(x, y, index):\n"


@pytest.mark.parametrize(
    ("body", "copies"),
    [
        ("    return x[index.to(torch.int64)]\n", True),
        ("    half = x.shape[-1] // 2\n    return torch.cat([x[..., half:], x[..., :half]], dim=-1).contiguous()\n", True),
        ("    seen = (x > y) & (index >= 0).unsqueeze(-1)\n    return torch.where(seen, x, torch.zeros_like(x))\n", True),
        ("    out = torch.zeros_like(x)\n    out[index * 2 + 1] = y\n    return out\n", True),
        ("    return -x\n", False),
        ("    out = x.clone()\n    out += y\n    return out\n", False),
        ("    return torch.where(index.unsqueeze(-1) > 0, x * 2, x)\n", False),
        ("    return x.to(torch.float16)\n", False),
        ("    part = x.reshape(-1)\n    return part.cumsum(0)\n", False),
        ("    return _helper(x)\n\n\ndef _helper(x):\n    return x.T\n", False),
    ],
)
def test_a_copy_is_told_from_what_computes(body: str, copies: bool, tmp_path: Path) -> None:
    golden = tmp_path / "op_golden.py"
    golden.write_text(HEAD + body)
    assert only_moves(golden, "op_golden", ["x", "y"]) is copies


@pytest.mark.parametrize(("op", "found"), [("paged_gather", False), ("swiglu", True)])
def test_check_takes_a_tolerance_of_0_of_a_copy_alone(op: str, found: bool, tmp_path: Path) -> None:
    root = fresh.workspace(op, tmp_path)
    text = (root / "SPEC.md").read_text()
    start, end = text.index("tolerance:"), text.index("dynamic_axes:")
    (root / "SPEC.md").write_text(text[:start] + "tolerance: {atol: 0.0, rtol: 0.0}\n" + text[end:])
    assert ("rtol 0 is finer than" in command("check", root).stdout) is found
