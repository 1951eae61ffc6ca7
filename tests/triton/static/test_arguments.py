"""What the static check takes an argument of forward for, by its annotation, its default, and what the cases hold."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tests.triton import lab

from pypto_op.triton.run.inputs.arguments import always_plain, plain_ones
from pypto_op.triton.static.policy import load_policy
from pypto_op.triton.static.validate import read_file

FILE = """
@triton.jit
def scaled(x_ptr, out_ptr, factor, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n) * factor, mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x, SIGNATURE):
        factor = 1.0 if given is None else VALUE
        out = torch.empty_like(x)
        scaled[(triton.cdiv(x.numel(), 64),)](x, out, float(factor), x.numel(), BLOCK=64)
        return out
"""
TENSOR, NUMBER = torch.ones(3), {"scale": 2.0}


def _valid(place: Path, signature: str, value: str, cases: list[list[object]] | None = None) -> bool:
    text = lab.IMPORTS + FILE.replace("SIGNATURE", signature).replace("VALUE", value)
    place.write_text(text, encoding="utf-8")
    known = None if cases is None else always_plain([plain_ones(case) for case in cases])
    return bool(read_file(place, load_policy(None), known).result["valid"])


@pytest.mark.parametrize("signature", ["given", "given=None", "given: dict = None", "given: 'dict | None' = None"])
@pytest.mark.parametrize("value", ["given", "given['scale']"])
def test_an_argument_that_is_used_as_a_number_alone_may_be_one(signature: str, value: str, tmp_path: Path) -> None:
    assert _valid(tmp_path / "impl.py", signature, value)


@pytest.mark.parametrize("signature", ["given: torch.Tensor", "given: Optional[torch.Tensor] = None"])
def test_a_tensor_is_none(signature: str, tmp_path: Path) -> None:
    assert not _valid(tmp_path / "impl.py", signature, "given")


def test_an_argument_that_is_used_as_a_tensor_is_no_number(tmp_path: Path) -> None:
    assert not _valid(tmp_path / "impl.py", "given=None", "given.contiguous()")


def test_what_is_nothing_in_some_cases_is_what_it_is_in_the_others() -> None:
    cases: list[list[object]] = [[TENSOR, None, None], [TENSOR, TENSOR, NUMBER]]
    assert always_plain([plain_ones(case) for case in cases]) == [False, False, True]
    assert always_plain([plain_ones(cases[0])]) == [False, False, False]


PERMUTED = """
@triton.jit
def moved(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, *args):
        x = args[0]
        BODY
        out = torch.empty_like(x)
        moved[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), BLOCK=64)
        return out
"""


@pytest.mark.parametrize(
    ("body", "right"),
    [
        ("dims = tuple(int(d) % x.dim() for d in args[1:])", True),
        ("dims = [float(d) for d in args[-2:]]", True),
        ("rest = args[:-2]; bound = float(rest[0])", False),  # the tensor itself
        ("dims = [float(d) for d in args[:]]", False),
        ("k = len(x.shape); dims = [float(d) for d in args[k:]]", False),  # nobody knows where it begins
        ("assert x.untyped_storage().size() >= x.untyped_storage().nbytes()", True),
        ("assert x.untyped_storage().data_ptr() != x.untyped_storage().data_ptr()", True),
        ("first = x.untyped_storage()[0]", False),
        ("all_of_it = list(x.untyped_storage()); bound = float(all_of_it[0])", False),
        ("all_of_it = x.untyped_storage().tolist()", False),
        ("x.untyped_storage().fill_(0)", False),
    ],
)
def test_what_a_part_of_the_arguments_and_a_storage_hold(body: str, right: bool, tmp_path: Path) -> None:
    (tmp_path / "impl.py").write_text(lab.IMPORTS + PERMUTED.replace("BODY", body), encoding="utf-8")
    known = always_plain([plain_ones([TENSOR, 1, 0])])
    assert read_file(tmp_path / "impl.py", load_policy(None), known).result["valid"] is right
