"""`tune_triton`: the same search and the same acceptance for a Triton implementation, on a GPU."""

from __future__ import annotations

import json
import math
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from pypto_op import __version__
from pypto_op.backends.build_cache import digest_of
from pypto_op.documents.reading import read_text
from pypto_op.documents.writing import write_atomically
from pypto_op.errors import ContractError, InfraError, PyptoOpError
from pypto_op.triton.bench import choice
from pypto_op.triton.bench.benchmark import benchmark_triton
from pypto_op.triton.bench.request import Request as Timing
from pypto_op.triton.run.setup.project import Project
from pypto_op.triton.run.setup.request import Request as Judging
from pypto_op.triton.run.setup.targets import Target, versions
from pypto_op.triton.run.verify import verify_triton
from pypto_op.triton.static.policy import load_policy
from pypto_op.triton.static.validate import validate_file
from pypto_op.tuning.asking import GAIN
from pypto_op.tuning.ledger import BEFORE, Candidate, Fate, Ledger, alone
from pypto_op.tuning.proposer import Proposal, Proposer
from pypto_op.tuning.search import BASELINE, difference
from pypto_op.tuning.triton_admission import admit
from pypto_op.tuning.triton_kernel import TritonKernel

_MOST_JUDGED = 4
_QUICK = {"warmup": 2, "repeats": 10, "checked": 1, "verify_not_required": True, "skip_framework": True}
Note = Callable[[str], None]


@dataclass
class Tuned:
    """What came of a search."""

    target: str  # where it was timed
    before: Candidate  # the implementation itself
    candidates: list[Candidate] = field(default_factory=list)  # in the order of trials
    chosen: Candidate | None = None  # the accepted one, or None
    gain: float | None = None  # times as fast, as `pypto-op triton compare` says; None without one
    seconds: float = 0.0  # of the search
    timings: int = 0  # benchmarks that this sitting ran
    combinations: int = 0  # of all options: what `triton.autotune` would time, given the same
    resumed: int = 0  # candidates that an earlier sitting had tried
    ended: str = "every trial was made"  # why the search ended, in words
    importance: dict[str, float] = field(default_factory=dict)  # choice -> its share of the differences
    written: bool = False  # it lies in the implementation's place, with a PASS


def tune_triton(
    project: Project,
    *,
    target: str | None,
    seconds: float,
    trials: int,
    seed: int = 11,
    write: bool = True,
    resume: bool = False,
    note: Note = lambda words: None,
) -> Tuned:
    """Search faster blocks, warps and stages, and put the best right implementation in its place.

    Args:
        project: task and implementation, with a sealed PASS on the target.
        target: interpret, cuda, npu, or None for the device that is there.
        trials: the most candidates.
        write: put the best one in the implementation's place.
        resume: there must be an earlier search of exactly this; what it knew is taken over in any case.
        note: told, in words, what is being done.

    Raises:
        ContractError: no PASS, no budget, nothing to choose, nothing to resume, or another search runs here.
        InfraError: there is no device, or it went away; the interpreter's times mean nothing, so it must be asked for by name.
    """
    place = admit(project, target, seconds, trials)
    source = read_text(project.impl)
    kernel = TritonKernel(source)
    if not kernel.choices:
        raise ContractError("has no free choice: no launch with a block size, warps or stages", file=project.impl)
    project.tuning_folder.mkdir(parents=True, exist_ok=True)
    with alone(project.tuning_folder), tempfile.TemporaryDirectory(prefix="pypto-op-triton-") as folder:
        ledger = Ledger(project.tuning_folder / _key(project, str(place.target)))
        if resume and not ledger.all():
            raise ContractError("there is no earlier search of exactly this", file=project.impl, remedy="leave --resume out")
        search = _Search(project, kernel, str(place.target), Path(folder), ledger, note)
        tuned = search.run(seconds, trials, seed)
        text = search.accepted(tuned)
        if text is not None and write:
            write_atomically(ledger.folder / BEFORE, source)
            _put(project, text, source, tuned)
    return tuned


