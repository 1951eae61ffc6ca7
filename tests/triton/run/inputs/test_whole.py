"""Whole numbers among the arguments: which are tried, and what is said (fresh/ignored_arguments.yaml has whole files)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from tests.triton import lab

from pypto_op.triton.run.inputs import whole

DRAWN = torch.randn(4, 6)


def _forward(x: Any, k: int, dim: int, flag: bool, factor: float, count: Any) -> None: ...


def test_whole_numbers_and_flags_are_found_with_their_names() -> None:
    found = whole.found([DRAWN, 3, -1, True, 2.0, torch.tensor([5])], _forward)
    assert found == [("1", 3, "k", False), ("2", -1, "dim", True), ("3", True, "flag", True), ("5", 5, "count", False)]
    assert whole.always([found, [("1", 3, "k", False), ("2", 0, "dim", True)]]) == [("1", 3, "k", False)]
    assert whole.others(3) == [4, 2, 6] and whole.others(True) == [False]


@pytest.mark.parametrize(("number", "may"), [(4, True), (6, True), (24, True), (5, False), (1, False)])
def test_a_kernel_may_ask_a_tensor_for_a_size(number: int, may: bool) -> None:
    assert whole.found([DRAWN, number], _forward) == [("1", number, "k", may)]


def test_whole_numbers_in_lists_and_dicts_are_found_and_changed_where_they_stand() -> None:
    given = [DRAWN, [7, 2.0], {"limit": 9, "axis": 3}]
    found = whole.found(given, lambda x, sizes, options: None)
    assert found == [
        ("1/0", 7, "sizes.0", False), ("2/limit", 9, "options.limit", False), ("2/axis", 3, "options.axis", True),
    ]  # fmt: skip
    assert whole.moved(given, "2/limit", 8)[1:] == [[7, 2.0], {"limit": 8, "axis": 3}]
    assert whole.told(found[1], 8, ignored=True).startswith("argument 2 (options.limit) is ignored")


def test_another_number_keeps_its_kind() -> None:
    number, flag, tensor = 3, True, torch.tensor([5], dtype=torch.int32)
    assert whole.moved([DRAWN, number], "1", 4)[1] == 4
    assert whole.moved([flag], "0", False) == [False]
    (moved,) = whole.moved([tensor], "0", 6)
    assert moved.tolist() == [6] and moved.dtype is torch.int32 and tensor.tolist() == [5]


@pytest.mark.parametrize(
    ("after", "shown"), [(DRAWN + 1, True), (DRAWN.clone(), False), (DRAWN[:3], False), (DRAWN.double(), False)]
)
def test_another_answer_of_the_same_structure_shows_something(after: torch.Tensor, shown: bool) -> None:
    assert whole.shows([DRAWN], [after]) is shown


AXIS = """
    import torch
    import torch.nn as nn


    class Model(nn.Module):
        def forward(self, x, dim):
            return torch.softmax(x, dim)


    def get_inputs():
        return [torch.randn(8, 8), -1]


    def get_init_inputs():
        return []
"""
KERNEL = """
@triton.jit
def soft_kernel(x_ptr, out_ptr, N: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    x = tl.load(x_ptr + i)
    e = tl.exp(x - tl.max(x, 0))
    tl.store(out_ptr + i, e / tl.sum(e, 0))
"""


@pytest.mark.slow
def test_an_axis_that_is_ignored_is_said(place: Path) -> None:
    forward = "out = torch.empty_like(x)\nsoft_kernel[(8,)](x, out, N=8)\nreturn out"
    result = lab.verify(lab.folder(place, AXIS, lab.impl(forward, kernels=KERNEL)))
    assert result["status"] == "PASS", result["failures"]
    assert any("argument 1 (dim) is ignored" in said for said in result["caveats"])
