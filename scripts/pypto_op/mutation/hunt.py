"""Runs one mutant through the trials until one of them kills it."""

from __future__ import annotations

import os
import shutil
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from pypto_op.backends.base import COMPILED_DIR, Limits, Session
from pypto_op.backends.session import CandidateSession
from pypto_op.backends.sim import SimBackend
from pypto_op.judge.answers.verdict import with_earlier
from pypto_op.judge.cases.subject import Subject
from pypto_op.judge.findings.reasons import LOAD_FAILURES, PROCESS_LOSSES, Reason
from pypto_op.judge.findings.records import TrialVerdict
from pypto_op.judge.findings.redaction import Redactor
from pypto_op.mutation.bits import same
from pypto_op.mutation.trials import Order, run_once
from pypto_op.vocabulary import Artifact, Status, Word
from pypto_op.workspace import OpWorkspace

PROBES = 5
"""A mutant that fails to run in so many trials of different cases, and runs in none, is no kernel: it is invalid."""

_MOST_LOSSES = 3
"""Lost processes after which a mutant is not asked about further cases."""


class Fate(Word):
    """What became of a mutant."""

    KILLED = "killed"
    SURVIVED = "survived"
    INVALID = "invalid"
    EQUIVALENT = "equivalent"


@dataclass(frozen=True)
class Result:
    """What became of a mutant, and why."""

    fate: Fate  # see there
    reason: str = ""  # the judge's reason, or the class of invalidity ("refused by pypto", ...)
    detail: str = ""  # the judge's sentence
    case: str | None = None  # the case that killed it
    seed: int | None = None  # of that trial
    trials: int = 0  # how many trials were run
    differing: int = 0  # in how many of them a survivor gave other bits than the kernel
    killers: tuple[str, ...] = ()  # every case that kills it, in the order of the suite, where each was asked (`Hunt.killers`)
    asked: int = 0  # how many cases were asked for that; 0: only the first killer is known


class ScratchWorkspace(OpWorkspace):
    """An operator whose debris goes to a scratch folder, which is removed afterwards."""

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


_LEVELS = 2
"""How many folders above a kernel are searched for helpers by path: the operator's, and custom/."""
_NO_HELPERS = ("eval", "_debug", "__pycache__", "modules")


@dataclass(frozen=True)
class Range:
    """Where mutants are hunted."""

    subject: Subject  # the unchanged kernel and its golden
    workspace: ScratchWorkspace  # the operator, with a scratch folder
    backend: SimBackend  # runs kernels
    limits: Limits  # what a mutant may use
    graph: SimBackend | None = None  # runs them on their tensor graph alone, for a third of the time; None: whole runs only

    @property
    def compiled(self) -> Path:
        """What `keep` has kept: the control flow of a mutant that is run whole is mostly the kernel's."""
        return self.workspace.scratch / "compiled"

    def keep(self, session: CandidateSession) -> None:
        """Keep what a session has compiled for those that are opened later."""
        shutil.copytree(session.scratch / COMPILED_DIR, self.compiled)

    def open(self, name: str, source: str, *, cost_model: bool = False, whole: bool = False) -> CandidateSession:
        """Open a session on a file with this text; `whole`: with pypto's passes, whatever else is possible."""
        impl = self._beside_the_same(self.workspace.scratch / "impls" / name)
        impl.write_text(source, encoding="utf-8")
        backend = self.backend if whole or self.graph is None else self.graph
        session = backend.open(impl, self.subject.wrapper, self.workspace, limits=self.limits, cost_model=cost_model)
        if self.compiled.is_dir():  # as links: the compiler's memory replaces its files and never writes into them
            shutil.copytree(self.compiled, session.scratch / COMPILED_DIR, copy_function=os.link)
        return session

    def _beside_the_same(self, folder: Path) -> Path:
        """Return where a mutant goes in `folder`: helpers lie beside it and above it, as they do for the kernel."""
        original = self.subject.impl
        above = original.parents[_LEVELS]
        for place in list(original.parents)[:_LEVELS]:
            copy = folder / place.relative_to(above)
            copy.mkdir(parents=True, exist_ok=True)
            for path in place.iterdir():
                link = copy / path.name
                own = path == original or path in original.parents or path.name in _NO_HELPERS or path.name.startswith(".")
                if not own and not link.is_symlink() and self.workspace.artifact_of(path)[0] is Artifact.OTHER:
                    link.symlink_to(path)
        return folder / original.relative_to(above)


