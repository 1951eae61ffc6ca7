"""The second look: right float32 orders of summation that the contract's rule refuses pass, wrong numbers do not."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from tests.triton import lab

from pypto_op.triton.run.judging.judgement import compare, second_look
from pypto_op.triton.run.judging.natural import is_magnified, is_natural
from pypto_op.triton.run.judging.other_answers import Otherwise
from pypto_op.triton.run.setup.project import Project
from pypto_op.triton.run.setup.request import policy_of


def _in_blocks(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    parts = [(a[:, k : k + 32].unsqueeze(2) * b[k : k + 32].unsqueeze(0)).sum(1) for k in range(0, a.shape[1], 32)]
    return torch.stack(parts).cumsum(0)[-1]


@pytest.fixture(scope="module")
def product() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    a, b = torch.randn(128, 1024) * torch.logspace(0, 3, 128)[:, None], torch.randn(1024, 64)
    return a, b, a.double() @ b.double()


def test_another_order_of_summation_is_natural_and_the_plain_rule_refuses_it(product) -> None:
    a, b, truth = product
    assert not compare(a @ b, _in_blocks(a, b), policy_of(None)).ok
    assert is_natural([(a @ b, _in_blocks(a, b), truth)])


WRONG: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "half": lambda a, b: a.half().float() @ b.half().float(),
    "bfloat16": lambda a, b: a.bfloat16().float() @ b.bfloat16().float(),
    "tail": lambda a, b: a[:, :-1] @ b[:-1],
    "zeros": lambda a, b: torch.zeros(128, 64),
    "nan": lambda a, b: (a @ b).index_fill(0, torch.tensor([3]), float("nan")),
    "small_rows": lambda a, b: a @ b + torch.where(torch.arange(128)[:, None] < 4, 1e-3, 0.0),
}


@pytest.mark.parametrize("name", sorted(WRONG))
def test_wrong_numbers_are_not_natural(name: str, product) -> None:
    a, b, truth = product
    assert not is_natural([(a @ b, WRONG[name](a, b), truth)])


def _backwards(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return _in_blocks(a.flip(1), b.flip(0))


def test_a_reference_that_errs_by_less_than_any_order_excuses_other_orders(product) -> None:
    a, b, truth = product
    leaf = (truth.float(), _in_blocks(a, b), truth)
    assert not is_natural([leaf])
    assert is_natural([leaf], [[a @ b], [_backwards(a, b)]])


@pytest.mark.parametrize("name", sorted(WRONG))
def test_wrong_numbers_are_no_other_order(name: str, product) -> None:
    a, b, truth = product
    assert not is_natural([(a @ b, WRONG[name](a, b), truth)], [[_in_blocks(a, b)], [_backwards(a, b)]])


@pytest.mark.slow
@pytest.mark.parametrize(("first", "status"), [("a", "PASS"), ("a * 1.0000003", "FAIL")])
def test_a_sum_from_the_other_end_passes_where_the_reference_happens_to_be_exact(first: str, status: str, place: Path) -> None:
    """Two terms of three cancel at once in the reference's order, and leave their rounding in the kernel's."""
    task = lab.task("return x.sum(-1)", "[(lambda a, b: torch.stack([a, -a, b], -1))(1000 * torch.randn(600), torch.randn(600))]")
    kernel = f"""
@triton.jit
def total_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = rows < n
    a = tl.load(x_ptr + rows * 3, mask=mask, other=0.0)
    b = tl.load(x_ptr + rows * 3 + 1, mask=mask, other=0.0)
    c = tl.load(x_ptr + rows * 3 + 2, mask=mask, other=0.0)
    tl.store(out_ptr + rows, (c + b) + {first}, mask=mask)
"""
    forward = "out = x.new_empty(len(x))\ntotal_kernel[(10,)](x, out, len(x), BLOCK=64)\nreturn out"
    result = lab.verify(lab.folder(place, task, lab.impl(forward, kernels=kernel)), policy=None)
    assert result["status"] == status, result


@pytest.mark.slow
@pytest.mark.parametrize(("more", "status"), [("", "PASS"), (" + tl.where(tl.abs(s) < 0.02, 1e-5, 0.0)", "FAIL")])
def test_a_kernel_may_subtract_numbers_as_large_as_its_outputs_also_where_inputs_are_small(
    more: str, status: str, place: Path
) -> None:
    """This form of sinh errs by 4e-7 around 0, where the reference and other orders err by 1e-9 once all inputs lie near to 0."""
    made = "self.w = nn.Parameter(torch.randn(2, 64) * 0.5)"
    task = lab.task("return 4 * torch.sinh(xs[0] @ self.w)", "[torch.randn(512, 2)]", init=made)
    kernel = f"""
