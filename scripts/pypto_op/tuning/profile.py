"""`profile_operator`: what bounds a kernel, shape by shape, and where the gap is."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pypto_op.backends.base import Limits
from pypto_op.documents.reading import read_text
from pypto_op.errors import ContractError
from pypto_op.judge.cases.contract import load_contract
from pypto_op.judge.cases.subject import resolve
from pypto_op.modes import REGISTRY
from pypto_op.perf.analysis import Analysis, analyse
from pypto_op.perf.bound import Bound, Work, bound_of
from pypto_op.perf.launches import Launch, read_launches
from pypto_op.perf.lever import Lever, levers
from pypto_op.tuning.clock import Clock
from pypto_op.tuning.work import counted
from pypto_op.vocabulary import Mode
from pypto_op.workspace import OpWorkspace, to_run

FOLDER = "perf"
Note = Callable[[str], None]


@dataclass(frozen=True)
class Shape:
    """One P0 shape."""

    case: Mapping[str, Any]  # its case
    label: str  # shape and dtype in words
    us: float  # the cost model's time of all launches
    work: Work  # what the operator has to do
    bound: Bound  # what physics allows
    launches: list[Launch]  # as the cost model saw them
    analyses: list[Analysis]  # of each launch
    levers: list[Lever]  # of the longest launch, the most promising first
    figures: Mapping[str, float]  # of the clock

    @property
    def share(self) -> float:
        """How much of the bound is reached, 0 to 1."""
        return self.bound.us / self.us if self.us else 0.0


def profile_operator(ws: OpWorkspace, note: Note = lambda words: None) -> list[Shape]:
    """Run a kernel on its P0 shapes under the cost model, and say what bounds it.

    Args:
        ws: the operator; its kernel must be right on these shapes.
        note: told, in words, what is being done.

    Returns:
        a row per P0 shape, the largest first; what the cost model wrote is kept in `_debug/perf/`.

    Raises:
        ContractError: a document is broken, or the kernel is wrong on a P0 shape.
        InfraError: the simulator cannot be started.
    """
    contract = load_contract(ws)
    subject = resolve(ws, contract.total_modules)
    traces = ws.debug_dir / FOLDER
    shutil.rmtree(traces, ignore_errors=True)
    traces.mkdir(parents=True)
    with Clock(contract, subject, Mode.SIM, Limits(), traces=traces, few=False) as clock:
        note(f"the kernel runs {len(clock.cases)} P0 shapes under the cost model")
        timed = clock.time(read_text(subject.impl))
        if timed.fault:
            raise ContractError(
                f"is not right on {timed.failed}: {timed.fault}", file=ws.impl, remedy=f"{to_run('verify', ws.root)} first"
            )
        calls = sorted(folder for folder in traces.iterdir() if folder.is_dir())
        rows = []
        for case, trial, call in zip(clock.cases, clock.timing, calls, strict=True):
            note(f"the work of {clock.labels()[trial.case]} is counted")
            work = counted(contract, subject, case, clock.work(trial))
            launches = read_launches(call)
            analyses = [analyse(launch) for launch in launches]
            longest = max(analyses, key=lambda one: one.us)
            us = timed.figures[trial.case][REGISTRY[Mode.SIM].timing.figure]
            bound = bound_of(work)
            found = levers(longest, bound)
            rows.append(
                Shape(case, clock.labels()[trial.case], us, work, bound, launches, analyses, found, timed.figures[trial.case])
            )
    return rows
