"""Names the next command for an operator, from the files that it has; `check` prints it as `next:`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from pypto_op.documents.schema import Finding
from pypto_op.hashing import check_readable, sha256_file
from pypto_op.vocabulary import Status
from pypto_op.workspace import OpWorkspace, typed


def next_step(ws: OpWorkspace, findings: Mapping[Path, Sequence[Finding]] | None = None) -> str:
    """Return what a person does next, with the command, in one line.

    Args:
        findings: of its documents, where they were checked.
    """
    here = typed(ws.root)
    if not ws.spec.is_file():  # before findings: all other documents go by it
        return f"write {here}/SPEC.md, or begin anew with `pypto-op new OP`"
    for path, found in (findings or {}).items():
        if found and path != ws.memory:
            return f"mend {path.relative_to(ws.root)}, then run `pypto-op check {here}`"
    if "TODO" in ws.spec.read_text(encoding="utf-8", errors="replace"):
        return f"fill in {here}/SPEC.md, then run `pypto-op check {here}`"
    if not ws.golden.is_file() or "TODO" in ws.golden.read_text(encoding="utf-8", errors="replace"):
        return f"write the formula into {typed(ws.golden)}, then run `pypto-op check {here}`"
    if not ws.interfaces.is_file():
        return f"run `pypto-op interfaces new {here}`"
    if not all(path.is_file() for path in (ws.test_inputs, ws.suite)):
        return f"run `pypto-op harness new {here}`"
    if not ws.impl.is_file():
        return f"write the kernel, {typed(ws.impl)}, then run `pypto-op verify {here}`"
    return _after_kernel(ws, here)


def need(ws: OpWorkspace, *documents: Path) -> None:
    """Raise ContractError for the first of an operator's files that is not there; the remedy is the next command."""
    for path in documents:
        if not path.is_file():
            check_readable(path, next_step(ws))


def _after_kernel(ws: OpWorkspace, here: str) -> str:
    verify = f"run `pypto-op verify {here}`"
    try:
        report = json.loads(ws.report.read_text(encoding="utf-8"))
        status, judged = report["status"], report["hashes"].get("impl")
    except (OSError, ValueError, KeyError, AttributeError, TypeError):
        return verify
    if judged != sha256_file(ws.impl):
        return f"{verify}: the kernel changed since its verdict"
    if status == Status.PASS:
        return f"run `pypto-op benchmark {here}` for its time, `pypto-op report {here}` for a page about it: its verdict is PASS"
    return f"{verify}: its verdict is {status}, and its end says what to do"
