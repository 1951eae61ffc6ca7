"""The timing of a kernel as one job: the operator travels, figures come back. Proof and key stay with the caller."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from pypto_op.backends.base import Availability
from pypto_op.errors import InfraError
from pypto_op.judge.cases.contract import load_contract
from pypto_op.judge.running.away import Told
from pypto_op.judge.running.runner import silence_of
from pypto_op.modes import REGISTRY
from pypto_op.perf.admission import Admitted, availability
from pypto_op.perf.measuring import Hear, Measured, Request, measure
from pypto_op.pool.crew import MOST_LOSSES
from pypto_op.pool.parcel import Copy, Parcel, laid_down
from pypto_op.pool.pool import Need, Pool
from pypto_op.pool.work import Bench, Job, Say
from pypto_op.proof.closure import Loaded, stale_closure
from pypto_op.vocabulary import Mode
from pypto_op.workspace import OpWorkspace

Available = Mapping[Mode, Availability]


class Answer(NamedTuple):
    """What came of the job."""

    available: Available  # what each mode says of the machine that timed
    measured: Measured  # the figures
    told: Told | None = None  # what another machine brings along


def measured_on(pool: Pool, admitted: Admitted, request: Request, hear: Hear | None) -> tuple[Available, Measured]:
    """Time an operator's kernel on a pool; return what the machine that did it can do, and the figures.

    Raises:
        ContractError: the PASS says nothing about a mode of that machine.
        InfraError: no mode is available there, files are others there than here, or the pool is lost.
    """
    errand, ws = _Timing(admitted, request), admitted.contract.workspace
    listen = hear or (lambda record: None)
    if not pool.away:  # in this thread: there is one job, and Ctrl-C ends it at once
        answer = errand.here(None, listen)
        return answer.available, answer.measured
    need = Need(npu=any(REGISTRY[mode].on_device for mode in request.modes))
    jobs = [Job(f"the timing of {ws.name}", None, alone=True)]
    ((_, answer),) = pool.run(
        errand, jobs, size=MOST_LOSSES, need=need, hear=lambda job, record: listen(record), greet=admitted.refuse_machine
    )
    if answer.told is not None:
        loaded = Loaded()
        loaded.note_all(answer.told.loaded)
        if stale := stale_closure(loaded.closure(ws, ()), ws.root):
            problem = f"another file than here was loaded where it was timed: {', '.join(stale)}"
            raise InfraError(problem, file=ws.impl, remedy="let every host have the same files, or use --pool local")
        laid_down(answer.told.files, ws.root)
    return answer.available, answer.measured


class _Timing:
    """The one job."""

    def __init__(self, admitted: Admitted, request: Request) -> None:
        self._admitted, self._request = admitted, request
        self.silence = silence_of(request.limits)

    def here(self, payload: None, say: Say) -> Answer:
        """Time it on this machine."""
        available = self._admitted.available
        return Answer(available, measure(self._admitted.contract, self._request, available, say))

    def away(self) -> TimingWork:
        """Return how it is timed elsewhere."""
        base = self._request.base
        return TimingWork(Parcel.of(self._admitted.contract.workspace.root, [] if base is None else [base]), self._request)

    def stop(self) -> None:
        """Nothing of it runs in this process where a pool ends it."""


@dataclass(frozen=True)
class TimingWork:
    """What another process needs to time a kernel."""

    parcel: Parcel  # the operator, and the kernel that it is compared with
    request: Request  # what is timed

    @contextlib.contextmanager
    def open(self) -> Iterator[Bench]:
        """Unpack the operator, and ask what this machine can do."""
        with self.parcel.unpacked() as copy:
            yield _TimingBench(copy, self.request)


class _TimingBench:
    def __init__(self, copy: Copy, request: Request) -> None:
        base = request.base
        self._copy, self._request = copy, replace(request, base=None if base is None else copy.place(base))
        self.hello = availability(request.modes)

    def do(self, payload: None, say: Say) -> Answer:
        """Time the copy; the answer speaks of the sender's paths."""
        copy, ws = self._copy, OpWorkspace(self._copy.root, self._copy.root.name)
        measured = measure(load_contract(ws), self._request, self.hello, lambda record: say(copy.translated(record)))
        files = copy.taken((ws.failures_dir,))
        return Answer(self.hello, copy.translated(measured), Told(copy.translated(measured.loaded), files))