@triton.jit
def layer_kernel(x_ptr, w_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    row, column = at // 64, at % 64
    s = tl.load(x_ptr + row * 2) * tl.load(w_ptr + column) + tl.load(x_ptr + row * 2 + 1) * tl.load(w_ptr + 64 + column)
    tl.store(out_ptr + at, 2 * (tl.exp(s) - tl.exp(-s)){more})
"""
    forward = "x = xs[0]\nout = x.new_empty(512, 64)\nlayer_kernel[(32,)](x, self.w, out, 512 * 64, BLOCK=1024)\nreturn out"
    result = lab.verify(lab.folder(place, task, lab.impl(forward, kernels=kernel, init=made)), policy=None)
    assert result["status"] == status, result


def test_a_reference_that_is_another_in_float64_excuses_nothing(product) -> None:
    a, b, truth = product
    assert not is_natural([(a @ b, a @ b + 1, truth * (torch.rand_like(truth) > 0.5))])


def test_what_is_no_float_tensor_is_held_to_the_plain_rule(product) -> None:
    """Beside a natural product: a wrong number, a wrong integer, and the right tensors under each other's keys."""
    a, b, truth = product
    want, got = a @ b, _in_blocks(a, b)

    def passes(expected, actual, right) -> bool:
        found = compare(expected, actual, policy_of(None))
        assert found.error_type == "PrecisionError"
        otherwise = Otherwise(truth=lambda: right, rounded=lambda: None, orders=lambda: None, ties=lambda: None)
        return second_look(found, expected, actual, otherwise).ok

    assert passes((want, 2.5, torch.tensor([1])), (got, 2.5, torch.tensor([1])), (truth, 2.5, torch.tensor([1])))
    assert passes(want, [got], truth)
    assert not passes((want, 2.5), (got, 3.5), (truth, 2.5))
    assert not passes((want, torch.tensor([1])), (got, torch.tensor([2])), (truth, torch.tensor([1])))
    assert passes({"a": want, "b": want * 2}, {"b": got * 2, "a": got}, {"a": truth, "b": truth * 2})
    assert not passes({"a": want, "b": want * 2}, {"b": got, "a": got * 2}, {"a": truth, "b": truth * 2})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("reference", "tail"),
    [
        ("return x @ xs[1]", ""),
        ("return x @ xs[1]", "; k -= 16"),
        ("out = torch.empty(32, 32)\nout[:] = x @ xs[1]\nreturn out", ""),
        ("return x.float() @ xs[1].to(torch.float32)", ""),
        ("return torch.zeros(32, 32, dtype=torch.float32) + (x @ xs[1]).type(torch.float32)", ""),
    ],
)
def test_a_long_float32_product_is_verified(reference: str, tail: str, place: Path) -> None:
    """The later references make tensors without a dtype or in float32, which must be float64 where they run in that."""
    shutil.copytree(lab.EXAMPLES / "matmul", place)
    project = Project.at(place, "matmul", "triton_ascend_impl")
    inputs = "[torch.randn(32, 2048) * 100, torch.randn(2048, 32) * 100]"
    project.task.write_text(lab.task(reference, inputs), encoding="utf-8")
    text = project.impl.read_text(encoding="utf-8")
    project.impl.write_text(text.replace("m, k = a.shape", f"m, k = a.shape{tail}"), encoding="utf-8")
    result = lab.verify(project)
    assert result["status"] == ("FAIL" if tail else "PASS"), result
    assert not tail or "\nsecond look: more than" in result["failures"][0]["error_msg"], result["failures"]


def test_a_reference_whose_inputs_magnify_rounding_is_told_by_its_float64_run() -> None:
    near = torch.rand(64, generator=torch.Generator().manual_seed(0)) * 50.0 + 1.0
    rest = near.log().exp() - near
    wide = near.double()
    assert is_magnified([near, rest], [wide, wide.log().exp() - wide])
    assert not is_magnified([near, near.sum()], [wide, wide.sum()])
    assert not is_magnified([rest], None) and not is_magnified([rest], [rest])
