"""The lint as a gate: a blocking finding (FAIL of severity S0 or S1) refuses the transition."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pypto_op.errors import Refused
from pypto_op.proof.closure import CLOSURE
from pypto_op.state.gates.base import Context, gate
from pypto_op.state.model import phase_number
from pypto_op.vocabulary import LintEvent, Loader, Severity
from pypto_op.workspace import OpWorkspace

if TYPE_CHECKING:
    from pypto_op_lint.findings import Finding


_IMPORTS_PYPTO = re.compile(rb"^[^#\n]*\b(?:import|from)\s+pypto\b", re.M)


def require_clean(
    ws: OpWorkspace,
    event: LintEvent,
    *,
    stage: int,
    phase: int | None = None,
    file: Path | None = None,
    strict: frozenset[str] = frozenset(),
) -> dict[str, int]:
    """Lint as a library, not through a hook: a silent hook proves nothing.

    Args:
        file: only this file.
        strict: rules that refuse here although elsewhere they only warn.

    Returns:
        The number of findings that do not block: `warn` (S2) and `info` (S3).

    Raises:
        Refused: at least one finding blocks; the first is told, with the ids of all that block.
    """
    from pypto_op_lint import api
    from pypto_op_lint.findings import WARN

    if file is None:
        result = api.lint_operator(ws.root, event=event, stage=stage, phase=phase)
    else:
        result = api.lint_path(file, event=event, stage=stage)
    blocking = result.blocking + [f for f in result.findings if f.rule_id in strict and f.status == WARN]
    if blocking:
        raise _refusal(blocking)
    warned = sum(finding.severity is Severity.S2 for finding in result.findings)
    return {"warn": warned, "info": len(result.findings) - warned}


def require_one_kernel_file(ws: OpWorkspace, report: Mapping[str, Any]) -> None:
    """Refuse a verdict whose impl loads kernel code from elsewhere: rules, mutants and clean-up see the impl's file alone.

    Helpers without pypto (constants, shapes, padding) may lie elsewhere; the judge searches and hashes them.

    Raises:
        Refused: a helper that the judge saw loaded imports pypto.
    """
    for path in report[CLOSURE][Loader.CANDIDATE]:
        file = ws.root / path
        if path.endswith(".py") and file.is_file() and _IMPORTS_PYPTO.search(file.read_bytes()):
            raise Refused("holds kernel code that the linter does not see", file=file, remedy="move it into the impl")


def _refusal(blocking: Sequence[Finding]) -> Refused:
    first = blocking[0]
    rules = sorted({finding.rule_id for finding in blocking})
    others = f" ({len(blocking)} findings block: {', '.join(rules)})" if len(blocking) > 1 else ""
    return Refused(
        f"[{first.rule_id}][{first.severity}] {first.message}{others}",
        file=first.file,
        where=f"line {first.line}" if first.line else None,
        remedy=first.fix_hint,
    )


@gate
def _lint_stage(context: Context) -> None:
    stage = context.args["stage"]
    strict = _RUN.get(stage, frozenset())
    context.facts["lint"] = require_clean(context.ws, LintEvent.COMPLETE_STAGE, stage=stage, strict=strict)


_RUN = {2: frozenset({"OL11"})}
"""Stage -> rules that run a file: a golden that does not import, or fails its own check, is not frozen."""


@gate
def _lint_design(context: Context) -> None:
    context.facts["lint"] = require_clean(context.ws, LintEvent.SUBMIT_DESIGN, stage=4)


@gate
def _lint_phase(context: Context) -> None:
    k = phase_number(context.args["phase"])
    context.facts["lint"] = require_clean(context.ws, LintEvent.SUBMIT_FOR_VERIFY, stage=5, phase=k)
