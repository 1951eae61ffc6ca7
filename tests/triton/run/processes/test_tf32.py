"""A reference computes float32 products in float32, unless its own file says otherwise; it is timed as PyTorch has them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from tests.triton import lab

from pypto_op.triton.run.processes import tf32


@pytest.fixture(autouse=True)
def _flags() -> Iterator[None]:
    before = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
    torch.backends.cudnn.allow_tf32 = True
    yield
    torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32 = before


@pytest.mark.parametrize(("says", "answers"), [("pass", False), ("torch.backends.cudnn.allow_tf32 = True", True)])
def test_it_is_off_but_where_the_task_says_something(says: str, answers: bool, tmp_path: Path) -> None:
    (tmp_path / "task.py").write_text(f"import torch\n{says}\n", encoding="utf-8")
    tf32.off(tmp_path / "task.py")
    assert torch.backends.cudnn.allow_tf32 is answers
    with tf32.usual():
        assert torch.backends.cudnn.allow_tf32 is True
    assert torch.backends.cudnn.allow_tf32 is answers


@pytest.mark.slow
@pytest.mark.parametrize("says", ["", "torch.backends.cudnn.allow_tf32 = True"])
def test_the_reference_runs_so(says: str, place: Path) -> None:
    """The kernel adds what the task's answer says of the flag: 1 where it is on."""
    forward = "return torch.exp(x) + float(getattr(torch.backends.cudnn, 'allow_' + 'tf32'))"
    kernels = "@triton.jit\ndef kernel(x, o, n, BLOCK: tl.constexpr):\n    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n"
    kernels += f"    tl.store(o + i, tl.exp(tl.load(x + i, mask=i < n)) + {float(bool(says))}, mask=i < n)\n"
    task = lab.task(forward, "[torch.randn(8, 64)]", more=f"\n\n{says}\n")
    result = lab.verify(lab.folder(place, task, lab.impl("return run(kernel, x)", kernels=kernels)))
    assert result["status"] == "PASS", str(result["failures"])[:1500]
