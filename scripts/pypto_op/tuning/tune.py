"""`tune_operator`: from a right kernel to a faster right one, and a report of everything that was tried."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pypto_op.backends.base import Limits
from pypto_op.backends.registry import get_backend
from pypto_op.documents import spec as spec_document
from pypto_op.documents.writing import write_atomically
from pypto_op.errors import ContractError, InfraError
from pypto_op.judge.contract import Contract, load_contract
from pypto_op.judge.subject import Subject, resolve
from pypto_op.judge.verify import verify_operator
from pypto_op.perf.bound import bound_of
from pypto_op.pool.pool import Pool
from pypto_op.proof import evidence
from pypto_op.tuning import ledger as ledgers
from pypto_op.tuning.acceptance import Gatekeeper, Verdict
from pypto_op.tuning.clock import Clock, ratio
from pypto_op.tuning.kernel import Kernel
from pypto_op.tuning.ledger import Candidate, Fate, Ledger
from pypto_op.tuning.search import Outcome, Search, Wish
from pypto_op.tuning.work import counted
from pypto_op.vocabulary import Mode, Status
from pypto_op.workspace import OpWorkspace

_MOST_JUDGED = 6
"""Survivors that the whole suite is asked about, the fastest first."""
_TUNING_STAGE = 7
Note = Callable[[str], None]


@dataclass(frozen=True)
class Request:
    """What a caller wants.

    Attributes:
        seconds: of the search; what is found is judged after that.
        trials: the most candidates.
        target_us: for the largest P0 shape; None: as fast as can be.
        resume: go on with an earlier search of the same kernel.
        mode: where; None: the device where there is one, else the simulator.
        jobs: candidates at once.
        mutants: on how many planted faults the mutation score is compared.
        seed: of the search.
        write: put the best candidate in the kernel's place.
        pool: where candidates are timed; None: on this machine. A cluster is for `sim` alone: two devices are two clocks.
    """

    seconds: float
    trials: int
    target_us: float | None = None
    resume: bool = False
    mode: Mode | None = None
    jobs: int = 1
    mutants: int = 8
    seed: int = 11
    write: bool = True
    pool: Pool | None = None


@dataclass
class Tuned:
    """What came of it.

    Attributes:
        ws: the operator.
        mode: where it was timed.
        outcome: of the search.
        chosen: the accepted candidate, or None.
        verdict: of the accepted candidate, else of the last that was judged, else None.
        judged: every candidate that the gatekeeper was asked about.
        kernel: with its choices.
        labels: P0 case -> shape and dtype in words; the largest first.
        written: the candidate lies in the kernel's place.
        target_us: what was asked for.
        noise: of the clock.
        judging_seconds: on the clock, for all survivors.
        resumed: candidates that an earlier sitting had tried.
    """

    ws: OpWorkspace
    mode: Mode
    outcome: Outcome
    kernel: Kernel
    labels: dict[str, str]
    target_us: float | None
    noise: float
    chosen: Candidate | None = None
    verdict: Verdict | None = None
    judged: list[Candidate] = field(default_factory=list)
    written: bool = False
    judging_seconds: float = 0.0
    resumed: int = 0

    @property
    def met(self) -> bool:
        """Whether the target was met; True without one."""
        if self.target_us is None:
            return True
        times = (self.chosen or self.outcome.baseline).times
        return times.get(next(iter(self.labels)), float("inf")) <= self.target_us


def tune_operator(ws: OpWorkspace, request: Request, note: Note = lambda words: None) -> Tuned:
    """Search faster texts of an operator's kernel, and put the best that is right in its place.

    Args:
        ws: the operator; its kernel has a sealed PASS for exactly its bytes.
        request: what is wanted.
        note: told, in words, what is being done.

    Raises:
        ContractError: no PASS, no budget, a target that no kernel can meet, or nothing to choose.
        InfraError: the mode is not available, or went away.
    """
    if not (request.seconds > 0 and request.trials > 0):
        raise ContractError("a search without time or trials finds nothing", remedy="give --budget and --trials more than 0")
    if request.target_us is not None and not request.target_us > 0:
        raise ContractError(f"{request.target_us} us is no target", remedy="give --target-us a number above 0")
    contract = load_contract(ws)
    mode = usable_mode(request.mode)
    if request.pool is not None and request.pool.away and mode is Mode.NPU:
        raise ContractError("a search on a device is timed by that device alone", remedy="use --pool local, or --mode sim")
    require_pass(ws, contract, mode)
    _require_stage(ws)
    subject = resolve(ws, contract.total_modules)
    source = subject.impl.read_text(encoding="utf-8")
    kernel = Kernel(source, subject.wrapper, _widest(ws))
    if not kernel.choices:
        raise ContractError("has no free choice: no tile, step, loop or option that could say something else", file=ws.impl)
    (ws.debug_dir / ledgers.ROOM).mkdir(parents=True, exist_ok=True)
    with ledgers.alone(ws.debug_dir / ledgers.ROOM), Clock(contract, subject, mode, Limits()) as clock:
        require_possible(request.target_us, contract, subject, clock)
        ledger = Ledger.of(ws, ledgers.key_of(ws, contract, source, mode, clock.cases))
        resumed = _begin(ledger, request.resume, ws)
        note(f"{len(kernel.choices)} free choices; the clock is {mode}")
        wish = Wish(request.seconds, request.trials, request.target_us, 1 if mode is Mode.NPU else request.jobs, request.seed)
        outcome = Search(kernel, clock, ledger, wish, lambda one, best: note(_line(one, best)), request.pool).run()
        keeper = Gatekeeper(ws, clock, source, mutants=request.mutants, jobs=request.jobs)
        tuned = Tuned(ws, mode, outcome, kernel, clock.labels(), request.target_us, keeper.noise(), resumed=resumed)
        _choose(tuned, keeper, ledger, note)
    if tuned.chosen is not None and request.write:
        note("the accepted candidate takes the kernel's place; the judge verifies it there")
        _put(tuned, kernel.write(tuned.chosen.assignment), source, request.jobs)
    return tuned


def _choose(tuned: Tuned, keeper: Gatekeeper, ledger: Ledger, note: Note) -> None:
    """Ask the gatekeeper about the survivors, the fastest first, until one is accepted."""
    begun = time.monotonic()
    for candidate in tuned.outcome.ranking(tuned.noise)[:_MOST_JUDGED]:
        note(f"the whole suite is asked about candidate {candidate.number}, at {candidate.ratio:.3f} of the kernel's time")
        folder = ledger.folder / f"candidate_{candidate.number:03}"
        tuned.verdict = keeper.judge(tuned.kernel.write(candidate.assignment), folder)
        tuned.judged.append(candidate)
        candidate.fate = Fate.REFUSED if tuned.verdict.reason else Fate.ACCEPTED
        candidate.reason = tuned.verdict.reason
        ledger.note(candidate)
        if not tuned.verdict.reason:
            tuned.chosen = candidate
            _measured(tuned, candidate, tuned.verdict)
            break
        note(f"refused: {tuned.verdict.reason}")
    tuned.judging_seconds = time.monotonic() - begun


def _measured(tuned: Tuned, chosen: Candidate, verdict: Verdict) -> None:
    """Let what the gatekeeper measured of both, one after the other, stand in the place of the search's times."""
    tuned.outcome.baseline.times = {case: verdict.before[case] for case in tuned.labels}
    chosen.times = {case: verdict.after[case] for case in tuned.labels}
    chosen.ratio = round(ratio(chosen.times, tuned.outcome.baseline.times), 6)


