"""Sessions beside one another, and sessions whose judge disappears."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
import torch

from pypto_op.backends import processes, sim
from pypto_op.backends.launcher import Launched
from pypto_op.backends.reference import ReferenceSession
from pypto_op.errors import InfraError
from pypto_op.vocabulary import Outcome
from pypto_op.workspace import OpWorkspace

from . import kernels
from .conftest import QUICK, left_running

pytestmark = [pytest.mark.sim, pytest.mark.usefixtures("numeric")]


def test_sessions_side_by_side_do_not_mix(operator: OpWorkspace) -> None:
    operator.impl.write_text(kernels.GOOD)
    backend = sim.SimBackend()

    def judge(rows: int) -> bool:
        x = torch.full((rows, 32), float(rows))
        with backend.open(operator.impl, "double_wrapper", operator, limits=QUICK) as session:
            results = [session.run(f"case{i}", [x + i]) for i in range(2)]
        return all(torch.equal(result.outputs[0], (x + i) * 2) for i, result in enumerate(results))

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(judge, [3, 17, 33, 20]))


@pytest.mark.parametrize("enclose", [True, False])
def test_nothing_survives_a_killed_judge(operator: OpWorkspace, tmp_path: Path, enclose: bool) -> None:
    """SIGKILL, in the middle of a case that would run for ten minutes and has a daemon."""
    stays = "os.fork() == 0 and (os.setsid(), time.sleep(600))"
    operator.impl.write_text(kernels.in_wrapper(stays, "print('up', flush=True)", "time.sleep(600)"))
    marker = tmp_path / "pids"
    script = textwrap.dedent(
        f"""
        import os, threading, time, torch
        from pathlib import Path
        from pypto_op.backends import launcher, processes, sim
        from pypto_op.workspace import OpWorkspace
        operator = OpWorkspace.at({str(operator.root)!r})
        def tell():
            while True:
                time.sleep(0.2)
                below = [p for z in launcher.living_zygotes() for p in (z, *processes.tree_below(z))]
                if len(below) >= {5 if enclose else 4}:
                    draft = Path({str(marker)!r} + '.draft')
                    draft.write_text(' '.join(map(str, below)))
                    draft.rename({str(marker)!r})
        threading.Thread(target=tell, daemon=True).start()
        with sim.SimBackend(enclose={enclose}).open(operator.impl, 'double_wrapper', operator) as session:
            session.run('case', [torch.ones(4, 32)])
        """
    )
    judge = subprocess.Popen([sys.executable, "-c", script], env={**os.environ})
    _wait_until(marker.exists, 60)
    time.sleep(1.0)
    below = [int(word) for word in marker.read_text().split()]
    judge.send_signal(signal.SIGKILL)
    judge.wait()
    _wait_until(lambda: all(processes.is_gone(process) for process in below), 120)


def _wait_until(condition: object, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < deadline, "it did not come to pass"
        time.sleep(0.05)


def test_a_closed_session_says_so(operator: OpWorkspace) -> None:
    operator.impl.write_text(kernels.GOOD)
    session = sim.SimBackend().open(operator.impl, "double_wrapper", operator)
    assert session.run("case", [torch.ones(2, 32)]).outcome is Outcome.OK
    session.close()
    session.close()
    with pytest.raises(InfraError, match="closed"):
        session.run("case", [torch.ones(2, 32)])


def test_a_reference_that_was_closed_begins_no_further_process(operator: OpWorkspace) -> None:
    """A lane that went on after its verdict was stopped began one that nobody ended."""
    session = ReferenceSession(operator)
    case = {"id": "L1_a", "shape": {"T": 3}, "seed": 1}
    assert session.make_inputs(case)
    session.close()
    with pytest.raises(InfraError, match="closed"):
        session.make_inputs(case)
    assert left_running() == [] and not list(operator.debug_dir.rglob("*"))


@pytest.mark.parametrize("woken", [False, True])
def test_a_session_that_is_closed_while_its_worker_starts_leaves_none(operator: OpWorkspace, woken: bool) -> None:
    operator.impl.write_text(kernels.GOOD)
    session = sim.SimBackend().open(operator.impl, "double_wrapper", operator)
    launch = session.plan.launch

    def closing(document: dict[str, object]) -> Launched:
        started = launch(document)
        threading.Thread(target=session.close).start()
        _wait_until(lambda: session._closed, 60)
        return started

    session.plan = replace(session.plan, launch=closing)
    if woken:
        session.wake()
    with pytest.raises(InfraError, match="closed"):
        session.run("case", [torch.ones(2, 32)])
    assert left_running() == []


def test_what_a_failure_leaves_for_the_debugger_is_bounded(operator: OpWorkspace) -> None:
    operator.impl.write_text(kernels.GOOD.replace("    pypto.set_vec_tile_shapes(16, 32)\n", ""))
    with sim.SimBackend().open(operator.impl, "double_wrapper", operator, limits=QUICK) as session:
        for number in range(22):
            session.run(f"L1/case {number}", [torch.ones(2, 32)])
    failures = operator.debug_dir / "failures"
    kept = sorted(path.name for path in failures.iterdir())
    assert len(kept) == 20
    assert "L1_case_21" in kept
    newest = failures / "L1_case_21"
    assert "tile shape not set" in (newest / "outcome.txt").read_text()
    assert (newest / "stdout.txt").stat().st_size > 0
    total = sum(path.stat().st_size for path in operator.debug_dir.rglob("*") if path.is_file())
    assert total < 20 * 1024 * 1024


def test_waiting_for_a_core_is_told_from_running_and_from_sleeping() -> None:
    """A time limit leaves it out: a right kernel on a busy machine was called wrong for it."""
    core = min(os.sched_getaffinity(0))
    spin = f"import os, time; os.sched_setaffinity(0, {{{core}}})\nwhile True: pass"
    rivals = [subprocess.Popen([sys.executable, "-c", spin]) for _ in range(3)]
    rest = "import time; print('asleep', flush=True); time.sleep(600)"
    asleep = subprocess.Popen([sys.executable, "-c", rest], stdout=subprocess.PIPE)
    try:
        assert asleep.stdout is not None and asleep.stdout.readline()
        _wait_until(lambda: psutil.Process(asleep.pid).status() == psutil.STATUS_SLEEPING, 60)
        # From here on: on a busy machine, starting is waiting too.
        begun = {process.pid: processes.waiting_seconds(process.pid) for process in [*rivals, asleep]}
        time.sleep(3)
        waited = [processes.waiting_seconds(rival.pid) - begun[rival.pid] for rival in rivals]
        assert max(waited) > 1.0, "of three seconds each gets one at most"
        assert processes.waiting_seconds(asleep.pid) == begun[asleep.pid]
    finally:
        for process in [*rivals, asleep]:
            process.kill()
            process.wait()
    assert processes.waiting_seconds(asleep.pid) == 0.0, "it is gone"


def test_a_starved_worker_gets_more_time_and_an_idle_one_does_not(operator: OpWorkspace, monkeypatch: pytest.MonkeyPatch) -> None:
    operator.impl.write_text(kernels.host_only("time.sleep(4)"))
    limits = replace(QUICK, case_seconds=2)
    with sim.SimBackend().open(operator.impl, "double_wrapper", operator, limits=limits) as session:
        assert session.run("asleep", [torch.ones(3, 32)]).outcome is Outcome.TIMED_OUT
        begun = time.monotonic()
        monkeypatch.setattr(processes, "waiting_seconds", lambda _: 0.9 * (time.monotonic() - begun))
        assert session.run("starved", [torch.ones(3, 32)]).outcome is Outcome.OK
        operator.impl.write_text(kernels.host_only("time.sleep(600)"))
    with sim.SimBackend().open(operator.impl, "double_wrapper", operator, limits=replace(QUICK, case_seconds=0.5)) as session:
        monkeypatch.setattr(processes, "waiting_seconds", lambda _: time.monotonic())
        assert session.run("endless", [torch.ones(3, 32)]).outcome is Outcome.TIMED_OUT, "ten times as long at most"


def test_a_session_that_ends_twice_closes_nothing_of_another(operator: OpWorkspace) -> None:
    operator.impl.write_text(kernels.GOOD)
    backend, x = sim.SimBackend(), torch.ones(3, 32)
    with backend.open(operator.impl, "double_wrapper", operator, limits=QUICK) as session:
        assert session.run("first", [x]).outcome is Outcome.OK
        conversation = session._conversation
        assert conversation is not None
        conversation._launched.end()
        reader, writer = os.pipe()  # they get the numbers that were just given back
        conversation._launched.end()
        os.write(writer, b"still open")
        assert os.read(reader, 20) == b"still open"
        for descriptor in (reader, writer):
            os.close(descriptor)
