"""Operators of a reference that change nothing for the task's inputs are found, reached, or told."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

from pypto_op.triton.run import idle

DRAWS = torch.Generator().manual_seed(0)
EVEN = torch.rand(9, 20, generator=DRAWS)
NORMAL = torch.randn(9, 20, generator=DRAWS)
WHOLE = torch.randint(0, 9, (9, 20), generator=DRAWS)


@pytest.mark.parametrize(
    ("forward", "found"),
    [(lambda: F.relu6(EVEN), "hardtanh"), (lambda: EVEN.clone().relu_(), "relu"), (lambda: F.leaky_relu(EVEN), "leaky_relu"),
     (lambda: torch.clamp(WHOLE, max=100), "clamp"), (lambda: torch.nan_to_num(NORMAL), "nan_to_num"),
     (lambda: F.huber_loss(EVEN, EVEN.flip(0)), "huber_loss"), (lambda: torch.relu(EVEN - 2), "relu"),
     (lambda: torch.where(NORMAL > 50, EVEN, NORMAL), "where"), (lambda: (WHOLE != -1).long(), "ne"),
     (lambda: F.nll_loss(NORMAL, WHOLE[:, 0], ignore_index=10, reduction="sum").long(), "nll_loss"),
     (lambda: torch.nan_to_num(NORMAL.masked_fill(NORMAL > 1, torch.nan)), "nan_to_num")],
    ids=["relu6", "in_place", "leaky", "whole", "nan", "huber", "nothing_through", "where", "token", "ignored", "not_infinite"],
)  # fmt: skip
def test_what_changes_nothing_is_found(forward: Callable[[], torch.Tensor], found: str) -> None:
    with idle.Idle(Path(__file__)) as watch:
        forward()
    assert [key.split(" ")[0] for key in watch.found] == [found]
    assert next(iter(watch.found)).endswith(f"in line {forward.__code__.co_firstlineno}")
    assert list(watch.found.values()) == [forward().dtype is torch.int64]


@pytest.mark.parametrize(
    "forward",
    [lambda: F.relu(NORMAL), lambda: NORMAL.clone().clamp_(max=1), lambda: F.huber_loss(EVEN, EVEN.flip(0), delta=0.1),
     lambda: torch.exp(EVEN), lambda: (F.relu(EVEN), F.relu(NORMAL)), lambda: WHOLE > 3, lambda: EVEN < 9,
     lambda: F.nll_loss(NORMAL, WHOLE[:, 0]), lambda: F.nll_loss(NORMAL, WHOLE[:, 0], ignore_index=int(WHOLE[0, 0]))],
    ids=["relu", "in_place", "huber", "no_bound", "one_of_two_calls", "both_answers", "floats", "usual", "met"],
)  # fmt: skip
def test_what_changes_something_is_not(forward: Callable[[], object]) -> None:
    with idle.Idle(Path(__file__)) as watch:
        forward()
    assert not watch.found


def test_torch_does_not_load_its_compiler_for_it() -> None:
    lines = [
        "import sys, torch",
        "from pathlib import Path",
        "from pypto_op.triton.run.idle import Idle",
        "with Idle(Path('x')):",
        "    torch.ones(2).relu()",
        "sys.exit('torch._dynamo.eval_frame' in sys.modules)",
    ]
    folder = Path(idle.__file__).parents[3]
    assert subprocess.run([sys.executable, "-c", "\n".join(lines)], cwd=folder, check=False).returncode == 0


def test_inputs_reach_what_was_idle() -> None:
    even, normal, whole = next(idle.reaching([EVEN, EVEN, WHOLE], {"relu in line 3": False}))
    assert even.min() == pytest.approx(-8) and even.max() == pytest.approx(8) and torch.equal(whole, WHOLE)
    (normal,) = next(idle.reaching([NORMAL], {"clamp in line 3": False}))
    assert normal.abs().max() == pytest.approx(2**14)
    (lost,) = next(idle.reaching([NORMAL], {"nan_to_num in line 3": False}))
    assert bool(lost.isnan().any()) and bool(lost.isinf().any())
    (small, large) = next(idle.reaching([WHOLE.to(torch.uint8), WHOLE], {"clamp in line 3": True}))
    assert (int(small.max()), int(large.min()), int(large.max())) == (255, -(2**14), 2**14)
    assert not list(idle.reaching([WHOLE], {"relu in line 3": False}))


def test_whole_numbers_go_up_or_down_where_the_reference_takes_only_that() -> None:
    both, up, down = (found for (found,) in idle.reaching([WHOLE], {"where in line 3": True}))
    assert (int(both.min()), int(up.min()), int(down.min())) == (-(2**14), 0, -(2**14))
    assert (int(both.max()), int(up.max()), int(down.max())) == (2**14, 2**14, 8)


def test_whole_numbers_meet_those_of_the_files() -> None:
    every, above, below = (found for (_, found) in idle.meeting([NORMAL, WHOLE], {"ne in line 3": True}, [-1.0, 0.5, 77.0]))
    assert {-1, 77, 8, 9, 10, 19, 20, 21} <= {*every.flatten().tolist()}
    assert int(above.min()) == 0 and int((above != WHOLE).sum()) <= 45
    assert int(below.min()) == -1 and int(below.max()) == 8
    assert not list(idle.meeting([WHOLE], {"relu in line 3": False}, [1.0]))


def test_what_stays_idle_is_said() -> None:
    assert idle.told([]) == []
    assert idle.told(["relu in line 3"])[0].startswith("of the reference relu in line 3 changed nothing in any pass")
