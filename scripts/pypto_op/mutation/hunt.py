"""Runs one mutant through the trials until one of them kills it."""

from __future__ import annotations

import os
import shutil
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from pypto_op.backends.base import COMPILED_DIR, Limits, Session
from pypto_op.backends.session import CandidateSession
from pypto_op.backends.sim import SimBackend
from pypto_op.judge.barrier import Barrier
from pypto_op.judge.reasons import LOAD_FAILURES, PROCESS_LOSSES, Reason
from pypto_op.judge.records import TrialVerdict
from pypto_op.judge.subject import Subject
from pypto_op.judge.verdict import with_earlier
from pypto_op.mutation.bits import same
from pypto_op.mutation.trials import Order
from pypto_op.vocabulary import Status
from pypto_op.workspace import OpWorkspace

PROBES = 5
"""A mutant that fails to run in so many trials of different cases, and runs in none, is no kernel: it is invalid."""


class Fate(str, Enum):
    """What became of a mutant."""

    KILLED = "killed"
    SURVIVED = "survived"
    INVALID = "invalid"
    EQUIVALENT = "equivalent"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True)
class Result:
    """What became of a mutant, and why.

    Attributes:
        fate: see there.
        reason: the judge's reason, or the class of invalidity ("refused by pypto", ...).
        detail: the judge's sentence.
        case: the case that killed it.
        seed: of that trial.
        trials: how many trials were run.
        differing: in how many of them a survivor gave other bits than the kernel.
    """

    fate: Fate
    reason: str = ""
    detail: str = ""
    case: str | None = None
    seed: int | None = None
    trials: int = 0
    differing: int = 0


class ScratchWorkspace(OpWorkspace):
    """An operator whose debris goes to a folder of its own, which is removed afterwards."""

    scratch: Path

    @classmethod
    def of(cls, workspace: OpWorkspace, scratch: Path) -> ScratchWorkspace:
        """Return `workspace` with `scratch` for its `_debug/`."""
        made = cls(workspace.root, workspace.name)
        object.__setattr__(made, "scratch", scratch)
        return made

    @property
    def debug_dir(self) -> Path:
        """Every scratch file."""
        return self.scratch


@dataclass(frozen=True)
class Range:
    """Where mutants are hunted.

    Attributes:
        subject: the unchanged kernel and its golden.
        workspace: the operator, with a scratch folder.
        backend: runs kernels.
        limits: what a mutant may use.
        barrier: cleans what mutants print.
    """

    subject: Subject
    workspace: ScratchWorkspace
    backend: SimBackend
    limits: Limits
    barrier: Barrier

    @property
    def compiled(self) -> Path:
        """What `keep` has kept: a mutant's control flow is mostly the kernel's, and half of a run is to compile it."""
        return self.workspace.scratch / "compiled"

    def keep(self, session: CandidateSession) -> None:
        """Keep what a session has compiled for those that are opened later."""
        shutil.copytree(session.scratch / COMPILED_DIR, self.compiled)

    def open(self, name: str, source: str) -> CandidateSession:
        """Open a session on a file with this text."""
        folder = self.workspace.scratch / "impls" / name
        folder.mkdir(parents=True, exist_ok=True)
        impl = folder / self.subject.impl.name
        impl.write_text(source, encoding="utf-8")
        session = self.backend.open(impl, self.subject.wrapper, self.workspace, limits=self.limits)
        if self.compiled.is_dir():  # as links: the compiler's memory replaces its files and never writes into them
            shutil.copytree(self.compiled, session.scratch / COMPILED_DIR, copy_function=os.link)
        return session


def hunt(session: Session, order: Order, barrier: Barrier, stopped: Callable[[], bool] = lambda: False) -> Result:
    """Try the trials, those that promise most first, until the mutant dies or none is left.

    A mutant that fails to run counts as killed only if it runs in some other trial: a text that pypto refuses
    altogether says nothing about the suite.
    """
    tried: set[int] = set()
    failed: list[tuple[int, TrialVerdict]] = []
    earlier: dict[str, list[TrialVerdict]] = defaultdict(list)
    ran, differing = False, 0
    while not stopped() and (index := _next(order, tried, len(failed))) is not None:
        tried.add(index)
        trial = order.trials[index]
        run = session.run(trial.case, trial.inputs)
        verdict = with_earlier(trial.judge(run, barrier), earlier[trial.case])
        earlier[trial.case].append(verdict)
        if verdict.status is Status.ERROR:
            failed.append((index, verdict))
            if ran or len(failed) == _probes(verdict):
                break
            continue
        ran = True
        if failed:
            break
        order.learn(index, killed=verdict.status is Status.FAIL)
        if verdict.status is Status.FAIL:
            return _killed(order, index, verdict, len(tried))
        differing += not same(run, trial.outputs)
    if failed and ran:
        order.learn(failed[0][0], killed=True)
        return _killed(order, *failed[0], len(tried))
    if failed:
        return Result(Fate.INVALID, _class_of(failed[0][1]), failed[0][1].summary, trials=len(tried))
    return Result(Fate.SURVIVED, trials=len(tried), differing=differing)


def _next(order: Order, tried: set[int], failed: int) -> int | None:
    """Return the next trial; after a failure to run, one of another case, from another part of the suite."""
    if not failed:
        return order.next(tried)
    cases = {order.trials[i].case for i in tried}
    left = [i for i, trial in enumerate(order.trials) if trial.case not in cases]
    return left[(failed * len(left)) // (PROBES + 1)] if left else None


def _killed(order: Order, index: int, verdict: TrialVerdict, trials: int) -> Result:
    trial = order.trials[index]
    return Result(Fate.KILLED, str(verdict.reasons[0]), verdict.summary, trial.case, trial.seed, trials)


def _probes(verdict: TrialVerdict) -> int:
    """Return how many trials a mutant gets to run in: one if it does not load, few if it takes its process along."""
    reason = verdict.reasons[0]
    return 1 if reason in LOAD_FAILURES else 2 if reason in PROCESS_LOSSES else PROBES


def _class_of(verdict: TrialVerdict) -> str:
    """Say in what way a mutant is no kernel."""
    reason = verdict.reasons[0]
    if reason in LOAD_FAILURES:
        return "does not load"
    if reason is Reason.EXCEPTION:
        return "refused by its own wrapper" if "ValueError" in verdict.summary else "refused by pypto"
    return str(reason) if reason in PROCESS_LOSSES else f"does not run: {reason}"
