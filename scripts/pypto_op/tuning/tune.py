"""`tune_operator`: from a right kernel to a faster right one, and a report of everything that was tried."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from pypto_op.backends.base import Limits
from pypto_op.documents import spec as spec_document
from pypto_op.documents.reading import read_text
from pypto_op.documents.writing import write_atomically
from pypto_op.errors import ContractError
from pypto_op.judge.cases.contract import Contract
from pypto_op.judge.cases.request import Request as Wanted
from pypto_op.judge.cases.subject import Subject, resolve
from pypto_op.judge.verify import verify_operator
from pypto_op.modes import REGISTRY
from pypto_op.perf.bound import bound_of
from pypto_op.proof import evidence
from pypto_op.tuning import ledger as ledgers
from pypto_op.tuning.acceptance import Gatekeeper, OutOfTime, Verdict
from pypto_op.tuning.admission import Admitted, Request
from pypto_op.tuning.budget import Budget
from pypto_op.tuning.clock import Clock, ratio
from pypto_op.tuning.kernel import Kernel
from pypto_op.tuning.ledger import Candidate, Fate, Ledger
from pypto_op.tuning.search import Outcome, Search, Wish
from pypto_op.tuning.work import counted
from pypto_op.vocabulary import Mode, Status
from pypto_op.workspace import OpWorkspace

_MOST_JUDGED = 6
"""Survivors that the whole suite is asked about, the fastest first."""
Note = Callable[[str], None]


@dataclass
class Tuned:
    """What came of it."""

    ws: OpWorkspace  # the operator
    mode: Mode  # where it was timed
    outcome: Outcome  # of the search
    kernel: Kernel  # with its choices
    labels: dict[str, str]  # P0 case -> shape and dtype in words; the largest first
    target_us: float | None  # what was asked for
    noise: float  # of the clock
    chosen: Candidate | None = None  # the accepted candidate, or None
    verdict: Verdict | None = None  # of the accepted candidate, else of the last that was judged, else None
    judged: list[Candidate] = field(default_factory=list)  # every candidate that the gatekeeper was asked about
    written: bool = False  # the candidate lies in the kernel's place
    judging_seconds: float = 0.0  # on the clock, for all survivors, the verdict in the kernel's place included
    budget_seconds: float = 0.0  # what search and judging together were given
    resumed: int = 0  # candidates that an earlier sitting had tried

    @property
    def met(self) -> bool:
        """Whether the target was met; True without one."""
        if self.target_us is None:
            return True
        times = (self.chosen or self.outcome.baseline).times
        return times.get(next(iter(self.labels)), float("inf")) <= self.target_us


def tune_operator(admitted: Admitted, request: Request, note: Note = lambda words: None) -> Tuned:
    """Search faster texts of an operator's kernel, and put the best that is right in its place.

    Args:
        admitted: the operator, while it is locked (`admission.admitted`).
        note: told, in words, what is being done.

    Raises:
        ContractError: a target that no kernel can meet, nothing to choose, or nothing to resume.
        InfraError: the mode went away.
    """
    ws, contract, mode = admitted.ws, admitted.contract, admitted.mode
    subject = resolve(ws, contract.total_modules)
    source = read_text(subject.impl)
    kernel = Kernel(source, subject.wrapper, _widest(ws))
    if not kernel.choices:
        raise ContractError("has no free choice: no tile, step, loop or option that could say something else", file=ws.impl)
    budget = Budget(request.seconds, float(admitted.verdict["seconds"]), admitted.begun)
    note(f"{len(kernel.choices)} free choices; the clock is {mode}; {budget.told()}")
    with Clock(contract, subject, mode, Limits()) as clock:
        require_possible(request.target_us, contract, subject, clock)
        ledger = Ledger.of(ws, ledgers.key_of(ws, contract, source, mode, clock.cases))
        resumed = _begin(ledger, request.resume, ws)
        jobs = 1 if REGISTRY[mode].on_device else request.jobs
        wish = Wish(budget.search - budget.spent, request.trials, request.target_us, jobs, request.seed)
        outcome = Search(kernel, clock, ledger, wish, lambda one, best: note(_line(one, best)), request.pool).run()
        keeper = Gatekeeper(ws, clock, source, mutants=request.mutants, jobs=request.jobs, late=lambda: budget.late)
        searched = budget.spent
        note(f"the search took {searched:.0f} s; the kernel is timed twice in every dtype")
        tuned = Tuned(ws, mode, outcome, kernel, clock.labels(), request.target_us, keeper.noise(), resumed=resumed)
        _choose(tuned, keeper, ledger, budget, note)
    if tuned.chosen is not None and request.write:
        note("the accepted candidate takes the kernel's place; the judge verifies it there")
        evidence.keep(ws, admitted.verdict)  # `benchmark --compare` asks for the earlier kernel's PASS
        _put(tuned, kernel.write(tuned.chosen.assignment), source, request.jobs)
    tuned.judging_seconds, tuned.budget_seconds = budget.spent - searched, budget.seconds
    return tuned


def _choose(tuned: Tuned, keeper: Gatekeeper, ledger: Ledger, budget: Budget, note: Note) -> None:
    """Ask the gatekeeper about the survivors, the fastest first, until one is accepted or the budget is spent."""
    waiting = tuned.outcome.ranking(tuned.noise)[:_MOST_JUDGED]
    for place, candidate in enumerate(waiting):
        note(f"the whole suite is asked about candidate {candidate.number}, at {candidate.ratio:.3f} of the kernel's time")
        folder = ledger.folder / f"candidate_{candidate.number:03}"
        try:
            tuned.verdict = keeper.judge(tuned.kernel.write(candidate.assignment), folder)
        except OutOfTime:
            more = f" --budget {2 * budget.judging:.0f}" if 2 * budget.judging > budget.seconds else ""
            tuned.outcome.ended += f"; {len(waiting) - place} survivors were not judged any more, which --resume{more} does"
            break
        tuned.judged.append(candidate)
        candidate.fate = Fate.REFUSED if tuned.verdict.reason else Fate.ACCEPTED
        candidate.reason = tuned.verdict.reason
        ledger.note(candidate)
        if not tuned.verdict.reason:
            tuned.chosen = candidate
            _measured(tuned, candidate, tuned.verdict)
            break
        note(f"refused: {tuned.verdict.reason}")


def _measured(tuned: Tuned, chosen: Candidate, verdict: Verdict) -> None:
    """Let what the gatekeeper measured of both, one after the other, stand in the place of the search's times."""
    tuned.outcome.baseline.times = {case: verdict.before[case] for case in tuned.labels}
    chosen.times = {case: verdict.after[case] for case in tuned.labels}
    chosen.ratio = round(ratio(chosen.times, tuned.outcome.baseline.times), 6)


