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


def squeezed(x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    """Every second row of those that count."""
    real = torch.arange(x.shape[1]).reshape(1, -1, 1) < lengths.reshape(-1, 1, 1)
    return torch.where(real, x, 0.0)[:, ::2]


def test_nan_lies_behind_lengths_and_not_among_real_rows_that_nothing_takes():
    """A product with a matrix of weights multiplies such rows by 0."""
    x, lengths = torch.linspace(-3.0, 3.0, 96).reshape(3, 8, 4), torch.tensor([8, 5, 2])
    made = planted(squeezed, x, lengths)
    behind = (torch.arange(8).reshape(1, -1) >= lengths.reshape(-1, 1)).unsqueeze(-1).expand(3, 8, 4)
    assert torch.equal(made["NaN"][0].isnan(), behind)
    skipped = (torch.arange(8) % 2 == 1).reshape(1, -1, 1) | behind
    assert torch.equal(made["huge values"][0].abs() == 1e4, skipped), "huge values hide in no product with 0"


@pytest.mark.parametrize("lengths", [torch.tensor([8, 5, 2]), torch.tensor([8, 8, 8])], ids=["zeros behind", "nothing behind"])
def test_no_nan_lies_among_real_rows_where_none_may_lie_behind_them(lengths):
    x = torch.linspace(-3.0, 3.0, 96).reshape(3, 8, 4)
    x = torch.where(torch.arange(8).reshape(1, -1, 1) < lengths.reshape(-1, 1, 1), x, 0.0)
    assert "NaN" not in planted(squeezed, x, lengths)


def test_nan_lies_where_gradients_say_in_a_tensor_of_which_no_lengths_speak():
    pages, table = torch.linspace(-3.0, 3.0, 32).reshape(4, 8), torch.tensor([2, 0])
    made = planted(lambda pages, table: pages[table].sum(dim=0), pages, table)
    assert torch.equal(made["NaN"][0].isnan().all(dim=1), torch.tensor([False, True, False, True]))


def test_nan_lies_behind_lengths_and_under_flags_at_once():
    x, lengths = torch.linspace(-3.0, 3.0, 24).reshape(3, 8), torch.tensor([8, 5, 2])
    keep = torch.tensor([True, False, True])
    made = planted(lambda x, n, keep: torch.where((torch.arange(8) < n[:, None]) & keep[:, None], x, 0.0), x, lengths, keep)
    wanted = (torch.arange(8) >= lengths[:, None]) | ~keep[:, None]
    assert torch.equal(made["NaN"][0].isnan(), wanted)
