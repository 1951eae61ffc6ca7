"""What a gate accepts as a verdict: a whole, fresh report of the judge that covers what is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from pypto_op import __version__
from pypto_op.errors import ContractError, Refused
from pypto_op.hashing import sha256_json
from pypto_op.proof import evidence
from pypto_op.state.facts import Verdict
from pypto_op.vocabulary import FailureCategory, Status
from pypto_op.workspace import OpWorkspace, to_run

if TYPE_CHECKING:
    from pypto_op.documents.policy import Policy


@dataclass(frozen=True)
class Demand:
    """What a gate wants judged."""

    phase: int | None  # k of the cumulative module file; None for the integrated impl
    levels: tuple[str, ...] | None  # suite levels that must be covered; None for the whole suite
    modes: tuple[str, ...]  # modes that must all pass, with numbers


class Question(Enum):
    """What else than a verdict on a kernel a gate asks the judge."""

    COMPOSITION = "composition"
    SELF_TEST = "self_test"


class NeedsJudge(Exception):
    """No sealed verdict fits these bytes: the judge must run, outside the lock."""

    def __init__(self, demand: Demand | Question) -> None:
        self.demand = demand
        super().__init__(demand)


def find_pass(ws: OpWorkspace, demand: Demand, fresh: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return a sealed PASS that meets the demand for the bytes that lie there now.

    A staged phase demands some levels only; there a sealed PARTIAL counts that covers every case of them.

    Args:
        demand: what must be covered.
        fresh: the report of the judge that this call ran; None before it ran.

    Raises:
        NeedsJudge: there is none, and the judge has not run yet.
        Refused: the judge ran, and these bytes do not pass.
        InfraError: the judge could not do its work.
    """
    for report in evidence.sealed_passes(ws, k=demand.phase, partial=demand.levels is not None):
        if not any(shortfalls(report, ws, demand)):
            return report
    if fresh is None:
        raise NeedsJudge(demand)
    refuse_infra(fresh, ws)
    if Status(fresh["status"]).passed:
        missing = next(shortfalls(fresh, ws, demand), "it does not fit")
        raise Refused(f"the verdict is not enough: {missing}", file=ws.report, remedy=_COMPLETE)
    raise Refused(f"the judge says {fresh['status']}: {summary_of(fresh)}", file=ws.report, remedy=_DEBUG)


_COMPLETE = "complete the suite, or judge all of it in every mode of the plan"
_DEBUG = "record_verdict, then let the debugger read the report"


def refuse_infra(report: Mapping[str, Any], ws: OpWorkspace) -> None:
    """Refuse a report that says nothing about the kernel: the contract is broken, or the machine."""
    kind = (report.get("error") or {}).get("kind")
    if kind == "contract":
        raise Refused(
            f"the judge could not begin: {report['error']['message']}",
            file=ws.report,
            remedy="repair the named file; it is not the kernel's fault",
        )
    if kind == "infra":
        raise Refused(
            f"the machine could not judge: {report['error']['message']}", file=ws.report, remedy="see `pypto-op doctor`"
        )


def shortfalls(report: Mapping[str, Any], ws: OpWorkspace, demand: Demand) -> Iterator[str]:
    """Yield why a sealed report with status PASS or PARTIAL does not meet the demand; nothing when it does."""
    from pypto_op.judge.cases.contract import load_contract

    wrapper = ws.wrapper_name(demand.phase)
    if report["wrapper"] != wrapper:
        yield f"it judged {report['wrapper']}, not {wrapper}"
    yield from _counts(report)
    contract = load_contract(ws, None)
    if report["policy"] != contract.policy.as_dict():
        yield f"it used the policy {report['policy'].get('name')}, not the one of SPEC.md"
    judged = {check["id"]: check for check in report["checks"]}
    for case in contract.select(demand.levels, None):
        if is_looser(contract.policy, case):
            yield f"case {case['id']} allows more than SPEC.md does"
        check = judged.get(case["id"])
        if check is None:
            yield f"case {case['id']} was not run"
        elif case.get("precision", True) and not check["precision_checked"]:
            yield f"the numbers of case {case['id']} were not compared"
    yield from _modes(report, demand)