class Hunt:
    """One mutant on its way through the trials, those that promise most first, until it dies or none is left.

    A mutant that fails to run counts as killed only if it runs in some other trial: a text that pypto refuses
    altogether says nothing about the suite.
    """

    def __init__(
        self, session: Session, order: Order, redactor: Redactor, stopped: Callable[[], bool] = lambda: False, kind: str = ""
    ) -> None:
        self._session, self._order, self._redactor, self._stopped, self._kind = session, order, redactor, stopped, kind
        self._tried: set[int] = set()
        self._failed: list[tuple[int, TrialVerdict]] = []
        self._earlier: dict[str, list[TrialVerdict]] = defaultdict(list)
        self._alike: set[str] = set()
        self._ran, self._differing = False, 0

    def run(self, *, spare: bool = False) -> Result:
        """Try what is left. `spare` leaves out further seeds of a case that gave the kernel's own bits: they rarely kill."""
        order = self._order
        while not self._stopped() and (index := self._next(spare)) is not None:
            self._tried.add(index)
            trial = order.trials[index]
            run = run_once(self._session, trial.case, trial.inputs)
            verdict = with_earlier(trial.judge(run, self._redactor), self._earlier[trial.case])
            self._earlier[trial.case].append(verdict)
            if verdict.status is Status.ERROR:
                self._failed.append((index, verdict))
                if self._ran or len(self._failed) == _probes(verdict):
                    break
                continue
            self._ran = True
            if self._failed:
                break
            order.learn(index, verdict.status is Status.FAIL, self._kind)
            if verdict.status is Status.FAIL:
                return _killed(order, index, verdict, len(self._tried))
            if same(run, trial.outputs):
                self._alike.add(trial.case)
            else:
                self._differing += 1
        return self._result()

    def killers(self, killed: Result) -> Result:
        """Ask every other case too, and return the result with all that kill; only for a mutant that was killed.

        One that takes its process along is given up after a few, since each may cost a time-out: `asked` tells.
        """
        trials, found = self._order.trials, {killed.case}
        found |= {trials[index].case for index, _ in self._failed}
        asked, lost = {trials[index].case for index in self._tried}, 0
        for index, trial in enumerate(trials):
            if index in self._tried or trial.case in found:
                continue
            if self._stopped() or lost == _MOST_LOSSES:
                break
            verdict = trial.judge(run_once(self._session, trial.case, trial.inputs), self._redactor)
            asked.add(trial.case)
            lost += verdict.status is Status.ERROR and verdict.reasons[0] in PROCESS_LOSSES
            if verdict.status is not Status.PASS:
                found.add(trial.case)
        cases = dict.fromkeys(trial.case for trial in trials)
        return replace(killed, killers=tuple(case for case in cases if case in found), asked=len(asked))

    def _result(self) -> Result:
        if not self._failed:
            return Result(Fate.SURVIVED, trials=len(self._tried), differing=self._differing)
        index, verdict = self._failed[0]
        if self._ran:
            self._order.learn(index, True, self._kind)
            return _killed(self._order, index, verdict, len(self._tried))
        return Result(Fate.INVALID, _class_of(verdict), verdict.summary, trials=len(self._tried))

    def _next(self, spare: bool) -> int | None:
        """Return the next trial; after a failure to run, one of another case, from another part of the suite."""
        trials = self._order.trials
        if not self._failed:
            spared = {i for i, trial in enumerate(trials) if trial.case in self._alike} if spare else set()
            return self._order.next(self._tried | spared, self._kind)
        cases = {trials[i].case for i in self._tried}
        left = [i for i, trial in enumerate(trials) if trial.case not in cases]
        return left[(len(self._failed) * len(left)) // (PROBES + 1)] if left else None


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
