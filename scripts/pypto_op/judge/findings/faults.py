"""Says why a verdict is an ERROR, and what has to be mended: inputs, kernel, workspace or machine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pypto_op.errors import ContractError, PyptoOpError
from pypto_op.judge.cases import variety
from pypto_op.judge.cases.contract import Contract
from pypto_op.judge.cases.inputs import checks_precision
from pypto_op.judge.cases.subject import Subject
from pypto_op.judge.findings import summary
from pypto_op.judge.findings.reasons import Reason, sentence_of
from pypto_op.judge.findings.records import CaseRecord
from pypto_op.vocabulary import ExitCode, Status


def inputs_fault(records: Sequence[CaseRecord], contract: Contract, *, own_suite: bool) -> dict[str, str] | None:
    """Return the report's `error` where the inputs cannot tell a right kernel from a wrong one, None where they can.

    A trial that fails ends its case, so of a kernel that fails everywhere nothing is known about the second seed. Another
    suite may be a choice of cases, so only the operator's own is looked at as a whole.
    """
    precise = [record for record in records if checks_precision(record.case)]
    known = [record.case for record in precise if record.variety.sights]
    whole = own_suite and all(case in known for case in contract.cases if checks_precision(case))
    try:
        seen = [(record.case, record.variety) for record in precise]
        variety.check(seen, whole=whole, fixed=contract.fixed_inputs, single=contract.single_valued, masks=contract.masks)
    except ContractError as error:
        return {"kind": "contract", "message": error.one_line()}
    return None


def error_of(records: Sequence[CaseRecord], golden: Path) -> dict[str, str]:
    """Say why nothing could be judged, and who has to act; a golden that gave no answer is named by its file."""
    cells = [(record, r) for record in records for r in record.modes.values()]
    for record, cell in cells:
        trial = cell.deciding
        if cell.workspace_fault and trial is not None:
            file = f"{golden.name}: " if trial.reasons[0] is Reason.GOLDEN_FAILED else ""
            return {"kind": "contract", "message": f"{file}case {record.id}: {trial.summary}"}
    for _, cell in cells:
        trial = cell.deciding
        if cell.status is Status.ERROR and trial is not None and trial.reasons:
            return {"kind": "candidate", "message": trial.summary or sentence_of(trial.reasons[0])}
    return {"kind": "infra", "message": summary.unjudged_sentence(records)}


def sentence_of_missing(subject: Subject) -> str:
    """Say that the implementation is not there, and what it should have been."""
    return f"the implementation is missing; {subject.wrapper} was to be judged"


def reason_before(error: PyptoOpError, subject: Subject | None) -> str:
    """Return the reason of a report on a verification that could not begin."""
    if error.exit_code is ExitCode.INFRA:
        return "unavailable"
    return "missing_file" if subject is not None and not subject.impl.is_file() else "contract"
