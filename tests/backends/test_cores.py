"""Who computes on how many threads, what becomes of freed memory, and where a condition of a kernel is said to stand."""

from __future__ import annotations

import inspect
import os
import resource
import statistics

import pytest
import torch

from pypto_op.backends import cores
from pypto_op.backends.worker import askers
from pypto_op.backends.worker.closure import Closure
from pypto_op.backends.worker.guard import Guard
from pypto_op.backends.worker.pypto_hooks import _placed
from pypto_op.triton.run.watching.fence import TritonGuard


@pytest.fixture(autouse=True)
def _as_before():
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def test_the_judge_leaves_the_cores_to_its_workers():
    torch.set_num_threads(3)
    cores.leave_to_workers()
    assert torch.get_num_threads() == 1


@pytest.mark.parametrize(("cpus", "threads"), [(1, 1), (2, 1), (4, 2), (8, 4), (64, 4)])
def test_a_reference_takes_half_of_the_cores_at_most_four(monkeypatch, cpus, threads):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(cpus))
    cores.share_among_references()
    assert torch.get_num_threads() == threads


def test_freed_memory_is_there_for_the_next_tensors_without_a_fault_for_each_page():
    cores.leave_to_workers()

    def made_and_freed() -> int:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        for elements in (1 << 18, 1 << 19, 1 << 20):
            held = [torch.ones(elements) for _ in range(8)]
            assert len(held) == 8
            del held
        return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

    for _ in range(3):
        made_and_freed()
    assert statistics.median(made_and_freed() for _ in range(7)) < 2048, "14336 pages are written to; without, 4065 fault anew"


def test_python_need_not_ask_a_hook_in_vain_at_each_event():
    for watcher in (Guard, TritonGuard, Closure):
        assert watcher._hook.__cantrace__ is False


def test_a_condition_stands_where_pypto_would_find_it_and_a_place_that_is_given_stays():
    def cond(scalar: int, file: str | None, lineno: int | None) -> tuple[str | None, int | None]:
        return file, lineno

    placed = _placed(cond)
    here = inspect.stack()[0]
    assert placed(1) == (here.filename, here.lineno + 1)
    assert placed(1, "kernel.py", 7) == ("kernel.py", 7)
    assert placed(1, file="kernel.py") == ("kernel.py", None)  # pypto refuses one without the other
    assert not askers.BUSY.on
