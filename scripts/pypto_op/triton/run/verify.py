"""`verify_triton`: run every case of a task through the implementation and say which are right.

Nothing here imports torch: the processes begin to load it first (`sessions.Started`), and this one loads it beside them.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pypto_op.errors import PyptoOpError
from pypto_op.triton.run import results
from pypto_op.triton.run.deadline import TimeIsUp
from pypto_op.triton.run.project import Project
from pypto_op.triton.run.request import Request
from pypto_op.triton.run.sessions import Started, Told

if TYPE_CHECKING:
    from pypto_op.triton.run.case import Case


def verify_triton(
    project: Project, request: Request | None = None, progress: Callable[[Case], None] | None = None
) -> dict[str, Any]:
    """Verify an implementation and write the result, whatever happens.

    Args:
        project: task and implementation.
        request: how; None: the defaults.
        progress: called with each case when a pass is through with it.

    Returns:
        The result (schemas/verify_result.schema.json); `status` is PASS, FAIL or ERROR.

    Raises:
        ContractError: a place of the result is taken by something that is none; nothing is changed.
    """
    request = request or Request()
    paths = [project.verify_result, *([request.output] if request.output else [])]
    for path in paths:
        results.check_target(path, "verify result", "failures", own=project.verify_result)
    project.verify_result.unlink(missing_ok=True)
    begun = time.monotonic()
    started: Started | PyptoOpError
    try:
        if request.policy is not None:
            from pypto_op.documents.policy import get_policy

            get_policy(request.policy)  # a wrong name is told before anything starts
        started = Started(project, request.target, request.limits(begun))
    except PyptoOpError as problem:
        started = problem
    from pypto_op.triton.run.passes import Run

    run = Run(project, request, progress, begun)
    status = "ERROR"
    error: str | None = "the run was interrupted"
    try:
        run.everything(started)
        status, error = run.status(), None if run.cases else "the task yields no case, so nothing was verified"
    except TimeIsUp:
        status, error = "ERROR", f"验证超时: verification timed out after {request.timeout:g} seconds"
        run.mark_rest("Timeout", error)
    except Told as told:
        status, error = "ERROR", f"the task: {told.message}"
    except PyptoOpError as problem:
        status, error = "ERROR", problem.one_line()
    finally:
        if isinstance(started, Started):
            started.close()
        result = run.result(status, error)
        for path in dict.fromkeys(paths):
            results.write(path, result, "verify_result")
    return result
