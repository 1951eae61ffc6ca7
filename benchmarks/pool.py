"""What the pool costs: to start, for each job, and how work spreads over workers. The jobs sleep, so cores decide nothing."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import util
from pathlib import Path

from benchmarks.table import Row, Table, percentiles
from pypto_op.pool.address import Address
from pypto_op.pool.pool import Need, Pool
from pypto_op.pool.work import Job, Say

_LONG = 10.0
"""Seconds of a job that the target speaks of."""


@dataclass(frozen=True)
class Sleeps:
    """Jobs that sleep for as long as they are told."""

    silence: float = 600.0
    hello: None = None

    def here(self, payload: float, say: Say) -> float:
        """Sleep in this process."""
        return self.do(payload, say)

    def do(self, payload: float, say: Say) -> float:
        """Sleep; return when it began."""
        begun = time.monotonic()
        time.sleep(payload)
        return begun

    def away(self) -> Sleeps:
        """Return the same for another process."""
        return self

    def stop(self) -> None:
        """Let them sleep."""

    @contextlib.contextmanager
    def open(self) -> Iterator[Sleeps]:
        """Need nothing."""
        yield self


def _spent(address: str, need: Need, count: int, seconds: float, size: int) -> list[float]:
    """Return when each result came, from the start on."""
    with Pool(Address.parse(address)) as pool:
        begun = time.monotonic()
        jobs = [Job(str(number), seconds) for number in range(count)]
        return [time.monotonic() - begun for _ in pool.run(Sleeps(), jobs, size=size, need=need)]


def run(quick: bool) -> list[Table]:
    """Measure all three kinds of workers; Ray where it is installed."""
    os.environ["PYTHONPATH"] = str(Path(__file__).resolve().parents[1])
    devices = Need(npu=True, here=True, devices=(0, 1, 2, 3))
    kinds = {"threads (local, cores)": ("local", Need()), "processes (local, devices)": ("local", devices)}
    if util.find_spec("ray") is not None:
        kinds["actors (ray://local)"] = ("ray://local", Need())
    starts = Table("the first result of an empty job", "s")
    each = Table("each further empty job, one worker", "ms")
    spread = Table("eight jobs of 2 s", "s")
    for what, (address, need) in kinds.items():
        came = _spent(address, need, 20 if quick else 200, 0.0, 1)
        starts.rows.append(Row(what, {"seconds": came[0]}))
        steps = percentiles([1000.0 * (after - before) for before, after in zip(came, came[1:], strict=False)])
        each.rows.append(Row(what, steps, target=0.05 * _LONG * 1000.0))
        ended = {f"{size} workers": _spent(address, need, 8, 2.0, size) for size in (1, 2, 4)}
        spread.rows.append(Row(what, {name: times[-1] - times[0] + 2.0 for name, times in ended.items()}))
    each.notes.append("target: 5 % of a job of 10 s")
    spread.notes.append("from the beginning of the first job to the end of the last; 16, 8 and 4 s are perfect")
    return [starts, each, spread]
