"""Who may use a device of this machine: one process, until its lease expires.

A lease is a file that says who holds it, which processes use the device for it, and until when. Its holder renews it. It is void
when its holder has ended, or when it was not renewed in time; whoever takes the device next first ends the processes that still
use it, and gives the device up where they do not end. A lock is held only while the file is read and written.

A process is named with its name space, since an agent's command has one of its own. One that cannot be seen from here counts as
alive until the lease expires.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import psutil

from pypto_op import name_space
from pypto_op.errors import InfraError
from pypto_op.locks import Lock

_PAUSE = 0.05
_ENDING_SECONDS = 20.0


@dataclass
class _Entry:
    """What a lease's file says."""

    token: str  # of the holder
    holder: list[float]  # its process, as `_named`
    until: float  # when it expires, by this machine's monotonic clock
    users: list[list[float]] = field(default_factory=list)  # processes that use the device, as `_named`

    @property
    def valid(self) -> bool:
        return time.monotonic() < self.until and (_alive(self.holder) or _is_elsewhere(self.holder))


class Lease:
    """The lease of one device.

    Args:
        folder: where leases lie; one folder for all processes of this machine.
        device: its name, such as `npu-3`.
        seconds: after so long without `renew` it expires.
    """

    def __init__(self, folder: Path, device: str, seconds: float) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._file, self._lock = folder / f"{device}.lease", folder / f"{device}.lock"
        self._device, self._seconds, self._token = device, seconds, secrets.token_hex(8)

    def take(self, wait: float, busy: InfraError) -> Lease:
        """Take it, waiting so many seconds for another holder.

        Raises:
            InfraError: `busy`; or what used the device does not end, so that nobody can use it.
        """
        deadline = time.monotonic() + wait
        while not self._taken():
            if time.monotonic() > deadline:
                raise busy
            time.sleep(_PAUSE)
        return self

    def uses(self, pid: int) -> None:
        """Say that a process uses the device for this lease: it is ended when the lease is void."""
        with Lock(self._lock):
            entry = self._own()
            entry.users = [*(user for user in entry.users if _alive(user)), _named(pid)]
            self._write(entry)

    def renew(self) -> None:
        """Hold it for longer.

        Raises:
            InfraError: it has expired, and another process has the device.
        """
        with Lock(self._lock):
            entry = self._own()
            entry.until = time.monotonic() + self._seconds
            self._write(entry)

    def release(self) -> None:
        """Give it back; harmless when it is not held."""
        with contextlib.suppress(InfraError), Lock(self._lock):
            self._own()
            self._file.unlink(missing_ok=True)

    def _taken(self) -> bool:
        with Lock(self._lock):
            entry = self._read()
            if entry is not None and entry.valid:
                return False
            if entry is not None:
                self._clear(entry)
            self._write(_Entry(self._token, _named(os.getpid()), time.monotonic() + self._seconds))
            return True

    def _clear(self, entry: _Entry) -> None:
        """End what still uses the device for a void lease."""
        for user in list(filter(_alive, entry.users)):
            with contextlib.suppress(psutil.Error):
                root = psutil.Process(_number(user))
                below = root.children(recursive=True)
                entry.users += [_named(process.pid) for process in below]
                for process in (root, *below):
                    with contextlib.suppress(psutil.Error):
                        process.send_signal(signal.SIGKILL)
        deadline = time.monotonic() + _ENDING_SECONDS
        while left := [_number(user) for user in entry.users if _alive(user)]:
            if time.monotonic() > deadline:
                problem = f"{self._device} hangs: process {left[0]} uses it and does not end"
                raise InfraError(problem, remedy="reset the device, or use another one")
            time.sleep(_PAUSE)

    def _own(self) -> _Entry:
        entry = self._read()
        if entry is None or entry.token != self._token:
            problem = f"the lease of {self._device} has expired after {self._seconds:g} s, and another process has the device"
            raise InfraError(problem, remedy="run it again")
        return entry

    def _read(self) -> _Entry | None:
        try:
            said: dict[str, Any] = json.loads(self._file.read_text(encoding="utf-8"))
            return _Entry(**said)
        except (OSError, ValueError, TypeError):
            return None

    def _write(self, entry: _Entry) -> None:
        beside = self._file.with_suffix(".new")
        beside.write_text(json.dumps(asdict(entry)), encoding="utf-8")
        beside.replace(self._file)


def _named(pid: int) -> list[float]:
    """Return a process's number and name space, and when it was born: another of that number is not taken for it."""
    try:
        return [pid, psutil.Process(pid).create_time(), name_space.here()]
    except psutil.Error:
        return [pid, 0.0, name_space.here()]


def _number(process: list[float]) -> int:
    """Return the number that a process has here.

    Raises:
        psutil.NoSuchProcess: it cannot be seen from here.
    """
    found = name_space.number_here(int(process[0]), int(process[2]))
    if found is None:
        raise psutil.NoSuchProcess(int(process[0]))
    return found


def _is_elsewhere(process: list[float]) -> bool:
    """Whether nobody here can say what became of a process."""
    return name_space.number_here(int(process[0]), int(process[2])) is None


def _alive(process: list[float]) -> bool:
    try:
        found = psutil.Process(_number(process))
        return abs(found.create_time() - process[1]) < 1.0 and found.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False
