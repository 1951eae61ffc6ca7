"""`Pool`: the one interface to everything that does jobs."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any

from pypto_op.pool.address import Address
from pypto_op.pool.crew import Crew, Hand
from pypto_op.pool.devices import DEVICE_ENV
from pypto_op.pool.hands import Away, Here
from pypto_op.pool.local import Child
from pypto_op.pool.work import Errand, Job

if TYPE_CHECKING:
    from pypto_op.pool.fleet import Fleet


@dataclass(frozen=True)
class Need:
    """What a job occupies."""

    npu: bool = False  # a whole device where the pool has devices, else a core
    here: bool = False  # this machine has a device that works
    devices: tuple[int, ...] = ()  # those of this machine that a job may use, as `TILE_FWK_DEVICE_ID` names them


class Pool:
    """Does jobs, on this machine or on a cluster; a context manager that ends what it started.

    Entering it looks whether the cluster is there, so that a command with a wrong address neither works nor writes before.
    """

    def __init__(self, address: Address | None = None) -> None:
        self.address = address or Address()
        self._fleet: Fleet | None = None
        self._lock = threading.Lock()

    @property
    def away(self) -> bool:
        """Whether jobs run in other processes, perhaps on other hosts."""
        return self.address.ray

    def run(
        self,
        errand: Errand,
        jobs: Sequence[Job],
        *,
        size: int,
        need: Need | None = None,
        wanted: Callable[[Job], bool] = lambda job: True,
        hear: Callable[[Job, Any], None] = lambda job, word: None,
        greet: Callable[[Any], None] = lambda hello: None,
    ) -> Generator[tuple[Job, Any], None, None]:
        """Do all jobs; yield each with what came of it, as they are done. Closing the iterator ends what is under way.

        Args:
            size: the most at once.
            need: what each occupies; default: a core.
            wanted: asked before a job is begun; one that is not wanted any more is left out.
            hear: told what a job says on its way.
            greet: told what each other machine says of itself (`Bench.hello`), in the thread of its hand.

        Raises:
            InfraError: the pool cannot be had, or no worker of it is left.
            Exception: what a job raised.
        """
        if not jobs:
            return
        crew = Crew(self._hands(errand, size, need or Need(), greet), jobs, wanted, hear)
        try:
            yield from crew.run()
        except BaseException:
            crew.stop()
            errand.stop()
            crew.join()
            raise
        crew.stop()
        crew.join()

    def close(self) -> None:
        """Leave the cluster; harmless when called twice."""
        if self._fleet is not None:
            self._fleet.close()
            self._fleet = None

    def __enter__(self) -> Pool:
        if self.address.ray:
            from pypto_op.pool import fleet

            fleet.look(self.address)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _hands(self, errand: Errand, size: int, need: Need, greet: Callable[[Any], None]) -> Sequence[Hand]:
        if self.address.ray:
            work = pickle.dumps(errand.away())
            connects = self._joined(size).places(size, npu=need.npu)
            return [Away(place.name, place.name, place.connect, work, errand.silence, greet) for place in connects]
        if len(need.devices) < 2:
            return [Here(number, errand) for number in range(1, 2 if need.here else size + 1)]
        work = pickle.dumps(errand.away())
        return [
            Away(f"npu:{index}", f"npu:{index}", partial(Child, {DEVICE_ENV: str(index)}), work, errand.silence, greet)
            for index in need.devices[:size]
        ]

    def _joined(self, size: int) -> Fleet:
        with self._lock:
            if self._fleet is None:
                from pypto_op.pool.fleet import Fleet

                self._fleet = Fleet(self.address, size)
            return self._fleet
