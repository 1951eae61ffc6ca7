"""`verify_triton`: run every case of a task through the implementation and say which are right.

Nothing here imports torch: the processes begin to load it first (`sessions.Started`), and this one loads it beside them.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pypto_op.errors import PyptoOpError
from pypto_op.triton.run import summary
from pypto_op.triton.run.processes.sessions import Started, Told
from pypto_op.triton.run.setup import results
from pypto_op.triton.run.setup.deadline import TimeIsUp
from pypto_op.triton.run.setup.project import Project
from pypto_op.triton.run.setup.request import Request, policy_of

if TYPE_CHECKING:
    from pypto_op.documents.policy import Policy
    from pypto_op.triton.run.case import Case
    from pypto_op.triton.run.passes import Run


def verify_triton(
    project: Project, request: Request | None = None, progress: Callable[[Case], None] | None = None
) -> dict[str, Any]:
    """Verify an implementation and write the result, whatever happens to it.

    Args:
        request: how; None: the defaults.
        progress: called with each case when a pass is through with it.

    Returns:
        The result (schemas/verify_result.schema.json); `status` is PASS, FAIL or ERROR.

    Raises:
        ContractError: no operator of that name lies there, or a place of the result is taken by something that is none;
            nothing is changed.
    """
    request = request or Request()
    project.check_name()  # first: a slip of the pen must not replace another operator's verdict
    paths = [project.verify_result, *([request.output] if request.output else [])]
    for path in paths:
        results.check_target(path, "verify result", "failures", own=project.verify_result)
    project.verify_result.unlink(missing_ok=True)
    begun = time.monotonic()
    policy, started = _begin(project, request, begun)
    from pypto_op.triton.run import passes

    run = passes.Run(project, request, progress, begun, policy)
    status: str = "ERROR"
    error: str | None = "the run was interrupted"
    try:
        status, error = _ended(run, started)
    finally:
        if isinstance(started, Started):
            started.close()
        result = summary.of(run, status, error)
        for path in dict.fromkeys(paths):
            results.write(path, result, "verify_result")
    return result


def _begin(project: Project, request: Request, begun: float) -> tuple[Policy | None, Started | PyptoOpError]:
    """Begin to load task and implementation; return the tolerance too, and what is wrong with the request or the machine."""
    policy = None
    try:
        policy = policy_of(request.policy)  # a wrong name is told before anything starts
        return policy, Started(project, request.target, request.limits(begun), orders=request.seeds > 1)
    except PyptoOpError as problem:
        return policy, problem


def _ended(run: Run, started: Started | PyptoOpError) -> tuple[str, str | None]:
    """Run everything; return the result's status, and why there is no verdict."""
    try:
        run.everything(started)
        return run.status(), None if run.cases else "the task yields no case, so nothing was verified"
    except TimeIsUp:
        error = f"验证超时: verification timed out after {run.request.timeout:g} seconds"
        run.mark_rest("Timeout", error)
    except Told as told:
        error = f"the task: {told.message}"
    except PyptoOpError as problem:
        error = problem.one_line()
    return "ERROR", error
