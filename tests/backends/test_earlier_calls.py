"""What a session tells of the calls before: one process, the same tensors, results that stay what they were."""

from __future__ import annotations

import pytest
import torch

from pypto_op.backends import session as sessions
from pypto_op.backends import sim
from pypto_op.vocabulary import Outcome
from pypto_op.workspace import OpWorkspace

from . import kernels
from .conftest import QUICK

pytestmark = [pytest.mark.sim, pytest.mark.usefixtures("numeric")]

TELLS = """
def double_wrapper(x):
    print("place", x.data_ptr(), x._version, getattr(x, "mark", "new"))
    x.mark = "seen"
    out = torch.empty_like(x)
    double_kernel(x, out)
    return out
"""

KEEPS = """
kept = []


def double_wrapper(x):
    kept.append(torch.empty_like(x)) if not kept else None
    double_kernel(x, kept[0])
    return kept[0]
"""


HANDS_OUT_AGAIN = """
import weakref

last = []


def double_wrapper(x):
    out = last[0]() if last else None
    out = torch.empty_like(x) if out is None else out
    last[:] = [weakref.ref(out)]
    double_kernel(x, out)
    return out
"""


def test_a_call_again_gets_the_same_tensors_with_other_values(operator: OpWorkspace) -> None:
    operator.impl.write_text(kernels.HEAD + kernels.KERNEL + TELLS)
    with sim.SimBackend().open(operator.impl, "double_wrapper", operator, limits=QUICK) as session:
        one = session.run("case", [torch.ones(2, 32)])
        two = session.run("case", [torch.full((2, 32), 3.0)], again=True)
        three = session.run("case", [torch.full((3, 32), 5.0)], again=True)
        four = session.run("case", [torch.full((3, 32), 7.0)])
    assert [float(run.outputs[0][0, 0]) for run in (one, two, three, four)] == [2.0, 6.0, 10.0, 14.0]
    assert [run.call for run in (one, two, three, four)] == [1, 2, 3, 4]
    places = [run.stdout.split() for run in (one, two, three, four)]
    assert places[1] == [*places[0][:3], "seen"], "the same object, address and version"
    assert places[2][3] == "new", "another shape cannot be written into it"
    assert places[3][1] != places[2][1] and places[3][3] == "new"


def test_a_buffer_that_is_used_twice_shows(operator: OpWorkspace) -> None:
    operator.impl.write_text(kernels.HEAD + kernels.KERNEL + KEEPS)
    with sim.SimBackend().open(operator.impl, "double_wrapper", operator, limits=QUICK) as session:
        one = session.run("case", [torch.ones(2, 32)])
        two = session.run("case", [torch.full((2, 32), 3.0)])
    assert (one.shared_outputs, one.changed_results) == ((), (0,)), "the worker's own run on other values writes there again"
    assert two.changed_results == (0,)


def test_who_keeps_results_is_told_of(operator: OpWorkspace) -> None:
    """It need not be wrong; the judge calls on, to see whether they are handed out again."""
    operator.impl.write_text(kernels.GOOD.replace("    return out", "    kept.append(out)\n    return out") + "\nkept = []\n")
    with sim.SimBackend().open(operator.impl, "double_wrapper", operator, limits=QUICK) as session:
        runs = [session.run("case", [torch.ones(2, 32)]) for _ in range(2)]
    assert [(run.results_kept, run.shared_outputs) for run in runs] == [(False, ()), (True, ())]


def test_a_worker_is_replaced_after_so_many_launches_but_never_before_a_call_again(
    operator: OpWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "LAUNCHES_PER_WORKER", 3)  # a first call costs a further run
    operator.impl.write_text(kernels.GOOD)
    with sim.SimBackend().open(operator.impl, "double_wrapper", operator, limits=QUICK) as session:
        calls = [session.run("case", [torch.ones(2, 32)], again=again) for again in (False, False, True, False)]
    assert [run.call for run in calls] == [1, 2, 3, 1]
    assert not any(run.results_kept for run in calls), "an honest wrapper, and pypto, keep no result"


def test_nothing_is_kept_of_a_guess_that_fails(operator: OpWorkspace) -> None:
    operator.impl.write_text(kernels.in_wrapper("raise ValueError('no')"))
    with sim.SimBackend().open(operator.impl, "double_wrapper", operator, limits=QUICK) as session:
        assert session.run("case", [torch.ones(2, 32)], guess=True).outcome is Outcome.EXCEPTION
    assert not (operator.debug_dir / "failures").exists()


def test_a_result_lives_as_long_as_its_caller_needs_it(operator: OpWorkspace) -> None:
    """A wrapper may ask whether the very tensor lives, which no memory of the judge's tells it; nobody else keeps it."""
    operator.impl.write_text(kernels.HEAD + kernels.KERNEL + HANDS_OUT_AGAIN)
    with sim.SimBackend().open(operator.impl, "double_wrapper", operator, limits=QUICK) as session:
        run = session.run("case", [torch.ones(2, 32)])
    assert run.changed_results == (0,), "the worker's own run on other values writes there again"
    assert not run.results_kept
