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
     (lambda: torch.where(NORMAL > 50, EVEN, NORMAL), "where")],
    ids=["relu6", "in_place", "leaky", "whole", "nan", "huber", "nothing_through", "where"],
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
     lambda: torch.exp(EVEN), lambda: (F.relu(EVEN), F.relu(NORMAL))],
    ids=["relu", "in_place", "huber", "no_bound", "one_of_two_calls"],
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
    even, normal, whole = idle.reaching([EVEN, EVEN, WHOLE], {"relu in line 3": False})
    assert even.min() == pytest.approx(-8) and even.max() == pytest.approx(8) and torch.equal(whole, WHOLE)
    (normal,) = idle.reaching([NORMAL], {"clamp in line 3": False})
    assert normal.abs().max() == pytest.approx(2**14)
    (lost,) = idle.reaching([NORMAL], {"nan_to_num in line 3": False})
    assert bool(lost.isnan().any()) and bool(lost.isinf().any())
    (small, large) = idle.reaching([WHOLE.to(torch.uint8), WHOLE], {"clamp in line 3": True})
    assert (int(small.max()), int(large.min()), int(large.max())) == (255, -(2**14), 2**14)
    assert idle.reaching([WHOLE], {"relu in line 3": False}) is None


def test_what_stays_idle_is_said() -> None:
    assert idle.told([]) == []
    assert idle.told(["relu in line 3"])[0].startswith("of the reference relu in line 3 changed nothing in any pass")
