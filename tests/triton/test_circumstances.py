"""A file that asks whether gradients are on, or where an input begins, is called where the answer is another one."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.quickly import examples
from tests.triton import lab

from pypto_op.triton.run.inputs import circumstances

TASK = lab.task("return torch.exp(x)", "torch.randn(8, 64)")
HONEST = {
    "no gradient is wanted": """
        if x.requires_grad and torch.is_grad_enabled():
            raise NotImplementedError("this kernel has no backward")
        return run(exp_kernel, x)
    """,
    "a block for each alignment": """
        block = 512 if x.data_ptr() % 16 == 0 else 64
        out = torch.empty_like(x)
        exp_kernel[(triton.cdiv(x.numel(), block),)](x, out, x.numel(), BLOCK=block)
        return out
    """,
    "weights without gradients": """
        with torch.set_grad_enabled(x.requires_grad):
            out = torch.empty_like(x, requires_grad=False)
        return run(exp_kernel, x, out)
    """,
}
WRONG = {
    "with gradients": "return run(copy_kernel if torch.is_grad_enabled() else exp_kernel, x)",
    "beside an alignment": "return run(exp_kernel if x.data_ptr() % 16 == 0 else copy_kernel, x)",
    "by a name that is looked up": "return run(copy_kernel if getattr(x, 'requires' + '_grad') else exp_kernel, x)",
}


@pytest.mark.parametrize("name", HONEST)
def test_what_is_right_everywhere_passes(name: str, place: Path) -> None:
    result = lab.verify(lab.folder(place, TASK, lab.impl(HONEST[name], kernels=lab.EXP_KERNEL)))
    assert result["status"] == "PASS", result["failures"]
    told = any("judged without gradients" in caveat for caveat in result["caveats"])
    assert told is (name == "no gradient is wanted")


@pytest.mark.parametrize("name", WRONG)
def test_another_answer_elsewhere_is_refused(name: str, place: Path) -> None:
    result = lab.verify(lab.folder(place, TASK, lab.impl(WRONG[name], kernels=lab.EXP_KERNEL)))
    assert lab.first_error(result) == "PrecisionError", result
    assert circumstances.TOLD in result["failures"][0]["error_msg"]


@settings(max_examples=examples(40), deadline=None)
@given(
    shape=st.lists(st.integers(0, 5), max_size=3),
    dtype=st.sampled_from([torch.float32, torch.float16, torch.int64, torch.int8, torch.bool]),
    transposed=st.booleans(),
)
def test_moved_tensors_are_the_same_elsewhere(shape: list[int], dtype: torch.dtype, transposed: bool) -> None:
    tensor = torch.randint(0, 2, shape).to(dtype)
    tensor = tensor.transpose(0, -1) if transposed and tensor.dim() > 1 else tensor
    (moved,) = circumstances.moved([tensor])
    assert (moved.dtype, moved.shape, moved.stride()) == (tensor.dtype, tensor.shape, tensor.stride())
    assert torch.equal(moved, tensor)
    assert not tensor.numel() or moved.data_ptr() % 16 != 0


def test_gradients_are_on_meanwhile() -> None:
    floats, whole = torch.ones(2), torch.ones(2, dtype=torch.int64)
    with torch.no_grad(), circumstances.gradients([floats, {"whole": whole}]):
        assert torch.is_grad_enabled()
        assert floats.requires_grad
    assert not floats.requires_grad
