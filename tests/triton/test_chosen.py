"""The host may choose what is copied, launched on, filled in and returned, as long as it does not choose by values."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.quickly import read_table
from tests.triton import lab

from pypto_op.triton.run import looking
from pypto_op.triton.run.case import Case
from pypto_op.triton.run.judging import looks
from pypto_op.triton.run.judging.judgement import Judgement
from pypto_op.triton.run.processes.sessions import Told
from pypto_op.vocabulary import Outcome

pytestmark = pytest.mark.slow

TABLE: dict[str, dict[str, dict[str, Any]]] = read_table(lab.HERE / "chosen.yaml")
KERNELS = """
import math

import numpy as np

STATE = {}


@triton.jit
def halves_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    value = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(out_ptr + offsets, tl.where(offsets % 8 < 4, value, -value), mask=offsets < n)


def look(x):
    space = bytearray(4 * x.numel())
    torch.frombuffer(space, dtype=torch.float32).copy_(x)
    return memoryview(space).cast("f")


class Seen:
    def __init__(self, x):
        self.__array_interface__ = {"data": (x.data_ptr(), False), "shape": tuple(x.shape), "typestr": "<f4", "version": 3}


def positive(x):
    return int(np.asarray(Seen(x)).sum() > 0)


def order(x):
    values = look(x)
    return sorted(range(len(values)), key=lambda i: values[i])
"""


def verified(kind: str, name: str, place: Path) -> dict[str, Any]:
    entry = TABLE[kind][name]
    task = lab.task(entry["reference"], entry["inputs"], init=entry.get("task_init", ""))
    task = task.replace("import torch.nn as nn", "import torch.nn as nn\nimport torch.nn.functional as F", 1)
    return lab.verify(lab.folder(place, task, lab.impl(entry["forward"], init=entry.get("init", ""), kernels=KERNELS)))


@pytest.mark.parametrize("name", sorted(TABLE["cheats"]))
def test_what_the_host_chose_by_values_is_refused(name: str, place: Path) -> None:
    result = verified("cheats", name, place)
    assert lab.first_error(result) == "HostComputed", result["failures"]


@pytest.mark.parametrize("name", sorted(TABLE["honest"]))
def test_what_it_chose_by_shapes_and_turns_passes(name: str, place: Path) -> None:
    result = verified("honest", name, place)
    assert result["status"] == "PASS", result["failures"]


SIGNED = """
DRAWN = 0


def get_inputs():
    global DRAWN
    DRAWN += 1
    return [(torch.rand(20) + 1) * (-1 if DRAWN == 4 else 1), torch.randn(20), torch.randn(20)]
"""
BETWEEN_TWO = {
    "in each call": "return run(copy_kernel, xs[1 + positive(x)])",
    "in the first call ever, and in second calls": """
        known = STATE.setdefault("known", positive(x))
        which, self.called = positive(x) if getattr(self, "called", False) else known, True
        return run(copy_kernel, xs[1 + which])
        """,
    "among what a first call made": """
        known, later = STATE.setdefault("known", positive(x)), hasattr(self, "ring")
        self.ring = getattr(self, "ring", None) or [run(copy_kernel, xs[1]), run(copy_kernel, xs[2])]
        for kept, one in zip(self.ring, xs[1:]):
            kept.copy_(one)
        return run(copy_kernel, self.ring[positive(x) if later else known])
        """,
}


@pytest.mark.parametrize("name", sorted(BETWEEN_TWO))
def test_a_choice_between_two_tensors_is_seen(name: str, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the judged passes, the first and the last of eight, it turns out alike; a look between them shows it."""
    monkeypatch.setattr(looks, "_SECONDS", 60.0)
    monkeypatch.setattr(looks.secrets, "randbelow", lambda limit: limit - 1)
    task = lab.task("return xs[2] * 1 if x.sum() > 0 else xs[1] * 1", "None") + SIGNED
    result = lab.verify(lab.folder(place, task, lab.impl(BETWEEN_TWO[name], kernels=KERNELS)))
    assert lab.first_error(result) == "HostComputed", result["failures"]