def is_looser(spec: Policy, case: Mapping[str, Any]) -> bool:
    """Whether a case's own tolerance allows more than SPEC.md allows for a dtype that it holds for.

    Of any level: where honest rounding exceeds SPEC.md's numbers, the case takes a twin policy, which the judge measures.
    """
    from pypto_op.judge.cases.contract import own_dtypes

    if spec.name != "allclose" or not {"atol", "rtol"} <= set(case):
        return False
    table = spec.as_dict()["per_dtype"]
    rows = [table[word] for word in own_dtypes(case) or {"float32"} if word in table]
    rounding = 1 + 1e-9
    return any(case[bound] > rounding * row[bound] for row in rows for bound in ("atol", "rtol"))


def _counts(report: Mapping[str, Any]) -> Iterator[str]:
    checks = report["checks"]
    if len({check["id"] for check in checks}) != len(checks):
        yield "it names a case twice"
    if not checks or report["cases_total"] != len(checks):
        yield f"it counts {report['cases_total']} cases and lists {len(checks)}"
    passed = sum(check["status"] == Status.PASS for check in checks)
    if report["cases_passed"] != passed or passed != len(checks):
        yield f"{passed} of {len(checks)} cases passed"
    if not any(check["precision_checked"] for check in checks):
        yield "no numbers were compared"


def _modes(report: Mapping[str, Any], demand: Demand) -> Iterator[str]:
    enough = (Status.PASS,) if demand.levels is None else (Status.PASS, Status.PARTIAL)
    for mode in demand.modes:
        if report["per_mode_status"].get(mode) not in enough:
            yield f"mode {mode} is {report['per_mode_status'].get(mode, 'missing')}"
        elif not report["modes"].get(mode, {}).get("numeric"):
            yield f"mode {mode} compared no numbers"


# -- any verdict ------------------------------------------------------------------------------------------


def check_report(report: Mapping[str, Any], ws: OpWorkspace, phase: int | None) -> None:
    """Refuse a report that is not about exactly this operator, this phase and these bytes.

    Raises:
        Refused: schema, operator, phase, hashes or tool version do not fit.
    """
    from pypto_op.documents import schema

    judge = f"{to_run('verify', ws.root)} for these bytes"
    try:
        schema.check(report, "evaluation_report", file=ws.report)
    except ContractError as error:
        raise Refused(error.problem, file=error.file, where=error.where, remedy=judge) from None
    if report["op_name"] != ws.name:
        raise Refused(f"it is about the operator {report['op_name']!r}", file=ws.report, remedy=judge)
    if phase is not None and report["up_to_module"] != phase:
        raise Refused(f"it is about M{report['up_to_module']}", file=ws.report, remedy=judge)
    if not evidence.lay_there(report, ws, k=phase):
        raise Refused(f"it is about {report['impl_file']}, which lies elsewhere", file=ws.report, remedy=judge)
    stale = evidence.stale_hashes(report, evidence.file_hashes(ws, phase), ws)
    if stale:
        raise Refused(f"it is stale: {', '.join(stale)} changed since", file=ws.report, where="hashes", remedy=judge)
    if report["tool"]["version"] != __version__:
        raise Refused(f"version {report['tool']['version']} wrote it", file=ws.report, remedy=judge)


def verdict_of(report: Mapping[str, Any], *, judged_again: bool = False) -> Verdict:
    """Return what the state keeps of a report: status, category, boundary, one sentence, and its hash."""
    verdict = Verdict(status=str(report["status"]), report_sha256=sha256_json(report))
    if judged_again:
        verdict["judged_again"] = True
    if Status(report["status"]).passed:
        return verdict
    first = report.get("first_failure") or {}
    category = first.get("failure_category") or str(FailureCategory.OTHER)
    if (report.get("error") or {}).get("kind") == "infra":
        category = str(FailureCategory.INFRA)
    verdict["failure_category"] = category
    verdict["summary"] = summary_of(report)
    if isinstance(first.get("failing_module_boundary"), int):
        verdict["failing_module_boundary"] = first["failing_module_boundary"]
    return verdict


def summary_of(report: Mapping[str, Any]) -> str:
    """Return one sentence on what failed; the report's schema keeps golden values out of it."""
    first, error = report.get("first_failure") or {}, report.get("error") or {}
    text = first.get("summary") or error.get("message") or "see the report"
    case = f"case {first['case_id']}: " if first.get("case_id") else ""
    return f"{case}{text}"[:600]