def _put(tuned: Tuned, text: str, before: str, jobs: int) -> None:
    """Write the kernel and let the judge verify it there; put the old one back where it does not pass."""
    ws = tuned.ws
    if ws.impl.read_text(encoding="utf-8") != before:
        raise ContractError("changed while it was tuned", file=ws.impl, remedy="let nothing write it, then tune again")
    write_atomically(ws.debug_dir / ledgers.ROOM / ledgers.BEFORE, before)
    write_atomically(ws.impl, text)
    try:
        report = verify_operator(ws, modes=(tuned.mode,), jobs=jobs)
        passed = report["status"] == Status.PASS
    except BaseException:
        write_atomically(ws.impl, before)
        raise
    if not passed:
        write_atomically(ws.impl, before)
        verify_operator(ws, modes=(tuned.mode,), jobs=jobs)
        assert tuned.chosen is not None
        tuned.chosen.fate, tuned.chosen.reason = Fate.REFUSED, "the judge refused it in the kernel's place"
        tuned.chosen = None
        return
    tuned.written = True


def require_pass(ws: OpWorkspace, contract: Contract, mode: Mode) -> Mapping[str, Any]:
    """Return the sealed PASS of the whole suite for the bytes that lie there, in a mode.

    Raises:
        ContractError: there is none.
    """
    if not ws.impl.is_file():
        raise ContractError("the implementation is missing", file=ws.impl, remedy="write and verify it first")
    for report in evidence.sealed_passes(ws):
        if report["policy"] == contract.policy.as_dict() and report["per_mode_status"].get(mode) == Status.PASS:
            return report
    remedy = f"run `pypto-op verify {ws.root} --modes {mode}` first"
    raise ContractError(f"there is no sealed PASS in {mode} for exactly these bytes", file=ws.impl, remedy=remedy)


def usable_mode(wanted: Mode | None) -> Mode:
    """Return the mode to tune in.

    Raises:
        InfraError: it is not available, or computes no numbers here.
    """
    reasons = []
    for mode in (wanted,) if wanted is not None else (Mode.NPU, Mode.SIM):
        available = get_backend(mode).availability()
        if available.ok and available.numeric:
            return mode
        reasons.append(f"{mode}: {available.reason}")
    raise InfraError(f"no mode can time a kernel and compare its numbers ({'; '.join(reasons)})", remedy="run `pypto-op doctor`")


def _require_stage(ws: OpWorkspace) -> None:
    """Refuse an operator whose state says that its kernel is not to be tuned now."""
    if not ws.state.is_file():
        return
    from pypto_op.state import store

    state = store.load(ws).state
    stage = _TUNING_STAGE if state is None else state["current_stage"]
    if stage != _TUNING_STAGE:
        raise ContractError(
            f"is in stage {stage}; a kernel is tuned in stage {_TUNING_STAGE}",
            file=ws.state,
            remedy="run `pypto-op state status` to see what comes before it",
        )


def require_possible(target: float | None, contract: Contract, subject: Subject, clock: Clock) -> None:
    """Refuse a target that no kernel can meet on the largest P0 shape: neither the cache nor the cube units allow it.

    Args:
        target: microseconds; None for no target.
        contract: the operator's.
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


def default_jobs() -> int:
    """Return how many candidates are tried at once."""
    return max(1, min(4, os.cpu_count() or 1))
