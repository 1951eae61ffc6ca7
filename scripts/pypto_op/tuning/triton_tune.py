"""`tune_triton`: the same search and the same acceptance for a Triton implementation, on a GPU."""

from __future__ import annotations

import math
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from pypto_op.documents.writing import write_atomically
from pypto_op.errors import ContractError, InfraError, PyptoOpError
from pypto_op.triton.bench import choice, gate
from pypto_op.triton.bench.benchmark import Request as Timing
from pypto_op.triton.bench.benchmark import benchmark_triton
from pypto_op.triton.run.project import Project
from pypto_op.triton.run.targets import Target, choose
from pypto_op.triton.run.verify import Request as Judging
from pypto_op.triton.run.verify import verify_triton
from pypto_op.triton.static.policy import load_policy
from pypto_op.triton.static.validate import validate_file
from pypto_op.tuning.proposer import Proposer
from pypto_op.tuning.search import GAIN, difference
from pypto_op.tuning.triton_kernel import TritonKernel

_MOST_JUDGED = 4
_QUICK = {"warmup": 2, "repeats": 10, "checked": 1, "verify_not_required": True, "skip_framework": True}
Note = Callable[[str], None]


@dataclass
class Candidate:
    """One candidate: what differs, what became of it, and its time over the implementation's."""

    number: int
    origin: str
    assignment: dict[str, str]
    diff: str
    fate: str = "right so far"
    reason: str = ""
    ratio: float | None = None


@dataclass
class Tuned:
    """What came of a search.

    Attributes:
        target: where it was timed.
        candidates: in the order of trials.
        chosen: the accepted one, or None.
        gain: times as fast, as `pypto-op triton compare` says; None without one.
        seconds: of the search.
        timings: benchmarks that were run, for the comparison with `triton.autotune`.
        written: it lies in the implementation's place, with a PASS.
    """

    target: str
    candidates: list[Candidate] = field(default_factory=list)
    chosen: Candidate | None = None
    gain: float | None = None
    seconds: float = 0.0
    timings: int = 0
    written: bool = False


def tune_triton(
    project: Project,
    *,
    target: str | None,
    seconds: float,
    trials: int,
    seed: int = 11,
    write: bool = True,
    note: Note = lambda words: None,
) -> Tuned:
    """Search faster blocks, warps and stages, and put the best right implementation in its place.

    Args:
        project: task and implementation, with a sealed PASS on the target.
        target: interpret, cuda, npu, or None for the device that is there.
        seconds: of the search.
        trials: the most candidates.
        seed: of the search.
        write: put the best one in the implementation's place.
        note: told, in words, what is being done.

    Raises:
        ContractError: no PASS, no budget, or nothing to choose.
        InfraError: there is no device; the interpreter's times mean nothing, so it must be asked for by name.
    """
    if seconds <= 0 or trials <= 0:
        raise ContractError("a search without time or trials finds nothing", remedy="give --budget and --trials more than 0")
    gate.exists(project)
    project.check()
    place = choose(target)
    if place.target is Target.INTERPRET and target != str(Target.INTERPRET):
        raise InfraError("there is no GPU, and the interpreter's times mean nothing", remedy="tune on a machine with a device")
    gate.check(project, str(place.target))
    source = project.impl.read_text(encoding="utf-8")
    kernel = TritonKernel(source)
    if not kernel.choices:
        raise ContractError("has no free choice: no launch with a block size, warps or stages", file=project.impl)
    with tempfile.TemporaryDirectory(prefix="pypto-op-triton-") as folder:
        search = _Search(project, kernel, str(place.target), Path(folder), note)
        tuned = search.run(seconds, trials, seed)
        text = search.accepted(tuned)
    if text is not None and write:
        _put(project, text, source, tuned)
    return tuned


