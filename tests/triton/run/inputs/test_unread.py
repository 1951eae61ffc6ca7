"""Elements of inputs that no kernel reads get extremes in one pass (fresh/ignored_arguments.yaml has whole files)."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from pypto_op.triton.run.inputs import unread

DRAWS = torch.Generator().manual_seed(0)
NORMAL = torch.randn(40, 50, generator=DRAWS)


def _read(watch: unread.Unread, tensor: torch.Tensor, elements: Any, on: Any = None) -> None:
    addresses = np.asarray(elements, np.uint64) * np.uint64(tensor.element_size()) + np.uint64(tensor.data_ptr())
    watch._note(addresses, None if on is None else SimpleNamespace(data=np.asarray(on)))


def test_parts_that_were_not_read_are_found() -> None:
    watch, whole, none = unread.Unread(), NORMAL.clone(), NORMAL.clone()
    part, index = NORMAL[:, ::2], torch.arange(9)
    watch.begin([part, whole, none, index])
    _read(watch, part, range(0, 1000))
    _read(watch, part, range(1000, 1999), on=np.arange(999) < 100)
    _read(watch, whole, range(2000))
    _read(watch, index, [3])
    assert watch.found() == {"0": [*range(1100, 1999)]}
    assert watch.found() == {}


def test_extremes_stand_there_and_nowhere_else() -> None:
    kept = NORMAL.clone()
    moved, other = unread.moved([NORMAL, NORMAL], [True, False], {"0": [7, 57, 107, 157], "1": [3]})
    assert torch.equal(NORMAL, kept) and torch.equal(other, NORMAL)
    changed = (moved != NORMAL).flatten().nonzero().flatten().tolist()
    assert changed == [7, 57, 107, 157]
    assert NORMAL.min() <= moved.min() and moved.max() <= NORMAL.max()
    there = moved.flatten()[changed]
    assert bool((there[::2] > 0.95 * NORMAL.max()).all()) and bool((there[1::2] < 0.95 * NORMAL.min()).all())


@pytest.mark.parametrize(
    "tensor",
    [NORMAL[0].sort().values, NORMAL[:40, :40] + NORMAL[:40, :40].T, NORMAL.repeat(1, 2), NORMAL[0].expand(7, 50)],
    ids=["sorted", "symmetric", "twice", "expanded"],
)
def test_what_a_kernel_may_know_by_other_elements_is_left(tensor: torch.Tensor) -> None:
    assert unread.moved([tensor], [True], {"0": [3]}) is None


def test_zeros_stay() -> None:
    lower = NORMAL[:40, :40].tril()
    (moved,) = unread.moved([lower], [True], {"0": [1, 40]})
    assert moved[0, 1] == 0 and moved[1, 0] != lower[1, 0]
