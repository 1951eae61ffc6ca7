"""The search: proposals, cheap filters first, and a ledger of what became of each."""

from __future__ import annotations

import difflib
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from pypto_op.backends.build_cache import digest_of
from pypto_op.errors import ContractError, InfraError
from pypto_op.modes import REGISTRY
from pypto_op.pool.pool import Pool
from pypto_op.pool.work import Job
from pypto_op.tuning import thumb
from pypto_op.tuning.asking import GAIN, Question, Questions
from pypto_op.tuning.clock import Clock, Timed, ratio
from pypto_op.tuning.kernel import Kernel
from pypto_op.tuning.ledger import Candidate, Fate, Ledger
from pypto_op.tuning.proposer import Proposal, Proposer
from pypto_op.workspace import to_run

BASELINE = "baseline"
_SLOW = 4.0
"""A kernel whose P0 shapes take so many seconds compiles slowly."""


@dataclass(frozen=True)
class Wish:
    """What a search may cost, and what would end it."""

    seconds: float  # no candidate is begun so long after the first
    trials: int  # no more candidates than these, those of an earlier sitting included
    target_us: float | None = None  # stop when the time of the largest P0 shape is at most this
    jobs: int = 1  # candidates at once
    seed: int = 11  # of all that is drawn


@dataclass
class Outcome:
    """What a search found."""

    baseline: Candidate  # the kernel itself
    candidates: list[Candidate]  # all others, in the order of trials
    importance: Mapping[str, float]  # choice -> its share of the differences
    refused: int  # proposals that the hardware's limits ruled out, none of which was run
    seconds: float  # on the clock, of this sitting
    tried: int  # candidates that were run in this sitting; the others were known
    ended: str  # why it ended, in words

    def ranking(self, noise: float) -> list[Candidate]:
        """Return the survivors that are faster than the baseline by more than the noise, the fastest first."""
        least = 1.0 - max(noise, GAIN)
        alive = [one for one in self.candidates if one.fate in (Fate.SURVIVED, Fate.ACCEPTED) and one.ratio is not None]
        return sorted((one for one in alive if (one.ratio or 1.0) <= least), key=_merit)


