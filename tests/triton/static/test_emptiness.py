"""A wrapper may hand on what no kernel wrote where a tensor has no element: there is nothing to compute then."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.triton import lab

from pypto_op.triton.static.policy import load_policy
from pypto_op.triton.static.validate import read_file

KERNEL = """
import math

@triton.jit
def doubled(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, 2 * tl.load(x_ptr + i, mask=i < n), mask=i < n)


def launched(x):
    flat = x.reshape(-1)
    n, shape = flat.numel(), x.shape
    rows, columns = shape
    EARLY
    out = torch.empty_like(flat)
    doubled[(triton.cdiv(n, 64),)](flat, out, n, BLOCK=64)
    return out.view(rows, columns)
"""
CASES = """
def get_input_groups():
    return [[torch.randn(6, 40)], [torch.randn(0, 40)]]
"""


def _file(early: str) -> str:
    return lab.impl("return launched(x)", kernels=KERNEL.replace("EARLY", early))


@pytest.mark.parametrize(
    ("condition", "right"),
    [
        ("n == 0", True),
        ("not n", True),
        ("x.nelement() == 0", True),
        ("1 > n", True),
        ("n <= 0", True),
        ("rows == 0 or columns == 0", True),
        ("rows * columns == 0", True),
        ("len(x) == 0", True),
        ("x.size(0) == 0", True),
        ("0 in shape", True),
        ("shape[:1][0] == 0", True),
        ("math.prod(shape) == 0", True),
        ("torch.numel(x) == 0", True),
        ("n == 1", False),
        ("n", False),
        ("n > 0", False),
        ("rows // 9 == 0", False),
        ("n % 8 == 0", False),
        ("rows == 0 or n > 4", False),
        ("len(shape) == 3", False),
        ("x.dim() == 0", False),
    ],
)
def test_an_input_without_elements_may_be_returned(condition: str, right: bool, tmp_path: Path) -> None:
    for early in (f"if {condition}:\n        return x", f"if {condition}: return x.clone()"):
        (tmp_path / "impl.py").write_text(_file(early), encoding="utf-8")
        assert read_file(tmp_path / "impl.py", load_policy(None)).result["valid"] is right


def test_what_pytorch_computes_there_is_still_denied(tmp_path: Path) -> None:
    (tmp_path / "impl.py").write_text(_file("if n == 0:\n        return torch.exp(x)"), encoding="utf-8")
    assert not read_file(tmp_path / "impl.py", load_policy(None)).result["valid"]


def test_one_of_two_sides_may_be_an_input_without_elements(tmp_path: Path) -> None:
    text = lab.impl("return x if x.numel() == 0 else launched(x)", kernels=KERNEL.replace("EARLY", "pass"))
    for condition, right in (("x.numel() == 0", True), ("x.numel() == 240", False)):
        (tmp_path / "impl.py").write_text(text.replace("x.numel() == 0", condition), encoding="utf-8")
        assert read_file(tmp_path / "impl.py", load_policy(None)).result["valid"] is right


@pytest.mark.slow
@pytest.mark.parametrize(
    ("early", "status"),
    [("if n == 0:\n        return x", "PASS"), ("empty = x[:0]\n    if empty.numel() == 0:\n        return x + 0", "FAIL")],
)
def test_the_run_judges_a_case_without_elements(early: str, status: str, place: Path) -> None:
    task = lab.task("return 2 * x", "[torch.randn(6, 40)]", more=CASES)
    result = lab.verify(lab.folder(place, task, _file(early)))
    assert result["status"] == status, result["failures"]


@pytest.mark.slow
def test_an_input_that_is_returned_because_another_tensor_is_empty_is_seen_by_the_run(place: Path) -> None:
    """The static check lets it pass; no byte of the answer came from a kernel."""
    task = lab.task("return 1.0 * x", "[torch.randn(6, 40)]")
    early = "doubled[(4,)](flat, torch.empty_like(flat), n, BLOCK=64)\n    if x[:0].numel() == 0:\n        return x.clone()"
    result = lab.verify(lab.folder(place, task, _file(early)))
    assert lab.first_error(result) == "NotFromKernel", result["failures"] or result["caveats"]
