"""What all mutants of an operator are run against: the trials, the golden's answers, and the unchanged kernel's own run."""

from __future__ import annotations

import secrets
import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from pypto_op.backends.base import Limits
from pypto_op.backends.sim import SimBackend
from pypto_op.documents.reading import read_text
from pypto_op.errors import ContractError, InfraError
from pypto_op.judge.answers.plan import plan_without_backends
from pypto_op.judge.answers.references import ReferenceLoss, References
from pypto_op.judge.cases import fresh
from pypto_op.judge.cases.contract import load_contract
from pypto_op.judge.cases.inputs import checks_precision
from pypto_op.judge.cases.subject import resolve
from pypto_op.judge.findings.redaction import Redactor
from pypto_op.mutation.bits import same
from pypto_op.mutation.cases import earlier
from pypto_op.mutation.hunt import Fate, Hunt, Range, Result, ScratchWorkspace
from pypto_op.mutation.likeness import Likeness, Prober
from pypto_op.mutation.mutants import Mutant
from pypto_op.mutation.program import Program
from pypto_op.mutation.trials import Order, make_trials, one_per_kind, run_once
from pypto_op.pool.work import Say
from pypto_op.vocabulary import Status
from pypto_op.workspace import OpWorkspace, to_run

DEFAULT_SEED = 20_260_131
"""Second seed of precision cases, and seed of samples: fixed, so that a score can be had again."""

Note = Callable[[str], None]
Outcome = tuple[Result, Likeness | None, float]
"""What became of a mutant, how it differs from the kernel, and after how many seconds that was known."""


@dataclass(frozen=True)
class Wish:
    """What a caller wants measured."""

    operators: Sequence[str] | None = None  # names of mutation operators; None: all
    # the most mutants; chosen at random, the operators taking turns, so that rare ones are in. None: all.
    limit: int | None = None
    only: Sequence[str] | None = None  # ids of the mutants, as an earlier report with the same operators named them; None: all
    jobs: int = 1  # mutants at once
    seed: int = DEFAULT_SEED  # of the sample, of the second trial, of the inputs for likeness
    levels: Sequence[str] | None = None  # only these levels of the suite
    case: str | None = None  # only this case
    timeout: float | None = None  # longest time of one run, in seconds; None: from the unchanged kernel's
    likeness: bool = True  # compare survivors with the kernel, bit by bit
    # begin no further mutant so long after the beginning, the kernel's own run included, but for the first one of each job; those
    # that were tried are a random sample. None: try all.
    seconds: float | None = None
    all_cases: bool = False  # ask every case about each mutant that one has killed
    resume: bool = False  # take over what earlier sittings on this machine found of the same mutants (`mutation.sittings`)

    def asked(self) -> dict[str, Any]:
        """Return, for `Sittings`, all that a mutant's fate depends on."""
        names = ("seed", "levels", "case", "timeout", "likeness", "all_cases")
        return {name: getattr(self, name) for name in names}


