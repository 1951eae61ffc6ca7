"""One MCP server over stdio, the same for Claude Code and OpenCode.

A tool answers with a short JSON object; `ok` is false when a gate or the contract said no, and `error` says why in
one line. Every answer is checked against `schemas/tool_results.schema.json` before it leaves. What a tool needs is
imported when it is first called, so that the harness does not wait for it at start-up.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Annotated, Any

from mcp.server.mcpserver import MCPServer
from pydantic import Field

from pypto_op import __version__, resident
from pypto_op.errors import InfraError, PyptoOpError
from pypto_op.modes import WORDS

OpDir = Annotated[str, Field(description="The operator's directory, custom/<op>.")]
Phase = Annotated[str | None, Field(description="M1, M2, ...")]

server = MCPServer(name="pypto-op", version=__version__, log_level="WARNING")


@server.tool()
def state_transition(
    action: Annotated[str, Field(description="init, advance, rollback_to_stage, ...; `status` lists what is next.")],
    op_dir: OpDir,
    stage: int | None = None,
    phase: Phase = None,
    target_stage: int | None = None,
    max_stage: int | None = None,
    reason: str | None = None,
    failure_category: str | None = None,
    failed_phase: str | None = None,
    failing_module_boundary: int | None = None,
    last_error: str | None = None,
    attempt: str | None = None,
    report: str | None = None,
    name: str | None = None,
    hash: str | None = None,
    role: str | None = None,
    modes: str | None = None,
    token: Annotated[str | None, Field(description="The orchestrator's token, where the state asks for it.")] = None,
) -> dict[str, Any]:
    """Move an operator through its stages and phases. For the orchestrator only; read-only: status, audit."""
    from pypto_op.mcp import tools

    given = {key: value for key, value in locals().items() if key not in ("tools", "action", "op_dir", "token")}
    return _answer("state_transition", lambda: tools.state_transition(action, op_dir, token, given))


@server.tool()
def verify(
    op_dir: OpDir,
    modes: Annotated[str, Field(description=f"A subset of {WORDS}.")] = WORDS,
    up_to_module: Annotated[int | None, Field(description="k, for the cumulative phase M_k.")] = None,
    levels: Annotated[str | None, Field(description="Suite levels, such as L1,L2; default: all.")] = None,
    case: Annotated[str | None, Field(description="Only this case.")] = None,
    impl: Annotated[str | None, Field(description="Judge this file instead.")] = None,
) -> dict[str, Any]:
    """Run the kernel on its suite and judge the numbers; the whole verdict lies in eval/evaluation_report.json."""
    from pypto_op.mcp import tools

    return _answer("verify", lambda: tools.verify(op_dir, modes, up_to_module, levels, case, impl))


@server.tool()
def lint(
    path: Annotated[str, Field(description="A file, or an operator's directory.")],
    event: Annotated[str | None, Field(description="on-write, submit-design, submit-for-verify, complete-stage.")] = None,
    stage: int | None = None,
    phase: Phase = None,
) -> dict[str, Any]:
    """Check a file, or an operator as one of its gates does, against the OL rules."""
    from pypto_op.mcp import tools

    return _answer("lint", lambda: tools.lint(path, event, stage, phase))


@server.tool()
def diagnose_error(
    error_log: Annotated[
        str,
        Field(description="The error text, or a path: log, report, failure folder, custom/<op>, folder of device logs."),
    ],
    kernel_code: Annotated[str | None, Field(description="The kernel that ran: text or path; decides causes.")] = None,
) -> dict[str, Any]:
    """Name the known mistake that a failed run shows: cause, fix, confidence, skill; `ok` is false when none matches."""
    from pypto_op.mcp import tools

    return _answer("diagnose_error", lambda: tools.diagnose_error(error_log, kernel_code))


@server.tool()
def pypto_api(
    name: Annotated[str | None, Field(description="An operation or type: exp, Tensor.view, CastMode.")] = None,
    search: Annotated[str | None, Field(description="Words that say what it does, instead of a name.")] = None,
) -> dict[str, Any]:
    """Say what pypto offers: signature, constraints, dtypes and an example that runs; or find operations by words."""
    from pypto_op.mcp import tools

    return _answer("pypto_api", lambda: tools.pypto_api(name, search))


def _answer(tool: str, work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Return what a tool found, or why it could not, in the shape that the schema gives."""
    from pypto_op.documents import schema

    try:
        result = work()
    except PyptoOpError as error:
        result = {"ok": False, "error": error.one_line()[:1000], "kind": "infra" if isinstance(error, InfraError) else "refused"}
    except Exception as error:  # a path of a call may hold what no path can: NUL, half of a character, a thousand letters
        said = " ".join(f"{type(error).__name__}: {error}".encode("utf-8", "replace").decode().split())[:500]
        remedy = "check the paths and words of the call; if they are right, report this as a fault of pypto-op"
        result = {"ok": False, "error": f"the call cannot be carried out ({said}); {remedy}", "kind": "refused"}
    schema.check({"tool": tool, "result": result}, "tool_results")
    return result


def main() -> None:
    """Serve until the harness closes stdin; so long the commands that it starts share one process that has torch loaded."""
    resident.want(os.getpid())
    server.run("stdio")
