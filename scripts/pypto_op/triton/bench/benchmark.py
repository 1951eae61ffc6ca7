"""`benchmark_triton`: time a verified implementation beside its reference, shape by shape.

Nothing here imports torch: the processes begin to load it first (`sessions.Started`), and this one loads it beside them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pypto_op.backends.base import Limits
from pypto_op.triton.bench import gate
from pypto_op.triton.run import results
from pypto_op.triton.run.project import Project
from pypto_op.triton.run.sessions import Started
from pypto_op.triton.run.targets import choose


@dataclass(frozen=True)
class Request:
    """How to time.

    Attributes:
        target: interpret, cuda, npu, or None for the device that is there.
        warmup: calls before each round that are not counted.
        repeats: counted calls of the implementation per shape; the reference gets twice as many (the A/A run).
        output: where the result goes; None: perf_result*.json in the folder.
        skip_framework, framework_latency_ms: take the caller's number for the reference's time.
        verify_not_required: time what was not verified; the result says so.
        do_bench: also ask Triton's own do_bench, in the same process right after.
        operators: also ask torch's profiler which kernels a call runs (CUDA).
        case_timeout: seconds for each message to a process.
        memory_mb: resident memory of each process.
        checked: how many timed calls of a shape, drawn at random, have their outputs compared with the reference's.
        policy: tolerance of that comparison; None: the default of the verification.
    """

    target: str | None = None
    warmup: int = 5
    repeats: int = 50
    output: Path | None = None
    skip_framework: bool = False
    framework_latency_ms: float | None = None
    verify_not_required: bool = False
    do_bench: bool = False
    operators: bool = False
    case_timeout: float = 300.0
    memory_mb: int = 65536
    checked: int = 4
    policy: str | None = None

    def limits(self) -> Limits:
        """Return what a process may use."""
        return Limits(self.memory_mb, self.case_timeout, min(300.0, self.case_timeout))


def benchmark_triton(
    project: Project, request: Request = Request(), progress: Callable[[dict[str, Any]], None] | None = None
) -> dict[str, Any]:  # noqa: B008
    """Time an implementation and write the result.

    Args:
        project: task and implementation.
        request: how.
        progress: called with each shape's row.

    Returns:
        The result (schemas/triton_perf_result.schema.json).

    Raises:
        GateClosed: there is no sealed PASS for these bytes; nothing is written.
        PyptoOpError: the task or the machine cannot be used; nothing is written.
    """
    path = request.output or project.perf_result
    results.check_target(path, "benchmark result", "per_shape_results", own=project.perf_result)
    project.perf_result.unlink(missing_ok=True)
    if not request.verify_not_required:
        gate.exists(project)  # before anything else is missed: without a verdict nothing is timed
    project.check()
    verdict = None if request.verify_not_required else gate.check(project, str(choose(request.target).target))
    started = Started(project, request.target, request.limits())
    try:
        from pypto_op.triton.bench.rounds import Bench

        result = Bench(project, request, started, verdict).run(progress)
    finally:
        started.close()
    results.write(path, result, "triton_perf_result")
    return result