def test_a_choice_by_the_sign_of_a_sum_is_seen(place: Path) -> None:
    """Moved upwards, `torch.randn` has a positive sum in each pass but the first; looks and replays lie on either side."""
    task = lab.task("return xs[2] * 1 if x.sum() > 0 else xs[1] * 1", "[torch.randn(20), torch.randn(20), torch.randn(20)]")
    project = lab.folder(place, task, lab.impl(BETWEEN_TWO["in each call"], kernels=KERNELS))
    found = {lab.first_error(lab.verify(project))}
    if "HostComputed" not in found:  # all sums had one sign by chance; then the source alone tells
        found.add(lab.first_error(lab.verify(project)))
    assert "HostComputed" in found and found <= {"HostComputed", "Degenerate"}


def test_looks_end_where_they_take_long_and_the_second_pass_comes_once() -> None:
    for took, each in ((0.0, 0.0), (1e9, 0.0), (0.0, 1e9)):
        found: list[looks.Turn] = []
        for turn in looks.turns(time.monotonic(), took, lambda: each * (len(found) - found.count(looks.Turn.JUDGED))):  # noqa: B023
            found.append(turn)
        assert found.count(looks.Turn.JUDGED) == 1 and len(found) == 1 + (0 if took else 1 if each else 6)


def test_a_look_says_that_another_one_follows_only_where_it_does() -> None:
    for _ in range(20):
        found = list(looks.turns(time.monotonic(), 0.0, lambda: 0.0))
        follows = [one is looks.Turn.LOOK_BEFORE_LOOK for one in found]
        assert follows == [looks.Turn.JUDGED not in pair and len(pair) == 2 for pair in (found[at : at + 2] for at in range(7))]


class Task:
    """Stands for the task's process, and tells what it is asked."""

    def __init__(self) -> None:
        self.steps: list[str] = []
        self.drawn = [threading.Event() for _ in range(9)]

    def open(self, seed: int) -> None:
        self.steps.append("open")

    def case(self, index: int, seed: int, **how: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        turn = self.steps.count("case")
        self.steps.append("case")
        self.drawn[turn].set()
        return {"inputs": [], "init": [], "turn": turn}, {}


class Run:
    """Stands for a verification of some cases."""

    def __init__(self, cases: int) -> None:
        self.cases, self.calls = [Case(index) for index in range(cases)], []  # type: ignore[var-annotated]

    def tighten(self, *sessions: Any) -> None:
        assert sessions

    def compared(self, case: Case, right: Judgement, *more: Any) -> Judgement:
        return right

    def keep(self, case: Case, number: int, judgement: Judgement, begin: float) -> None:
        case.judgement = judgement


def looks_of(run: Run, task: Task, candidate: Callable[[int], Any]) -> looking.Looks:
    def called(given: dict[str, Any], seed: int, **how: Any) -> tuple[None, None, dict[str, Any]]:
        candidate(given["turn"])
        return None, None, {"seconds": 1.0}

    return looking.Looks(run, task, SimpleNamespace(run=called))  # type: ignore[arg-type]


def test_the_next_look_is_drawn_while_the_implementation_runs_on_the_last() -> None:
    run, task, seen = Run(1), Task(), []  # type: ignore[var-annotated]

    def candidate(turn: int) -> None:
        ahead = len(seen) < 1  # the first of two looks
        assert task.drawn[turn + 1].wait(20 if ahead else 0.2) is ahead
        seen.append(turn)

    with looks_of(run, task, candidate) as further:
        further.one(goes_on=True)
        further.one(goes_on=False)
    assert seen == [0, 1] and task.steps == ["open", "case"] * 2 and further.spent == 2.0 and len(set(run.calls)) == 2


def test_no_look_is_drawn_when_every_case_failed() -> None:
    """The last case fails after the next look is planned, the first one within it."""
    run, task = Run(2), Task()

    def candidate(turn: int) -> None:
        if turn:
            raise Told("RuntimeError", "it failed", Outcome.EXCEPTION)

    with looks_of(run, task, candidate) as further:
        further.one(goes_on=True)
        further.one(goes_on=True)
    assert task.steps == ["open", "case", "case"] * 2 and not any(case.judgement.ok for case in run.cases)


def test_what_was_drawn_for_a_look_that_does_not_come_is_given_up(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(looks, "turns", lambda *given: iter([looks.Turn.LOOK_BEFORE_LOOK, looks.Turn.JUDGED]))
    project = lab.folder(place, lab.task("return xs[0] * 1", "[torch.randn(64)]"), lab.impl("return run(copy_kernel, x)"))
    result = lab.verify(project)
    assert result["status"] == "PASS", result["failures"]
