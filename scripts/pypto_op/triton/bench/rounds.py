"""The rounds of a benchmark: reference, implementation and reference again, shape by shape."""

from __future__ import annotations

import contextlib
import secrets
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

from pypto_op import __version__
from pypto_op.documents.policy import Policy
from pypto_op.errors import PyptoOpError
from pypto_op.triton.bench import figures, roofline
from pypto_op.triton.bench.request import Request
from pypto_op.triton.run.inputs.describe import describe
from pypto_op.triton.run.judging.judge_device import JudgeDevice
from pypto_op.triton.run.judging.judgement import Judgement, compare, judge, second_look
from pypto_op.triton.run.processes.sessions import CandidateSession, Started, TaskSession, Told
from pypto_op.triton.run.setup import results
from pypto_op.triton.run.setup.project import Project
from pypto_op.triton.run.setup.request import policy_of
from pypto_op.triton.run.setup.targets import Place, Target, versions

_ROUNDS = 10
_LONGEST_SHIFT = 1 << 30
_METHODS = {
    Target.INTERPRET: "wall clock around forward, Triton's interpreter on the CPU",
    Target.CUDA: "device events around each call of forward",
    Target.NPU: "device events around each call of forward",
}


@dataclass
class _Times:
    """Times of a shape, by round."""

    first: list[list[float]] = field(default_factory=list)
    candidate: list[list[float]] = field(default_factory=list)
    second: list[list[float]] = field(default_factory=list)
    peaks: dict[str, float] = field(default_factory=dict)
    do_bench: dict[str, float] = field(default_factory=dict)
    checked: int = 0


