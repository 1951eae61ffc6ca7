"""The lease of a device: one holder, which loses it when it ends or falls silent; what still uses the device is ended first."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from pypto_op.backends import npu
from pypto_op.backends.worker import isolation
from pypto_op.errors import InfraError
from pypto_op.pool.leases import Lease
from pypto_op.runner.leash import leashed

BUSY = InfraError("busy")
LONG, SHORT = 3600.0, 0.2


def sleeper() -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"])


def test_one_holder_at_a_time(tmp_path: Path) -> None:
    first = Lease(tmp_path, "npu-3", LONG).take(0, BUSY)
    with pytest.raises(InfraError, match="busy"):
        Lease(tmp_path, "npu-3", LONG).take(0.1, BUSY)
    Lease(tmp_path, "npu-4", LONG).take(0, BUSY).release()
    first.renew()
    first.release()
    first.release()
    Lease(tmp_path, "npu-3", LONG).take(0, BUSY)


def test_two_processes_never_hold_it_together(tmp_path: Path) -> None:
    """Each adds one to a number, in two steps, so that two at once would lose some."""
    code = f"""
import time
from pathlib import Path
from pypto_op.errors import InfraError
from pypto_op.pool.leases import Lease
number = Path({str(tmp_path / "number")!r})
for _ in range(10):
    lease = Lease(Path({str(tmp_path)!r}), "npu-0", 3600).take(600, InfraError("busy"))
    seen = int(number.read_text())
    time.sleep(0.005)
    number.write_text(str(seen + 1))
    lease.release()
"""
    (tmp_path / "number").write_text("0")
    running = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(3)]
    assert [process.wait() for process in running] == [0, 0, 0]
    assert (tmp_path / "number").read_text() == "30"


def test_it_falls_back_when_its_holder_is_killed(tmp_path: Path) -> None:
    code = f"""
import time
from pathlib import Path
from pypto_op.errors import InfraError
from pypto_op.pool.leases import Lease
Lease(Path({str(tmp_path)!r}), "npu-0", 3600).take(0, InfraError("busy"))
print("held", flush=True)
time.sleep(3600)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == b"held\n"
        with pytest.raises(InfraError, match="busy"):
            Lease(tmp_path, "npu-0", LONG).take(0.1, BUSY)
        holder.kill()
    Lease(tmp_path, "npu-0", LONG).take(60, BUSY)


def test_a_silent_holder_loses_it_and_what_used_the_device_is_ended(tmp_path: Path) -> None:
    user = sleeper()
    silent = Lease(tmp_path, "npu-0", SHORT).take(0, BUSY)
    silent.uses(user.pid)
    Lease(tmp_path, "npu-0", LONG).take(60, BUSY)
    assert user.wait(timeout=60) == -9
    with pytest.raises(InfraError, match="the lease of npu-0 has expired after 0.2 s, and another process has the device"):
        silent.renew()
    silent.release()
    with pytest.raises(InfraError, match="busy"):
        Lease(tmp_path, "npu-0", LONG).take(0.1, BUSY)


def test_renewing_keeps_it(tmp_path: Path) -> None:
    lease = Lease(tmp_path, "npu-0", 600.0).take(0, BUSY)
    before = (tmp_path / "npu-0.lease").read_text()
    time.sleep(0.02)
    lease.renew()
    assert (tmp_path / "npu-0.lease").read_text() != before


def test_another_process_of_the_same_number_is_not_taken_for_a_user(tmp_path: Path) -> None:
    stranger = sleeper()
    lease = Lease(tmp_path, "npu-0", SHORT).take(0, BUSY)
    lease.uses(stranger.pid)
    file = tmp_path / "npu-0.lease"
    born = str(psutil.Process(stranger.pid).create_time())
    assert born in file.read_text()
    file.write_text(file.read_text().replace(born, "1.0"))
    Lease(tmp_path, "npu-0", LONG).take(60, BUSY)
    assert stranger.poll() is None
    stranger.kill()
    stranger.wait()


def test_the_lease_is_that_of_the_machines_own_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that sees devices 4 and 5 as 0 and 1, and one that sees all, must not share number 5."""
    monkeypatch.setenv("PYPTO_OP_CACHE", str(tmp_path))
    monkeypatch.setenv("ASCEND_RT_VISIBLE_DEVICES", "4,5")
    hidden = npu.take_lease(1, seconds=0.1)
    assert (tmp_path / "leases" / "npu-5.lease").is_file()
    monkeypatch.delenv("ASCEND_RT_VISIBLE_DEVICES")
    with pytest.raises(InfraError, match="npu:5 is busy"):
        npu.take_lease(5, seconds=0.1)
    npu.take_lease(1, seconds=0.1).release()
    hidden.release()


@pytest.mark.skipif(not isolation.allowed(), reason="this machine allows no name spaces of one's own")
def test_a_holder_in_another_name_space_of_processes(tmp_path: Path) -> None:
    """Such as a command of an agent: its number is another's here, or nobody's, and ours is nobody's there."""
    code = f"""
import sys, time
from pathlib import Path
from pypto_op.errors import InfraError
from pypto_op.pool.leases import Lease
try:
    Lease(Path({str(tmp_path)!r}), sys.argv[1], 3600).take(0.1, InfraError("busy"))
    print("held", flush=True)
    time.sleep(3600)
except InfraError as error:
    print(error, flush=True)
"""
    streams: dict[str, Any] = {"cwd": tmp_path, "env": os.environ, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    with leashed([sys.executable, "-c", code, "npu-0"], **streams) as inside:
        assert inside.stdout is not None and inside.stdout.readline() == b"held\n"
        with pytest.raises(InfraError, match="busy"):
            Lease(tmp_path, "npu-0", LONG).take(0.1, BUSY)
    file = tmp_path / "npu-0.lease"  # its name space is gone, as one is that nobody here can see
    with pytest.raises(InfraError, match="busy"):
        Lease(tmp_path, "npu-0", LONG).take(0.1, BUSY)
    file.write_text(json.dumps({**json.loads(file.read_text()), "until": 0.0}))
    Lease(tmp_path, "npu-0", LONG).take(60, BUSY)
    with leashed([sys.executable, "-c", code, "npu-0"], **streams) as inside:
        assert inside.stdout is not None and inside.stdout.readline() == b"busy\n"
