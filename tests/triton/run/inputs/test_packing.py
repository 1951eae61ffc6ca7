"""A slice keeps its strides and its place in memory on its way to the implementation (`run/inputs/packing.py`)."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.quickly import examples

from pypto_op.triton.run.inputs import packing


def _handed_over(tensor: torch.Tensor) -> torch.Tensor:
    (found,) = packing.unpack([part.clone() for part in packing.pack([tensor])])
    return found


@pytest.mark.parametrize("copied", [_handed_over, packing.same_layout])
@settings(deadline=None, max_examples=examples(60))
@given(
    first=st.tuples(st.integers(0, 5), st.integers(0, 5)),
    steps=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    turned=st.booleans(),
)
def test_a_slice_stays_a_slice(
    copied: Callable[[torch.Tensor], torch.Tensor], first: tuple[int, int], steps: tuple[int, int], turned: bool
) -> None:
    whole = torch.arange(64.0).reshape(8, 8)
    part = whole[first[0] :: steps[0], first[1] :: steps[1]]
    part = part.t() if turned else part
    found = copied(part)
    assert torch.equal(found, part)
    assert (found.stride(), found.storage_offset()) == (part.stride(), part.storage_offset())
    before = found.as_strided((part.storage_offset(),), (1,), 0)
    assert torch.equal(before, whole.reshape(-1)[: part.storage_offset()])
    assert found.untyped_storage().data_ptr() != part.untyped_storage().data_ptr()


def test_little_of_a_large_tensor_comes_alone() -> None:
    row = torch.arange(4096.0).reshape(1024, 4)[1000]
    for found in (_handed_over(row), packing.same_layout(row)):
        assert torch.equal(found, row)
        assert found.storage_offset() == 0


def test_an_expanded_row_stays_one() -> None:
    found = _handed_over(torch.arange(8.0)[2:5].expand(4, 3))
    assert found.tolist() == [[2.0, 3.0, 4.0]] * 4
    assert (found.stride(), found.storage_offset()) == ((0, 1), 2)