class Bench:
    """One benchmark."""

    def __init__(self, project: Project, request: Request, started: Started, verdict: dict[str, Any] | None) -> None:
        self.project, self.request, self.verdict = project, request, verdict
        self.started, self.place, self.hashes = started, started.place, started.hashes
        self.desk = JudgeDevice(self.place)
        self.device = _device_name(self.place)
        self.policy: Policy = policy_of(request.policy)
        self.seed = secrets.randbelow(2**31)
        self.given = request.skip_framework or request.framework_latency_ms is not None

    def run(self, progress: Callable[[dict[str, Any]], None] | None) -> dict[str, Any]:
        """Time every shape and return the result."""
        begin = time.monotonic()
        rows: list[dict[str, Any]] = []
        with _told(self.started) as (task, candidate):
            total = task.open(self.seed)
            while total is None or len(rows) < total:
                row = self._row(len(rows), task, candidate)
                if row is None:
                    break
                rows.append(row)
                if progress is not None:
                    progress(row)
        if self.request.operators and self.place.target is Target.CUDA:
            self._profile(rows)
        if self.project.hashes() != self.hashes:
            raise PyptoOpError("a file changed while it was timed", file=self.project.folder, remedy="verify and time it again")
        return results.sealed(self._result(rows, time.monotonic() - begin))

    def _profile(self, rows: list[dict[str, Any]]) -> None:
        """Note the kernels of each shape, in other processes: where the profiler ran once, each later launch takes longer."""
        message = {"shifts": [1], "warmup": 1, "keep": [], "operators": True}
        with _told(Started(self.project, self.request.target, self.request.limits())) as (task, candidate):
            task.open(self.seed)
            for index, row in enumerate(rows):
                found = task.case(index, self.seed) if row["status"] == "pass" else None
                if found is None:
                    continue
                candidate.run(found[0], self.seed)
                row["implementation"]["operators"] = candidate.time(message)[1]["operators"]
                if not self.given:
                    row["framework"]["operators"] = task.time(message)["operators"]

    def _row(self, index: int, task: TaskSession, candidate: CandidateSession) -> dict[str, Any] | None:
        try:
            found = task.case(index, self.seed)
        except Told as told:
            task.open(self.seed)
            return self._failed(index, [], "ReferenceFailed", told.message)
        if found is None:
            return None
        given, facts = found
        described = describe(given["inputs"])
        try:
            answer, run, more = candidate.run(given, self.seed)
            judgement = self.desk.of_case(given, answer, lambda want, got: judge(want, facts, got, run, more, self.policy))
            if self._looks_twice(judgement) and not given["mutated"]:
                judgement = second_look(judgement, given["outputs"], answer["outputs"], task.otherwise(self.seed))
            if not judgement.ok:
                return self._failed(index, described, judgement.error_type, judgement.message)
            times = self._rounds(task, candidate)
        except Told as told:
            return self._failed(index, described, told.error_type, told.message)
        except _WrongWhileTimed as wrong:
            return self._failed(index, described, "WrongWhileTimed", str(wrong))
        return self._timed(index, described, times, roofline.floor_ms(given["inputs"], given["outputs"], self.device))

    def _rounds(self, task: TaskSession, candidate: CandidateSession) -> _Times:
        """Interleave reference, candidate and reference again, round by round; check outputs of timed calls."""
        times = _Times()
        rounds = max(1, min(_ROUNDS, self.request.repeats))
        checked = set(secrets.SystemRandom().sample(range(rounds), min(self.request.checked, rounds)))
        for number in range(rounds):
            calls = self.request.repeats // rounds + (number < self.request.repeats % rounds)
            shifts = [1 + secrets.randbelow(_LONGEST_SHIFT) for _ in range(calls)]
            keep = [secrets.randbelow(calls)] if number in checked else []
            last = self.request.do_bench and number == rounds - 1
            message = {
                "shifts": shifts,
                "warmup": self.request.warmup if number == 0 else min(2, self.request.warmup),
                "keep": [],
            }
            if not self.given:
                times.first.append(self._keep(times, "framework", task.time({**message, "do_bench": last})))
            kept, facts = candidate.time({**message, "keep": keep, "watch": secrets.randbelow(calls), "do_bench": last})
            if not int(facts.get("launches", 0)):
                raise _WrongWhileTimed("no kernel was launched while it was timed")
            times.candidate.append(self._keep(times, "implementation", facts))
            if not self.given:
                times.second.append(self._keep(times, "framework", task.time(message)))
            for call, returned in kept.items():
                self._check(task, shifts[call], returned)
                times.checked += 1
        return times

    def _check(self, task: TaskSession, shift: int, returned: Any) -> None:
        golden = task.again(shift, self.seed)
        found = self._compared(golden["outputs"], returned)
        if self._looks_twice(found):
            found = second_look(found, golden["outputs"], returned, task.otherwise(self.seed, shift))
        if not found.ok and not self._compared(golden["outputs"], task.again(shift, self.seed)["outputs"]).ok:
            raise _WrongWhileTimed("the reference answers the same call differently (it keeps a state), so none can be checked")
        if not found.ok:
            raise _WrongWhileTimed(f"the output of a timed call is wrong: {found.message}")

    def _compared(self, expected: Any, actual: Any) -> Judgement:
        return self.desk.compare([expected, actual], lambda both: compare(both[0], both[1], self.policy))

    def _looks_twice(self, found: Judgement) -> bool:
        return found.error_type == "PrecisionError" and self.request.policy is None

    @staticmethod
    def _keep(times: _Times, side: str, facts: dict[str, Any]) -> list[float]:
        times.peaks[side] = max(times.peaks.get(side, 0.0), float(facts["peak_memory_mb"]))
        if facts.get("do_bench") is not None:
            times.do_bench[side] = float(facts["do_bench"])
        return [float(value) for value in facts["milliseconds"]]

    def _timed(self, index: int, described: list[dict[str, Any]], times: _Times, floor: float | None) -> dict[str, Any]:
        candidate = self._side(times, "implementation", [t for part in times.candidate for t in part])
        framework: dict[str, Any] | None
        if self.given:
            latency = float(self.request.framework_latency_ms or 0.0)
            framework = {"avg_latency_ms": latency, "peak_memory_mb": None, "source": self._source()}
        else:
            both = [t for part in (*times.first, *times.second) for t in part]
            framework = self._side(times, "framework", both)
        row = self._empty_row(index, described) | {"status": "pass", "framework": framework, "implementation": candidate}
        pairs = [(a + c, b) for a, b, c in zip(times.first, times.candidate, times.second, strict=True)] if not self.given else []
        row["ratio"] = figures.ratio_interval(pairs)
        row["null_ratio"] = figures.ratio_interval(list(zip(times.first, times.second, strict=True))) if pairs else None
        row["outputs_checked"] = times.checked
        if self.place.target is not Target.INTERPRET:
            own = candidate["avg_latency_ms"]
            row["speedup_vs_torch"] = _speedup(framework["avg_latency_ms"], own)
            row["floor_ms"] = floor
            row["below_floor"] = bool(floor is not None and own < 0.9 * floor)
        return row

    def _source(self) -> str:
        """Return where the reference's time comes from when it is not measured here."""
        return "not measured" if self.request.framework_latency_ms is None else "given by the caller, not measured"

    @staticmethod
    def _side(times: _Times, side: str, values: list[float]) -> dict[str, Any]:
        numbers = figures.summary(values)
        entry: dict[str, Any] = {"avg_latency_ms": numbers["median_ms"], "peak_memory_mb": times.peaks.get(side), **numbers}
        if side in times.do_bench:
            entry["do_bench_ms"] = times.do_bench[side]
        return entry

    def _failed(self, index: int, described: list[dict[str, Any]], error_type: str, message: str) -> dict[str, Any]:
        return self._empty_row(index, described) | {"error_type": error_type, "error_msg": message[:4000]}

    @staticmethod
    def _empty_row(index: int, described: list[dict[str, Any]]) -> dict[str, Any]:
        return {
            "case_idx": index + 1,
            "input_desc": described,
            "status": "fail",
            "framework": None,
            "implementation": None,
            "speedup_vs_torch": None,
            "error_type": None,
            "error_msg": None,
        }

    def _result(self, rows: list[dict[str, Any]], seconds: float) -> dict[str, Any]:
        summed = figures.overall(rows)
        on_cpu = self.place.target is Target.INTERPRET
        notes = list(self.place.caveats)
        if not self.request.operators:
            notes.append("operators is empty: --operators asks torch's profiler on a GPU")
        elif self.place.target is not Target.CUDA:
            notes.append(f"operators is empty: torch's profiler is asked on a GPU only, and this ran on {self.place.target}")
        if on_cpu:
            notes.append("no speed-up is claimed: Triton's interpreter is not a device")
        if self.request.verify_not_required:
            notes.append("--verify_not_required: it was timed without a verdict for these bytes")
        if self.given:
            notes.append(
                "--skip_framework: the reference was not timed, so there is no ratio"
                if self.request.framework_latency_ms is None
                else "the reference was not timed here: its latency was given by the caller, so the ratio is no measurement"
            )
        return {
            "schema_version": 1,
            "op_name": self.project.op_name,
            "impl_name": self.project.impl_name,
            "warmup": self.request.warmup,
            "repeats": self.request.repeats,
            **summed,
            "framework": self._averages(rows, "framework"),
            "implementation": self._averages(rows, "implementation"),
            "per_shape_results": rows,
            "backend": str(self.place.target),
            "device": self.device,
            "method": {
                "framework": self._source() if self.given else _METHODS[self.place.target],
                "implementation": _METHODS[self.place.target],
                "values": "new for every call: rolled along the first axis and scaled by 1, 7/8 or 3/4, in the same memory",
                "cache": "a 256 MiB write before every call" if not on_cpu else "as it is",
                "order": "reference, implementation, reference again, in each of up to 10 rounds",
                "latency": "median over all calls of a shape",
            },
            "verify_gate": {"required": not self.request.verify_not_required, "seal": (self.verdict or {}).get("seal")},
            "seed": self.seed,
            "hashes": self.hashes,
            "versions": {**versions(), "pypto-op": __version__},
            "notes": notes,
            "seconds": round(seconds, 3),
            "created": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        }

    @staticmethod
    def _averages(rows: list[dict[str, Any]], side: str) -> dict[str, Any]:
        return {
            "avg_latency_ms": figures.mean_of(rows, side, "avg_latency_ms"),
            "peak_memory_mb": figures.mean_of(rows, side, "peak_memory_mb"),
            "operators": figures.operators_of(rows, side),
        }


@contextlib.contextmanager
def _told(started: Started) -> Iterator[tuple[TaskSession, CandidateSession]]:
    """Give the two processes away and end them; what a task's process tells is the task's fault."""
    try:
        yield started.task, started.candidate
    except Told as told:
        raise PyptoOpError(f"the task: {told.message}", file=started.task.project.task) from None
    finally:
        started.close()


class _WrongWhileTimed(Exception):
    """What a timed call returned is wrong."""


def _speedup(framework: float, own: float) -> float:
    return framework / own if own > 0 and framework > 0 else 0.0


def _device_name(place: Place) -> str:
    if place.target is Target.INTERPRET:
        return "cpu (interpreter)"
    import torch

    if place.target is Target.NPU:
        import torch_npu

        return str(torch_npu.npu.get_device_name(0))
    return str(torch.cuda.get_device_name(0))