def _key(project: Project, target: str) -> str:
    """Return the name of the folder for all that a candidate's figures and verdict depend on."""
    parts = [project.hashes(), target, versions(), __version__]
    return digest_of(json.dumps(parts, sort_keys=True, default=str))[:16]


class _Search:
    def __init__(self, project: Project, kernel: TritonKernel, target: str, folder: Path, ledger: Ledger, note: Note) -> None:
        self._project, self._kernel, self._target, self._folder, self._note = project, kernel, target, folder, note
        self._ledger, self._timings = ledger, 0

    def run(self, seconds: float, trials: int, seed: int) -> Tuned:
        """Search; the first timing is the implementation's own, in every sitting: a device's clock may have changed."""
        started = time.monotonic()
        resumed = len([one for one in self._ledger.all() if one.number])
        base = self._times(self._staged("base", self._kernel.source))
        before = Candidate(0, BASELINE, {}, digest_of(self._kernel.source), "", Fate.SURVIVED, times=base, ratio=1.0)
        tuned = Tuned(self._target, before, resumed=resumed)
        tuned.combinations = math.prod(len(one.options) for one in self._kernel.choices.values())
        proposer = Proposer(self._kernel, seed, _thumb(self._kernel))
        while len(tuned.candidates) < trials:
            if time.monotonic() - started >= seconds:
                tuned.ended = "the budget was spent"
                break
            proposal = proposer.next()
            if proposal is None:
                tuned.ended = "every candidate was tried"
                break
            one = self._one(proposal, len(tuned.candidates) + 1, base)
            tuned.candidates.append(one)
            proposer.tell(proposal, one.ratio)
            self._note(f"candidate {one.number} ({one.origin}): {one.fate}, {one.ratio or one.reason[:100]}")
        tuned.importance = proposer.importance()
        tuned.seconds, tuned.timings = time.monotonic() - started, self._timings
        return tuned

    def _one(self, proposal: Proposal, number: int, base: dict[str, float]) -> Candidate:
        """Try one candidate, or return what is known of its text."""
        text, begun = self._kernel.write(proposal.assignment), time.monotonic()
        digest, assignment = digest_of(text), dict(proposal.assignment)
        known = self._ledger.known(digest)
        if known is not None:
            return replace(known, number=number, origin=proposal.origin, assignment=assignment)
        diff = difference(self._kernel.source, text)
        one = Candidate(number, proposal.origin, assignment, digest, diff, Fate.SURVIVED)
        self._try(one, text, base)
        one.seconds = round(time.monotonic() - begun, 3)
        self._ledger.note(one)
        return one

    def _try(self, one: Candidate, text: str, base: dict[str, float]) -> None:
        """Time a candidate; its outputs are compared while it is timed."""
        staged = self._staged(f"c{one.number}", text)
        checked = validate_file(staged.impl, load_policy(None))
        if not checked["valid"]:
            one.fate, one.reason = Fate.REFUSED, f"the static check refuses it: {checked['suggestion']}"
            return
        try:
            one.times = self._times(staged)
        except InfraError:
            raise  # the machine's fault: nothing is known of the candidate
        except PyptoOpError as error:
            if error.file == staged.task:
                self._still_runs(f"again{one.number}")
            one.fate, one.reason = Fate.WRONG, error.one_line()[:400]
            return
        one.ratio = math.exp(statistics.fmean(math.log(one.times[shape] / old) for shape, old in base.items()))
        if one.ratio > 1 - GAIN:
            one.fate, one.reason = Fate.SLOWER, "not faster than the implementation"

    def _still_runs(self, name: str) -> None:
        """Raise InfraError where the implementation, which has a PASS, cannot be timed any more either."""
        try:
            self._times(self._staged(name, self._kernel.source))
        except PyptoOpError as error:
            remedy = "see whether the device is there, then go on with --resume"
            raise InfraError(
                f"the implementation itself does not run any more: {error.one_line()[:300]}", remedy=remedy
            ) from None

    def accepted(self, tuned: Tuned) -> str | None:
        """Return the text of the first survivor that every case passes and that is faster beyond the noise."""
        alive = [one for one in tuned.candidates if one.fate in (Fate.SURVIVED, Fate.ACCEPTED) and one.ratio is not None]
        before: Path | None = None
        for one in sorted(alive, key=lambda one: one.ratio or 1.0)[:_MOST_JUDGED]:
            text = self._kernel.write(one.assignment)
            staged = self._staged(f"judged{one.number}", text)
            verdict = verify_triton(staged, Judging(target=self._target))
            if verdict["status"] != "PASS":
                one.fate, one.reason = Fate.REFUSED, f"{verdict['passed_cases']} of {verdict['total_cases']} cases are right"
            elif self._target == str(Target.INTERPRET):
                one.fate, one.reason = Fate.ACCEPTED, "the interpreter's times mean nothing"
                tuned.gain = 1 / (one.ratio or 1.0)
            else:
                before = before or self._benchmarked(self._staged("before", self._kernel.source, verdict=True))
                found = choice.choose(before, self._benchmarked(staged))
                one.fate = Fate.ACCEPTED if found["keep"] else Fate.REFUSED
                one.reason = "" if found["keep"] else "it is not faster beyond the noise on every shape"
                tuned.gain = float(found["gain"]) if found["keep"] else None
            self._ledger.note(one)
            if one.fate is Fate.ACCEPTED:
                tuned.chosen = one
                return text
        return None

    def _benchmarked(self, staged: Project) -> Path:
        """Time an implementation beside its reference, and return where the result lies."""
        benchmark_triton(staged, Timing(target=self._target))
        return staged.perf_result

    def _times(self, staged: Project) -> dict[str, float]:
        """Return the median microseconds of each shape.

        Raises:
            ContractError: an output was wrong while it was timed.
            PyptoOpError: the reference does not run.
        """
        self._timings += 1
        result = benchmark_triton(staged, Timing(target=self._target, **_QUICK))  # type: ignore[arg-type]
        for row in result["per_shape_results"]:
            if row["error_type"] == "ReferenceFailed":
                raise PyptoOpError(f"the task: {row['error_msg'][:300]}", file=staged.task)
            if row["status"] == "fail":
                raise ContractError(f"shape {row['case_idx']}: {row['error_type']}: {row['error_msg'][:300]}")
        rows = result["per_shape_results"]
        return {f"shape {row['case_idx']}": float(row["implementation"]["avg_latency_ms"]) * 1e3 for row in rows}

    def _staged(self, name: str, text: str, *, verdict: bool = False) -> Project:
        """Lay task, data and helpers beside a text, in a folder of its own."""
        folder = self._folder / name
        folder.mkdir()
        for path in self._project.folder.iterdir():
            result = path.name.startswith(("verify_result", "perf_result")) and not verdict
            if path.name not in ("_debug", "__pycache__", self._project.impl.name) and not result:
                (shutil.copytree if path.is_dir() else shutil.copyfile)(path, folder / path.name)
        staged = Project(folder.resolve(), self._project.op_name, self._project.impl_name)
        staged.impl.write_text(text, encoding="utf-8")
        return staged


def _thumb(kernel: TritonKernel) -> Iterator[dict[str, str]]:
    """Yield each size halved and doubled, then more warps: what a person would try first."""
    sizes = [one for one in kernel.choices.values() if one.now.isdigit() and not one.key.startswith("num_")]
    for factor in (2.0, 4.0, 0.5, 0.25):
        yield {one.key: str(int(int(one.now) * factor)) for one in sizes if str(int(int(one.now) * factor)) in one.options}
    for warps in ("8", "2"):
        yield {key: warps for key, one in kernel.choices.items() if key.startswith("num_warps") and warps in one.options}


def _put(project: Project, text: str, before: str, tuned: Tuned) -> None:
    """Write the implementation and verify it there; put the old one back where it does not pass."""
    if read_text(project.impl) != before:
        raise ContractError("changed while it was tuned", file=project.impl, remedy="let nothing write it, then tune again")
    write_atomically(project.impl, text)
    try:
        tuned.written = verify_triton(project, Judging(target=tuned.target))["status"] == "PASS"
    except BaseException:
        write_atomically(project.impl, before)
        raise
    if not tuned.written:
        write_atomically(project.impl, before)
        verify_triton(project, Judging(target=tuned.target))
