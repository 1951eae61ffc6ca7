"""What a mask leaves out is found where gradients say nothing: a golden that rounds, or compares, has none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from pypto_op.backends.base import RunResult
from pypto_op.backends.worker.unread import unread
from pypto_op.judge.running.staleness import Answered
from pypto_op.judge.running.unread import plantings
from pypto_op.vocabulary import Outcome

X = torch.linspace(-3.0, 3.0, 32).reshape(4, 8)
SCALE = torch.tensor([0.5, 1.0, 2.0, 4.0])


def planted(golden: Callable[..., torch.Tensor], *inputs: torch.Tensor) -> dict[str, Sequence[Any]]:
    """Return what the judge would call a kernel with: the inputs, by what is planted in them."""

    def answer(values: Sequence[Any]) -> RunResult:
        return RunResult(Outcome.OK, outputs=[golden(*values)])

    references: Any = SimpleNamespace(golden=answer, unread=lambda values: unread(golden, values))
    base = Answered({}, 0, inputs, SimpleNamespace(native=answer(inputs)), SimpleNamespace())  # type: ignore[arg-type]
    return {word: made.inputs for word, made in plantings(base, references, lambda _: None, lambda _: None, nan=True)}


def rounded(x: torch.Tensor, scale: torch.Tensor, keep: torch.Tensor) -> torch.Tensor:
    """Whole numbers of the rows, or parts of rows, that a mask keeps, and 0 elsewhere."""
    real = keep != 0
    wide = real.reshape(*real.shape, *[1] * (2 - real.dim()))
    return torch.where(wide, (x / scale.unsqueeze(-1)).round(), 0.0)


@pytest.mark.parametrize(
    "keep",
    [torch.tensor([True, False, True, False]), torch.tensor([1, 0, 1, 0], dtype=torch.int32), torch.arange(32).reshape(4, 8) % 2],
    ids=["bool", "int32", "per element"],
)
def test_nan_lies_where_a_mask_leaves_out_what_is_rounded(keep):
    x, scale, _ = planted(rounded, X, SCALE, keep)["NaN"]
    gone = (keep == 0).reshape(4, -1).expand(4, 8)
    assert torch.equal(x.isnan(), gone), "all that is left out, and nothing else"
    assert torch.equal(scale.isnan(), gone.all(dim=1))


def test_true_may_be_what_is_left_out():
    padding = torch.tensor([False, True, True, False])
    x, _, _ = planted(lambda x, scale, pad: rounded(x, scale, ~pad), X, SCALE, padding)["NaN"]
    assert torch.equal(x.isnan().all(dim=1), padding)


def test_a_number_below_zero_may_leave_out_a_row():
    slot = torch.tensor([3, -1, 0, -1], dtype=torch.int32)
    x, _, _ = planted(lambda x, scale, slot: rounded(x, scale, slot >= 0), X, SCALE, slot)["NaN"]
    assert torch.equal(x.isnan().all(dim=1), slot < 0)


def test_a_mask_that_is_multiplied_by_leaves_out_no_nan():
    keep = torch.tensor([1, 0, 1, 0], dtype=torch.int32)
    found = planted(lambda x, keep: (x * keep.unsqueeze(-1)).round(), X, keep)
    assert "NaN" not in found, "0 times NaN is NaN in the golden, too"
