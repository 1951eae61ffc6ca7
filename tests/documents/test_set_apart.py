"""What a golden sets apart in an integer input, read from its source."""

from __future__ import annotations

from pathlib import Path

import pytest

from pypto_op.documents.set_apart import set_apart


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("keep = target != ignore_index", {"target": ("ignore_index",)}),
        ("keep = ignore_index == target.to(torch.int64)[:, None]", {"target": ("ignore_index",)}),
        ("wide = target.long()\n    keep = wide.ne(-100)", {"target": (-100,)}),
        ("keep = torch.eq(target, 0) | (target == ignore_index)", {"target": ("ignore_index", 0)}),
        ("keep = target >= 0", {"target": (-1,)}),
        ("keep = target < 5", {}),
        ("keep = target != flag", {}),
        ("keep = logits != ignore_index", {}),
    ],
)
def test_a_comparison_tells_what_is_set_apart(tmp_path: Path, line: str, found: dict[str, tuple[str | int, ...]]) -> None:
    golden = tmp_path / "g_golden.py"
    golden.write_text(f"import torch\n\ndef g_golden(logits, target, ignore_index, flag):\n    {line}\n    return keep\n")
    told = set_apart(golden, "g_golden", ["target"], ["ignore_index"])
    assert {name: tuple(sorted(values, key=str, reverse=True)) for name, values in told.items()} == {
        name: tuple(sorted(values, key=str, reverse=True)) for name, values in found.items()
    }
