"""Runs lanes of a verdict in another process, perhaps on another host, and brings back records and failure folders."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pypto_op.backends.base import Availability
from pypto_op.judge.answers.plan import Plan
from pypto_op.judge.cases.request import Request
from pypto_op.judge.cases.subject import absolute
from pypto_op.judge.running.runner import LaneAnswer, Lanes
from pypto_op.pool.parcel import Copy, Parcel, laid_down
from pypto_op.pool.work import Bench, Say
from pypto_op.vocabulary import Mode
from pypto_op.workspace import OpWorkspace

MakePlan = Callable[[OpWorkspace, Request, Sequence[Mapping[str, Any]], int], Plan]
"""`judge.verify.plan_of`: it travels by its name."""


@dataclass(frozen=True)
class LanesWork:
    """What another process needs to judge lanes as this one would."""

    plan_of: MakePlan  # makes the judge's plan
    parcel: Parcel  # the operator
    request: Request  # what was asked for
    cases: Sequence[Mapping[str, Any]]  # the selected ones, drawn ones included
    seed: int  # the second seed of precision cases
    raises: Sequence[Mapping[str, Any]] = ()  # what the wrapper must refuse

    @classmethod
    def of(
        cls,
        plan_of: MakePlan,
        ws: OpWorkspace,
        request: Request,
        cases: Sequence[Mapping[str, Any]],
        seed: int,
        raises: Sequence[Mapping[str, Any]] = (),
    ) -> LanesWork:
        """Pack a verification that is about to run."""
        impl = None if request.impl is None else absolute(Path(request.impl), ws).resolve()
        suite = None if request.suite is None else Path(request.suite).resolve()  # a worker starts in another folder
        parcel = Parcel.of(ws.root, [path for path in (impl, suite) if path is not None])
        return cls(plan_of, parcel, replace(request, pool=None, impl=impl, suite=suite), cases, seed, raises)

    @contextlib.contextmanager
    def open(self) -> Iterator[Bench]:
        """Make the same plan for a copy of the operator."""
        with self.parcel.unpacked() as copy:
            request = replace(
                self.request,
                impl=None if self.request.impl is None else copy.place(self.request.impl),
                suite=None if self.request.suite is None else copy.place(self.request.suite),
                report=None,
                jobs=1,
            )
            plan = self.plan_of(OpWorkspace(copy.root, copy.root.name), request, self.cases, self.seed)
            bench = _LanesBench(copy, plan, self.raises)
            try:
                yield bench
            finally:
                bench.lanes.stop()


class _LanesBench:
    def __init__(self, copy: Copy, plan: Plan, raises: Sequence[Mapping[str, Any]]) -> None:
        self._copy, self._plan = copy, plan
        self.lanes = Lanes(plan, raises=raises)
        self.hello: dict[Mode, Availability] = dict(plan.available)

    def do(self, payload: Sequence[int] | None, say: Say) -> LaneAnswer:
        """Judge one lane; the answer speaks of the sender's paths."""
        answer = self.lanes.here(payload, lambda record: say(self._copy.translated(record)))
        self.lanes.note_loaded()
        ws = self._plan.subject.workspace
        files = self._copy.taken((ws.failures_dir, ws.error_map("any").parent))
        told = Told(self._copy.translated(self._plan.loaded.files()), files)
        return LaneAnswer(self._copy.translated(answer.records), told)


@dataclass(frozen=True)
class Told:
    """What another process brings along with the records of a lane."""

    loaded: Mapping[str, Mapping[str, str]]  # see `Loaded.files`
    files: Mapping[str, bytes]  # failure folders and error maps, by path relative to the operator's folder

    def bring(self, plan: Plan) -> None:
        """Add it to what this process knows."""
        plan.loaded.note_all(self.loaded)
        laid_down(self.files, plan.subject.workspace.root)
