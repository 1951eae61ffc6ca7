"""A resident judge and a hostile candidate: neither its socket, nor other judges' workers, nor its memory are within reach."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from pypto_op import resident
from pypto_op.backends import launcher, processes, sim
from pypto_op.backends.base import Limits
from pypto_op.vocabulary import Outcome
from pypto_op.workspace import OpWorkspace

from . import kernels
from .conftest import Run
from .kernels import host_only
from .test_fence import LIBC, namespaces

__all__ = ["namespaces"]
pytestmark = [pytest.mark.sim, pytest.mark.usefixtures("numeric")]


@pytest.fixture
def door() -> Iterator[Path]:
    """A socket where a resident judge's would lie, and somebody who listens."""
    folder = resident.runs_folder() / f"test-{os.getpid()}"
    folder.mkdir(parents=True, mode=0o700)
    path = folder / resident.SOCKET
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(path))
        listener.listen(1)
        yield path
    path.unlink()
    folder.rmdir()


def test_python_is_refused_the_socket(run: Run, door: Path) -> None:
    result = run(host_only(f"__import__('socket').socket(1).connect({str(door)!r})"))
    assert result.outcome is Outcome.FORBIDDEN and "use the network" in result.detail


@pytest.mark.usefixtures("namespaces")
def test_c_code_finds_no_socket(run: Run, door: Path) -> None:
    """A path's socket is not of a network's name space: its folder has to be empty."""
    address = f"ctypes.create_string_buffer((1).to_bytes(2, 'little') + {os.fsencode(door)!r}, 110)"
    result = run(
        host_only(
            LIBC,
            f"print('connected', libc.connect(libc.socket(1, 1, 0), {address}, 110))",
            f"print('there', libc.access({os.fsencode(door)!r}, 0))",
        )
    )
    assert result.outcome is Outcome.OK, result.detail
    assert result.stdout.split() == ["connected", "-1", "there", "-1"]


@pytest.mark.usefixtures("namespaces")
def test_c_code_reaches_neither_judge_nor_zygote(run: Run) -> None:
    """Signals, ptrace and memory, also from a fork of its own."""
    targets = [os.getpid(), *launcher.living_zygotes()]
    tries = [
        f"print([(libc.kill(p, 0), libc.ptrace(16, p, 0, 0), libc.access(b'/proc/%d/mem' % p, 4)) for p in {targets}])",
        "pid = libc.fork()",
        f"if pid == 0: libc._exit(1 if 0 in [libc.kill(p, 0) for p in {targets}] else 7)",
        "status = ctypes.c_int(); libc.waitpid(pid, ctypes.byref(status), 0); print(status.value >> 8)",
    ]
    result = run(host_only(LIBC, *tries))
    assert result.outcome is Outcome.OK, result.detail
    assert result.stdout.split("\n")[:2] == [str([(-1, -1, -1)] * len(targets)), "7"]


@pytest.fixture
def kept(run: Run) -> Iterator[launcher.KeptZygote]:
    """A second judge's connection to the zygote of this process."""
    run(kernels.GOOD)
    first = launcher.living()[0]
    second = launcher.KeptZygote(first.pid, first.connect())
    yield second
    second.close()


def test_a_candidate_holds_one_connection(run: Run, kept: launcher.KeptZygote) -> None:
    """Its own channel: no judge's connection to the zygote is left open in it."""
    assert kept.namespaces in (True, False)
    names = "[os.readlink(f'/proc/self/fd/{f}') for f in os.listdir('/proc/self/fd') if os.path.islink(f'/proc/self/fd/{f}')]"
    result = run(host_only(f"print(sum(name.startswith('socket') for name in {names}))"))
    assert result.outcome is Outcome.OK, result.detail
    assert result.stdout.strip() == "1"


def test_what_a_judge_started_ends_with_it(run: Run, operator: OpWorkspace, kept: launcher.KeptZygote) -> None:
    """The other judge's session goes on."""
    operator.impl.write_text(kernels.GOOD)
    x = torch.arange(640.0).reshape(20, 32)
    with (
        sim.SimBackend().open(operator.impl, "double_wrapper", operator) as ours,
        sim.SimBackend().open(operator.impl, "double_wrapper", operator, limits=Limits(case_seconds=300)) as theirs,
    ):
        theirs.plan = type(theirs.plan)(theirs.plan.document, kept.start, theirs.plan.numeric)
        assert ours.run("case", [x]).outcome is theirs.run("case", [x]).outcome is Outcome.OK
        conversation = theirs._conversation
        assert conversation is not None
        warden = conversation._launched.warden
        assert not processes.is_gone(warden)
        kept.close()
        deadline = time.monotonic() + 120
        while not processes.is_gone(warden) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert processes.is_gone(warden)
        assert ours.run("case", [x]).outcome is Outcome.OK


def test_nobody_below_the_judge_may_ask(tmp_path: Path) -> None:
    """The kernel says who connects; a fork of the judge, or what a candidate detached, is below it."""
    from pypto_op.judge.resident import _may_ask

    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(tmp_path / "s"))
        listener.listen(1)
        child = os.fork()
        if child == 0:
            caller = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            caller.connect(str(tmp_path / "s"))
            caller.recv(1)
            os._exit(0)
        connection, _ = listener.accept()
        with connection:
            assert not _may_ask(connection)
        os.waitpid(child, 0)
