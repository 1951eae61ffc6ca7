"""The one command that a person or an agent runs after a FAIL."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pypto_op.judge.findings.reasons import LOAD_FAILURES
from pypto_op.vocabulary import FailureCategory, Mode, Status
from pypto_op.workspace import OpWorkspace, typed

_UNDEFINED = re.compile(r"([^\s:]+\.py:\d+): (?:NameError|UnboundLocalError): ")
"""What Python says of a name that nobody defined: line and remedy stand in it, so nothing is left to search."""


def after_failure(report: Mapping[str, Any], file: Path, ws: OpWorkspace) -> str:
    """Return the next command after a report that is FAIL, or whose kernel does not load; "" where no case is to blame.

    Args:
        file: where it lies, in `eval/` of its operator or anywhere else.
        ws: the operator; a kernel that is not its own is named by `--impl`.
    """
    failure = report["first_failure"]
    if failure is None or not failure["case_id"] or (report["status"] != Status.FAIL and failure["reason"] not in LOAD_FAILURES):
        return ""
    op_dir, case = typed(ws.root), f"--case {shlex.quote(failure['case_id'])}"
    phase = report["up_to_module"] if report["up_to_module"] < report["total_modules"] else None
    impl = ws.root / report["impl_file"]
    foreign = f" --impl {typed(impl)}" if report["impl_file"] and impl != (ws.module_impl(phase) if phase else ws.impl) else ""
    boundary = (f" --up-to-module {phase}" if phase else "") + foreign
    if failure.get("cpu_reproducer_candidate"):
        return f"pypto-op reproduce {op_dir} {case}{boundary}  (is the kernel to blame, or the case?)"
    if failure["failure_category"] == FailureCategory.RUNTIME and (undefined := _UNDEFINED.search(failure["summary"])):
        place, known = undefined[1], f"pypto-op diagnose {op_dir}"  # whole: the first case may be one that compares no number
        return f"pypto-op verify {op_dir}{boundary}  (once {place} is mended; if the name is right there: `{known}`)"
    if failure["failure_category"] not in (FailureCategory.PRECISION, FailureCategory.STRUCTURAL):
        kernel = f" --kernel {typed(impl)}" if report["impl_file"] else ""
        return f"pypto-op diagnose --log {typed(file)}{kernel}  (is it a known mistake?)"
    if failure["reason"] in LOAD_FAILURES:
        return f"pypto-op verify {op_dir}{boundary}  (once {report['impl_file'] or 'the kernel'} is mended: nothing ran)"
    if report["total_modules"] > 1 and not phase:
        return f"pypto-op verify {op_dir} --sweep {case}  (which module is the first that is wrong?)"
    if failure["mode"] == Mode.SIM and failure["failure_category"] == FailureCategory.PRECISION:
        return f"pypto-op debug precision-compare {op_dir} {case}{boundary}  (which line is the first that is wrong?)"
    return f"pypto-op verify {op_dir} {case}{boundary} --error-maps && pypto-op report {op_dir}  (where is it off?)"