def _put(tuned: Tuned, text: str, before: str, jobs: int) -> None:
    """Write the kernel and let the judge verify it there; put the old one back where it does not pass."""
    ws = tuned.ws
    if read_text(ws.impl) != before:
        raise ContractError("changed while it was tuned", file=ws.impl, remedy="let nothing write it, then tune again")
    write_atomically(ws.debug_dir / ledgers.ROOM / ledgers.BEFORE, before)
    write_atomically(ws.impl, text)
    try:
        report = verify_operator(ws, Wanted(modes=(tuned.mode,), jobs=jobs))
        passed = report["status"] == Status.PASS
    except BaseException:
        write_atomically(ws.impl, before)
        raise
    if not passed:
        write_atomically(ws.impl, before)
        verify_operator(ws, Wanted(modes=(tuned.mode,), jobs=jobs))
        assert tuned.chosen is not None
        tuned.chosen.fate, tuned.chosen.reason = Fate.REFUSED, "the judge refused it in the kernel's place"
        tuned.chosen = None
        return
    tuned.written = True


def require_possible(target: float | None, contract: Contract, subject: Subject, clock: Clock) -> None:
    """Refuse a target that no kernel can meet on the largest P0 shape: neither the cache nor the cube units allow it.

    Args:
        target: microseconds; None for no target.
        subject: with its golden, whose products are counted.
        clock: with the P0 shapes.

    Raises:
        ContractError: the target is below that bound.
    """
    if target is None:
        return
    bound = bound_of(counted(contract, subject, clock.cases[0], clock.work()))
    if target < bound.least_us:
        what = "multiply the matrices" if bound.fast_cube_us > bound.cached_us else "move the data"
        raise ContractError(
            f"no kernel reaches {target:g} us: to {what} of the largest P0 shape takes {bound.least_us:.3g} us",
            file=contract.workspace.spec,
            remedy=f"set a target above {bound.least_us:.3g} us",
        )


def _widest(ws: OpWorkspace) -> int:
    dtypes = spec_document.load(ws.spec).supported_dtypes
    return 32 if any("32" in dtype or "64" in dtype for dtype in dtypes) else 16


def _begin(ledger: Ledger, resume: bool, ws: OpWorkspace) -> int:
    """Return how many candidates an earlier sitting knew; without one, --resume is a mistake."""
    known = len([one for one in ledger.all() if one.number])
    if resume and not known:
        raise ContractError("there is no earlier search of exactly this kernel", file=ws.impl, remedy="leave --resume out")
    return known


def _line(candidate: Candidate, best: float) -> str:
    told = f"{candidate.ratio:.3f} of the kernel's time" if candidate.ratio is not None else candidate.reason[:100]
    return f"candidate {candidate.number} ({candidate.origin}): {candidate.fate}, {told}; best {best:.3f}"
