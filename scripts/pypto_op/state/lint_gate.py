"""The lint as a gate: a blocking finding (FAIL of severity S0 or S1) refuses the transition."""

from __future__ import annotations

from pypto_op.state.facts import Refused
from pypto_op.vocabulary import LintEvent
from pypto_op.workspace import OpWorkspace


def require_clean(
    ws: OpWorkspace, event: LintEvent, *, stage: int | None = None, phase: int | None = None
) -> dict[str, int]:
    """Lint the operator as a library, not through a hook: a silent hook proves nothing.

    Returns:
        The number of findings that do not block: `warn` (S2) and `info` (S3).

    Raises:
        Refused: at least one finding blocks; it is named, with the ids of all that block.
    """
    from pypto_op_lint import api

    result = api.lint_operator(ws.root, event=event, stage=stage, phase=phase)
    failed = [f for f in result.findings if str(f.status) == "FAIL"]
    blocking = [f for f in failed if f.severity.blocks]
    if result.blocks:
        first = blocking[0]
        rules = sorted({str(f.rule_id) for f in blocking})
        others = f" (all: {', '.join(rules)}, {len(blocking)} findings)" if len(blocking) > 1 else ""
        raise Refused(
            f"{first.rule_id} {first.severity}: {first.message}{others}",
            file=first.file,
            where=f"line {first.line}" if first.line else None,
            remedy=first.fix_hint or "see `pypto-op lint`",
        )
    warned = sum(str(f.severity) == "S2" for f in failed)
    return {"warn": warned, "info": len(failed) - warned}
