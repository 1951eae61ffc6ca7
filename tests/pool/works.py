"""Jobs for the pool's tests: they note which device they hold and when, hang, or fail, as they are told."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pypto_op.errors import ContractError
from pypto_op.pool.devices import DEVICE_ENV, VISIBLE_ENV
from pypto_op.pool.work import Say


@dataclass(frozen=True)
class Task:
    """What a job does.

    Attributes:
        number: it returns this, squared.
        seconds: how long it takes.
        hangs_once: a file; the job that finds it missing makes it and hangs.
        hangs: it hangs, always.
        wrong: it raises a user's error.
    """

    number: int
    seconds: float = 0.0
    hangs_once: str = ""
    hangs: bool = False
    wrong: bool = False


@dataclass(frozen=True)
class Notes:
    """Jobs that write into a folder, which all processes share."""

    folder: str
    silence: float = 600.0

    def here(self, payload: Task, say: Say) -> dict[str, Any]:
        return _done(self.folder, payload, say)

    def away(self) -> Notes:
        return self

    def stop(self) -> None:
        (Path(self.folder) / "stopped").touch()

    @contextlib.contextmanager
    def open(self) -> Iterator[_Bench]:
        yield _Bench(self.folder)

    def held(self) -> dict[str, list[tuple[float, float]]]:
        """Return, by device, from when to when each job had it."""
        found: dict[str, list[tuple[float, float]]] = {}
        for path in Path(self.folder).glob("job-*.json"):
            said = json.loads(path.read_text())
            found.setdefault(said["device"], []).append((said["from"], said["to"]))
        return {device: sorted(times) for device, times in found.items()}


class _Bench:
    def __init__(self, folder: str) -> None:
        self._folder, self.hello = folder, {"host": socket.gethostname(), "pid": os.getpid()}

    def do(self, payload: Task, say: Say) -> dict[str, Any]:
        return _done(self._folder, payload, say)


def _done(folder: str, task: Task, say: Say) -> dict[str, Any]:
    begun = time.monotonic()
    if task.wrong:
        raise ContractError(f"job {task.number} is wrong", file="works.py", remedy="leave it out")
    if task.hangs_once and not Path(task.hangs_once).exists():
        Path(task.hangs_once).write_text(str(os.getpid()))
        time.sleep(3600)
    if task.hangs:
        time.sleep(3600)
    say(task.number)
    time.sleep(task.seconds)
    device = f"{os.environ.get(VISIBLE_ENV, '')}/{os.environ.get(DEVICE_ENV, '')}"
    said = {"device": device, "pid": os.getpid(), "from": begun, "to": time.monotonic()}
    (Path(folder) / f"job-{task.number}-{os.getpid()}.json").write_text(json.dumps(said))
    return {"square": task.number**2, "device": device, "pid": os.getpid(), "niceness": os.getpriority(os.PRIO_PROCESS, 0)}


def overlaps(times: list[tuple[float, float]]) -> bool:
    """Whether two of these spans, in order, have a moment in common."""
    return any(after[0] < before[1] for before, after in zip(times, times[1:], strict=False))
