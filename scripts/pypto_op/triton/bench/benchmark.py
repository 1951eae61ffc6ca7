"""`benchmark_triton`: time a verified implementation beside its reference, shape by shape.

Nothing here imports torch: the processes begin to load it first (`sessions.Started`), and this one loads it beside them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pypto_op.triton.bench import gate
from pypto_op.triton.bench.request import Request
from pypto_op.triton.run.processes.sessions import Started
from pypto_op.triton.run.setup import results
from pypto_op.triton.run.setup.project import Project
from pypto_op.triton.run.setup.targets import choose


def benchmark_triton(
    project: Project, request: Request | None = None, progress: Callable[[dict[str, Any]], None] | None = None
) -> dict[str, Any]:
    """Time an implementation and write the result.

    Returns:
        The result (schemas/triton_perf_result.schema.json).

    Raises:
        GateClosed: there is no sealed PASS for these bytes; nothing is written.
        PyptoOpError: the task or the machine cannot be used; nothing is written.
    """
    request = request or Request()
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