class Search:
    """Searches one kernel's space.

    Args:
        ledger: what is known, and where candidates are kept.
        wish: what it may cost.
        progress: told of each candidate, and of the best ratio so far.
        pool: where candidates are timed; default: on this machine.
    """

    def __init__(
        self,
        kernel: Kernel,
        clock: Clock,
        ledger: Ledger,
        wish: Wish,
        progress: Callable[[Candidate, float], None] | None = None,
        pool: Pool | None = None,
    ) -> None:
        self._pool, self._questions = pool or Pool(), Questions(clock)
        self._kernel, self._clock, self._ledger, self._wish = kernel, clock, ledger, wish
        self._progress = progress or (lambda candidate, best: None)
        self._largest = str(clock.cases[0]["id"])
        self._base: Candidate | None = None
        self._best = 1.0
        self._best_times: dict[str, float] = {}
        self._tried = 0

    def run(self) -> Outcome:
        """Search until budget, trials, target or proposals are at their end."""
        started = time.monotonic()
        baseline = self.baseline()
        self._best_times = dict(baseline.times)
        proposer = Proposer(self._kernel, self._wish.seed, thumb.rules(self._kernel.choices, slow=baseline.seconds > _SLOW))
        found: list[Candidate] = []
        ended = "every trial was made"
        while len(found) < self._wish.trials:
            if time.monotonic() - started >= self._wish.seconds:
                ended = "the budget was spent"
                break
            if self._met():
                ended = "the target was met"
                break
            count = min(self._wish.jobs, self._wish.trials - len(found))
            proposals = [one for one in (proposer.next() for _ in range(count)) if one is not None]
            if not proposals:
                ended = "every candidate within the limits was tried"
                break
            for proposal, candidate in zip(proposals, self._batch(proposals, len(found) + 1), strict=True):
                found.append(candidate)
                proposer.tell(proposal, _told(candidate))
                if self._ledger.known(candidate.digest) is None:
                    self._ledger.note(candidate)
                self._take(candidate)
        importance = proposer.importance()
        return Outcome(baseline, found, importance, proposer.refused, time.monotonic() - started, self._tried, ended)

    def baseline(self) -> Candidate:
        """Return the kernel itself, timed; it must be right. A device times it in every sitting: its clock may have changed."""
        known = self._base or self._ledger.known(digest_of(self._kernel.source))
        if known is not None and (known is self._base or not REGISTRY[self._clock.mode].on_device):
            self._base = known
            return known
        begun = time.monotonic()
        timed = self._clock.time(self._kernel.source)
        self._clock.bear(time.monotonic() - begun)
        if timed.fault and not timed.ran and REGISTRY[self._clock.mode].on_device:
            raise InfraError(
                f"the kernel, which has a PASS, does not run on the device: {timed.fault[:200]}", remedy="run `pypto-op doctor`"
            )
        if timed.fault:
            raise ContractError(
                f"the kernel does not pass {timed.failed}: {timed.fault}",
                file=self._clock.contract.workspace.impl,
                remedy=f"only a right kernel is tuned; {to_run('verify', self._clock.contract.workspace.root)}",
            )
        digest = digest_of(self._kernel.source)
        # The order of proposals follows what the kernel cost: a search that goes on keeps the order that it began with.
        seconds = known.seconds if known else time.monotonic() - begun
        made = Candidate(0, BASELINE, {}, digest, "", Fate.SURVIVED, times=timed.times, ratio=1.0, seconds=seconds)
        self._ledger.note(made)
        self._base = made
        return made

    def _met(self) -> bool:
        target = self._wish.target_us
        return target is not None and self._best_times.get(self._largest, math.inf) <= target

    def _take(self, candidate: Candidate) -> None:
        if candidate.fate in (Fate.SURVIVED, Fate.ACCEPTED) and candidate.ratio is not None and candidate.ratio < self._best:
            self._best, self._best_times = candidate.ratio, dict(candidate.times)
        self._progress(candidate, self._best)

    def _batch(self, proposals: Sequence[Proposal], first: int) -> list[Candidate]:
        """Try candidates side by side, or return what is known of their texts."""
        made, jobs = [], []
        for number, proposal in enumerate(proposals, first):
            text = self._kernel.write(proposal.assignment)
            known = self._ledger.known(digest_of(text))
            if known is not None:
                made.append(replace(known, number=number, origin=proposal.origin, assignment=dict(proposal.assignment)))
            else:
                made.append(self._candidate(text, number, proposal.origin, proposal.assignment))
                jobs.append(Job(f"candidate {number}", self._question(text)))
        self._tried += len(jobs)
        answers = {job.key: answer for job, answer in self._pool.run(self._questions, jobs, size=self._wish.jobs)}
        for candidate in made:
            if (key := f"candidate {candidate.number}") in answers:
                timed, candidate.seconds = answers[key]
                self._judge(candidate, timed)
        return made

    def filtered(self, text: str) -> Candidate:
        """Return what the cheap filters make of a text: time and numbers on P0 shapes, then a few cases."""
        candidate = self._candidate(text, 0, "", {})
        timed, candidate.seconds = self._question(text).asked(self._clock)
        self._judge(candidate, timed)
        return candidate

    def _candidate(self, text: str, number: int, origin: str, assignment: Mapping[str, str]) -> Candidate:
        diff = difference(self._kernel.source, text)
        return Candidate(number, origin, dict(assignment), digest_of(text), diff, Fate.SURVIVED)

    def _question(self, text: str) -> Question:
        return Question(text, self.baseline().times, dict(self._best_times), self._best)

    def _judge(self, candidate: Candidate, timed: Timed) -> None:
        """Write what became of a text."""
        base = self.baseline().times
        candidate.times = timed.times
        candidate.ratio = round(ratio(timed.times, base), 6) if timed.times and not timed.fault else None
        if timed.fault:
            candidate.fate = Fate.WRONG if timed.ran else Fate.NO_RUN
            if not timed.ran and REGISTRY[self._clock.mode].on_device:
                self._still_there()
            candidate.reason = f"{timed.failed}: {timed.fault}"[:600]
        elif len(timed.times) < len(base):
            told = f"far behind the best; timed on {len(timed.times)} of {len(base)} shapes"
            candidate.fate, candidate.reason = Fate.SLOWER, told
        elif (candidate.ratio or 1.0) > 1.0 - GAIN:
            candidate.fate, candidate.reason = Fate.SLOWER, "not faster than the kernel"
        elif lost := [case for case, took in timed.times.items() if took > base[case] * (1.0 + GAIN)]:
            candidate.fate, candidate.reason = Fate.SLOWER, f"{lost[0]} loses"

    def _still_there(self) -> None:
        """Run the kernel itself: where that fails too the device is gone, and nothing may be noted about the candidate.

        Raises:
            InfraError: the kernel, which ran before, does not run any more.
        """
        again = self._clock.time(self._kernel.source, trials=self._clock.timing[-1:])
        if again.fault:
            raise InfraError(
                f"the device is gone: the kernel itself does not run any more ({again.fault[:200]})",
                remedy="look at the device, then call `pypto-op tune` again with --resume; what was tried is kept",
            )


def _merit(candidate: Candidate) -> tuple[float, int, int]:
    """Sort by time; of two that take the same, that which changes less."""
    return round(candidate.ratio or 1.0, 3), len(candidate.assignment), candidate.number


def difference(before: str, after: str) -> str:
    """Return a unified diff of two texts of a kernel, without context."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), "kernel", "candidate", lineterm="", n=0)
    return "\n".join(lines)


def _told(candidate: Candidate) -> float | None:
    """Return what the model learns: nothing of a text that is no right kernel."""
    return candidate.ratio if candidate.fate in (Fate.SURVIVED, Fate.SLOWER, Fate.ACCEPTED, Fate.REFUSED) else None