class _Search:
    def __init__(self, project: Project, kernel: TritonKernel, target: str, folder: Path, note: Note) -> None:
        self._project, self._kernel, self._target, self._folder, self._note = project, kernel, target, folder, note
        self._timings = 0

    def run(self, seconds: float, trials: int, seed: int) -> Tuned:
        """Search; the first timing is the implementation's own."""
        started, tuned = time.monotonic(), Tuned(self._target)
        base = self._times(self._staged("base", self._kernel.source))
        proposer = Proposer(self._kernel, seed, _thumb(self._kernel))
        while len(tuned.candidates) < trials and time.monotonic() - started < seconds:
            proposal = proposer.next()
            if proposal is None:
                break
            text = self._kernel.write(proposal.assignment)
            diff = difference(self._kernel.source, text)
            one = Candidate(len(tuned.candidates) + 1, proposal.origin, dict(proposal.assignment), diff)
            self._try(one, text, base)
            tuned.candidates.append(one)
            proposer.tell(proposal, one.ratio)
            self._note(f"candidate {one.number} ({one.origin}): {one.fate}, {one.ratio or one.reason[:100]}")
        tuned.seconds, tuned.timings = time.monotonic() - started, self._timings
        return tuned

    def _try(self, one: Candidate, text: str, base: list[float]) -> None:
        """Time a candidate; its outputs are compared while it is timed."""
        staged = self._staged(f"c{one.number}", text)
        checked = validate_file(staged.impl, load_policy(None))
        if not checked["valid"]:
            one.fate, one.reason = "refused", f"the static check refuses it: {checked['suggestion']}"
            return
        try:
            times = self._times(staged)
        except PyptoOpError as error:
            one.fate, one.reason = "wrong, or it does not run", error.one_line()[:400]
            return
        one.ratio = math.exp(statistics.fmean(math.log(new / old) for new, old in zip(times, base, strict=True)))
        if one.ratio > 1 - GAIN:
            one.fate = "slower"

    def accepted(self, tuned: Tuned) -> str | None:
        """Return the text of the first survivor that every case passes and that is faster beyond the noise."""
        alive = [one for one in tuned.candidates if one.fate == "right so far" and one.ratio is not None]
        before: Path | None = None
        for one in sorted(alive, key=lambda one: one.ratio or 1.0)[:_MOST_JUDGED]:
            text = self._kernel.write(one.assignment)
            staged = self._staged(f"judged{one.number}", text)
            verdict = verify_triton(staged, Judging(target=self._target))
            if verdict["status"] != "PASS":
                one.fate, one.reason = "refused", f"{verdict['passed_cases']} of {verdict['total_cases']} cases are right"
                continue
            if self._target == str(Target.INTERPRET):
                one.reason, tuned.chosen, tuned.gain = "the interpreter's times mean nothing", one, 1 / (one.ratio or 1.0)
                one.fate = "accepted"
                return text
            before = before or self._benchmarked(self._staged("before", self._kernel.source, verdict=True))
            found = choice.choose(before, self._benchmarked(staged))
            if found["keep"]:
                one.fate, tuned.chosen, tuned.gain = "accepted", one, float(found["gain"])
                return text
            one.fate, one.reason = "refused", "it is not faster beyond the noise on every shape"
        return None

    def _benchmarked(self, staged: Project) -> Path:
        """Time an implementation beside its reference, and return where the result lies."""
        benchmark_triton(staged, Timing(target=self._target))
        return staged.perf_result

    def _times(self, staged: Project) -> list[float]:
        """Return the median milliseconds of each shape.

        Raises:
            ContractError: an output was wrong while it was timed.
        """
        self._timings += 1
        result = benchmark_triton(staged, Timing(target=self._target, **_QUICK))  # type: ignore[arg-type]
        for row in result["per_shape_results"]:
            if row["status"] == "fail":
                raise ContractError(f"shape {row['case_idx']}: {row['error_type']}: {row['error_msg'][:300]}")
        return [float(row["implementation"]["avg_latency_ms"]) for row in result["per_shape_results"]]

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
    if project.impl.read_text(encoding="utf-8") != before:
        raise ContractError("changed while it was tuned", file=project.impl, remedy="let nothing write it, then tune again")
    write_atomically(project.impl, text)
    verdict = verify_triton(project, Judging(target=tuned.target))
    tuned.written = verdict["status"] == "PASS"
    if not tuned.written:
        write_atomically(project.impl, before)
        verify_triton(project, Judging(target=tuned.target))