class Field:
    """One operator's trials, and what runs kernels on them; several threads may hunt.

    Args:
        stack: closes what is opened.
        note: told, in words, what is being done.
    """

    def __init__(self, workspace: OpWorkspace, wish: Wish, stack: ExitStack, note: Note) -> None:
        self._wish, self._note = wish, note
        contract = self._contract = load_contract(workspace)
        subject = self.subject = resolve(workspace, contract.total_modules)
        if not subject.impl.is_file():
            raise ContractError("there is no implementation to mutate", file=subject.impl, remedy="write it first")
        self.program = Program(read_text(subject.impl), subject.wrapper, subject.impl)
        self._workspace, self._stack = workspace, stack
        self.stopped = False

    def lay_out(self) -> None:
        """Let the golden answer every trial.

        Raises:
            ContractError: no case compares numbers, or golden and inputs cannot be had.
            InfraError: this machine cannot run kernels with numbers.
        """
        wish, contract, workspace, subject = self._wish, self._contract, self._workspace, self.subject
        cases = [case for case in contract.select(wish.levels, wish.case) if checks_precision(case)]
        if wish.levels is None and wish.case is None:
            cases += fresh.draw(contract, wish.seed, self.subject.impl).cases
        if not cases:
            raise ContractError("no selected case compares numbers", file=workspace.suite, remedy="select others")
        backend = SimBackend()
        available = backend.availability()
        if not (available.ok and available.numeric):
            raise InfraError(f"mutants need numbers: {available.reason}", remedy="run `pypto-op doctor`")
        scratch = workspace.debug_dir / f"mutation-{secrets.token_hex(4)}"
        scratch.mkdir(parents=True)
        self._stack.callback(_remove, scratch)
        own = ScratchWorkspace.of(workspace, scratch)
        plan = plan_without_backends(contract, replace(subject, workspace=own), cases, wish.seed)
        references = References(plan, ReferenceLoss())
        self._stack.callback(references.close)
        self.redactor = Redactor(subject.golden, subject.impl)
        self.range = Range(subject, own, backend, Limits(case_seconds=wish.timeout or 120.0))
        self._note(f"the golden answers {len(cases)} cases")
        self.order = Order(make_trials(plan, references))
        self.order.remember(earlier(workspace))
        self.cases = cases
        self._prober = Prober(plan, contract.cases, references, self.redactor)

    def run_unchanged(self) -> None:
        """Run the unchanged kernel: it must pass, and it tells what a trial costs."""
        self._try_graph()
        with self.range.open("unchanged", self.program.source) as session:
            for number, trial in enumerate(self.order.trials, 1):
                self._note(f"the unchanged kernel runs trial {number} of {len(self.order.trials)}")
                begun = time.monotonic()
                run = run_once(session, trial.case, trial.inputs)
                trial.seconds, trial.outputs = time.monotonic() - begun, run.outputs
                verdict = trial.judge(run, self.redactor)
                if verdict.status is not Status.PASS:
                    raise ContractError(
                        f"the unchanged kernel does not pass case {trial.case} with seed {trial.seed}: {verdict.summary}",
                        file=self.subject.impl,
                        remedy=f"a suite that the kernel passes is measured; {to_run('verify', self.subject.impl.parent)}",
                    )
        if self._wish.timeout is None:
            slowest = max(trial.seconds for trial in self.order.trials)
            limits = replace(self.range.limits, case_seconds=max(10.0, 20.0 * slowest))
            self.range = replace(self.range, limits=limits)

    def _try_graph(self) -> None:
        """Run mutants on their tensor graph alone, if the unchanged kernel gives the same bits so in each dtype."""
        quick = replace(self.range, graph=SimBackend(passes=False))
        source = self.program.source
        with quick.open("graph", source) as graph, quick.open("whole", source, whole=True) as whole:
            alike = True
            for trial in one_per_kind(self.order.trials):
                run = run_once(whole, trial.case, trial.inputs)
                alike = alike and same(run_once(graph, trial.case, trial.inputs), run.outputs)
            self.range.keep(whole)
        if alike:
            self.range = quick

    def hunt(self, mutant: Mutant, say: Say) -> Outcome:
        """Hunt one mutant; a word is said before each trial."""
        begun = time.monotonic()
        result, likeness = self._hunted(mutant, say)
        if self.range.graph is not None and result.fate in (Fate.SURVIVED, Fate.EQUIVALENT) and not self.stopped:
            result = self._with_passes(mutant, result, say)
        return result, likeness, time.monotonic() - begun

    def _with_passes(self, mutant: Mutant, lives: Result, say: Say) -> Result:
        """Return what became of a mutant that no numbers refused, once it has run with pypto's passes, in each dtype."""
        with self.range.open(mutant.id, mutant.source, whole=True) as session:
            order = Order(one_per_kind(self.order.trials))
            found = Hunt(session, order, self.redactor, partial(self._stops, say), mutant.operator).run()
        return lives if found.fate is Fate.SURVIVED else found

    def _hunted(self, mutant: Mutant, say: Say) -> tuple[Result, Likeness | None]:
        likeness = None
        with self.range.open(mutant.id, mutant.source) as session:
            pursuit = Hunt(session, self.order, self.redactor, partial(self._stops, say), mutant.operator)
            result = pursuit.run(spare=self._wish.likeness)
            if result.fate is Fate.SURVIVED and result.differing:
                result = pursuit.run()
            if result.fate is Fate.KILLED and self._wish.all_cases:
                result = pursuit.killers(result)
            if result.fate is Fate.SURVIVED and self._wish.likeness and not self.stopped:
                kernel = partial(self.range.open, "kernel", self.program.source)
                likeness = self._prober.compare(session, kernel, result.trials, result.differing)
                if not likeness.differing:
                    return replace(result, fate=Fate.EQUIVALENT, detail=likeness.sentence()), likeness
                result = pursuit.run()
                if result.fate is Fate.SURVIVED:
                    result = replace(result, detail=likeness.sentence())
        return result, likeness

    def _stops(self, say: Say) -> bool:
        say(None)
        return self.stopped


def _remove(scratch: Any) -> None:
    shutil.rmtree(scratch, ignore_errors=True)
    if scratch.parent.is_dir() and not any(scratch.parent.iterdir()):
        scratch.parent.rmdir()
