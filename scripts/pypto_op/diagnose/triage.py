"""From a failed verdict to the one sub-skill that goes on: the debugger's router, run by a machine.

Words come first, since they name a cause; where a run says nothing the numbers decide. Signals that contradict one another
are said and never smoothed over.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pypto_op.diagnose.kernel_text import read_kernel
from pypto_op.diagnose.numbers import EMPTY, look_of
from pypto_op.diagnose.routes import BY_CATEGORY, BY_TEXT, Row, page_of, rows, skill_of, tools_of
from pypto_op.diagnose.search import SURE, Diagnosis, Hit, asked_rules, check_no_name, diagnose, heard
from pypto_op.diagnose.sources import failure_of, first_failure, is_text, read_source
from pypto_op.documents import schema
from pypto_op.documents.reading import read_json
from pypto_op.errors import ContractError
from pypto_op.proof import evidence
from pypto_op.vocabulary import FailureCategory, Fingerprint, Level, Mode, Status
from pypto_op.workspace import OpWorkspace, typed

_BAD = (Status.FAIL, Status.ERROR)
_OTHER_REPORT = "report.json"
"""Below _debug/: where a run of one case reports to, so that the verdict on the whole suite stays."""
_OTHER_BYTES = "the report is about other bytes"
_ANY_TEXT = frozenset({FailureCategory.RUNTIME, FailureCategory.OTHER, FailureCategory.STRUCTURAL})
"""Categories that a verdict gives to whatever raised: words that name another one refine them and contradict nothing."""


@dataclass(frozen=True)
class Signals:
    """What is known of a failure."""

    failure: Mapping[str, Any]  # the report's `first_failure`, {} without a report
    found: Diagnosis  # what `diagnose` found in the words that count
    look: str  # how the wrong outputs look (`numbers`), "" where none was compared
    look_says: str  # a sentence on it

    @property
    def hit(self) -> Hit | None:
        """The surest hit."""
        return self.found.hits[0] if self.found.hits else None

    @property
    def near_miss(self) -> bool:
        """The verdict's flag; of zeros and holes it says nothing."""
        return bool(self.failure.get("cpu_reproducer_candidate")) and self.look != EMPTY

    def holds(self, row: Row) -> bool:
        """Say whether everything that a row asks for holds."""
        category = str(self.hit.entry.category) if self.hit else None
        known = {
            "text": category,
            "category": self.failure.get("failure_category"),
            "fingerprint": self.failure.get("divergence_fingerprint"),
            "numbers": self.look or None,
            "near_miss": self.near_miss,
            "drift": "drift_onset_iter" in self.failure,
        }
        return all(known[key] in (asked if isinstance(asked, list) else [asked]) for key, asked in row.when.items())


def triage(operator: OpWorkspace, log: str | None = None) -> dict[str, Any]:
    """Route an operator's failure.

    Args:
        operator: whose last verdict, or whose last failed run where there is no verdict, is looked at.
        log: a text or path to go by in place of what the run left.

    Returns:
        The answer (schemas/triage.schema.json).

    Raises:
        ContractError: nothing failed here, or a file cannot be read.
    """
    report, notes = _report(operator)
    if operator.root.name != operator.name:
        notes.append(f"the folder of {operator.name} is called {operator.root.name}: rename it before you run what is named next")
    if report is not None and Status(report["status"]).passed:
        if log is None:
            raise ContractError(
                f"the last verdict is {report['status']}: there is nothing to triage",
                file=operator.report,
                remedy="verify again, or give the words of the run that failed by --log",
            )
        notes.append(f"the last verdict is {report['status']}: only the words of --log were looked at")
        report = None
    if report is None and log is None and failure_of(operator, None) is None:
        raise ContractError("no run has failed here", file=operator.root, remedy=f"run `pypto-op verify {typed(operator.root)}`")
    if report is not None and log is None:
        _refuse_unjudged(operator, report, stale=any(note.startswith(_OTHER_BYTES) for note in notes))
    signals = _signals(operator, report, log)
    row = next(row for row in rows() if signals.holds(row))
    answer = _answer(operator, report, signals, row, log)
    answer["notes"] = [*notes, *signals.found.notes]
    if report is not None and any(note.startswith(_OTHER_BYTES) for note in notes):  # all else is about an earlier kernel
        answer["next"] = [_again(operator, report), *answer["next"]]
    schema.check(answer, "triage")
    return answer


def _refuse_unjudged(operator: OpWorkspace, report: Mapping[str, Any], *, stale: bool) -> None:
    """Raise ContractError for a report of a run that judged no kernel, so that there is no failure of one.

    Args:
        stale: a file of the operator changed since, so what the run asked for may be done.
    """
    error = report["error"] or {}
    again = f"run `pypto-op verify {typed(operator.root)}`"
    if str(error.get("message")).startswith(evidence.INTERRUPTED):
        problem, remedy = "the last run was interrupted before it gave a verdict", again
    elif error.get("kind") == "contract" and stale:
        problem, remedy = "the last run gave no verdict, and the operator's files changed since", again
    elif error.get("kind") == "contract":
        problem, remedy = f"the last run gave no verdict: {error['message']}", f"mend that, then {again}"
    else:
        return
    raise ContractError(problem, file=operator.report, remedy=remedy)


def _report(operator: OpWorkspace) -> tuple[Mapping[str, Any] | None, list[str]]:
    if not operator.report.is_file():
        return None, [f"{operator.report} is missing: only the words of the last failed run were looked at"]
    report = read_json(operator.report)
    schema.check(report, "evaluation_report", file=operator.report)
    stale = evidence.changed_since(report, operator)
    return report, [f"{_OTHER_BYTES} ({', '.join(stale)} changed): verify again"] if stale else []


def _again(operator: OpWorkspace, report: Mapping[str, Any]) -> str:
    """Return the command that judges what a report was about, as it is now."""
    impl = operator.root / report["impl_file"]
    other = f" --up-to-module {report['up_to_module']}" if report["up_to_module"] else f" --impl {typed(impl)}"
    return f"pypto-op verify {typed(operator.root)}{'' if impl == operator.impl else other}"


def _signals(operator: OpWorkspace, report: Mapping[str, Any] | None, log: str | None) -> Signals:
    failure = first_failure(report)
    checks: Sequence[Mapping[str, Any]] = (report or {}).get("checks", ())
    result: Mapping[str, Any] = next(
        (check["modes"].get(failure.get("mode"), {}) for check in checks if check["id"] == failure.get("case_id")), {}
    )
    look, says = look_of(result.get("per_tensor", ()))
    # A run that was compared ran to its end: what it printed names no reason, but on a device, which prints its own errors.
    mute = bool(look) and log is None and failure.get("mode") == Mode.SIM
    source = read_source(log if log is not None else operator.root)
    kernel = read_kernel(source.kernel, asked_rules()) if source.kernel and not mute else None
    found = diagnose(source.log, kernel)
    if log is None:
        found = heard(found, failure)
    else:
        check_no_name(log, found)
    if mute:
        found = Diagnosis((), (), found.notes)
    elif look:  # what the kernel alone shows is a hint of the linter's, not this run's words
        found = Diagnosis(tuple(hit for hit in found.hits if hit.from_log), found.undecided, found.notes)
    return Signals(failure, found, look, says)


def _answer(
    operator: OpWorkspace, report: Mapping[str, Any] | None, signals: Signals, row: Row, log: str | None
) -> dict[str, Any]:
    category, skill, page = _destination(signals, row)
    failure = signals.failure
    return {
        "schema_version": 1,
        "op_name": operator.name,
        "status": (report or {}).get("status"),
        "case_id": failure.get("case_id"),
        "mode": failure.get("mode"),
        "failing_module_boundary": failure.get("failing_module_boundary"),
        "category": str(category),
        "fingerprint": failure.get("divergence_fingerprint"),
        "near_miss": signals.near_miss,
        "row": row.id,
        "skill": skill,
        "page": page,
        "why": row.why,
        "signals": list(_told(signals)),
        "contradictions": list(_contradictions(report, signals)),
        "hits": [hit.as_dict() for hit in signals.found.hits[:3]],
        "next": list(_next(operator, report, signals, row, skill, log)),
    }


def _destination(signals: Signals, row: Row) -> tuple[FailureCategory, str | None, str]:
    """Return the category, the sub-skill and its page."""
    verdict = FailureCategory(signals.failure.get("failure_category") or "other")
    hit = signals.hit
    if "text" in row.when and hit is not None:
        same = hit.entry.skill == skill_of(hit.entry.category)
        skill = hit.entry.skill if row.skill == BY_TEXT else row.skill
        return hit.entry.category, skill, row.page or (page_of(hit.entry.category) if same else "")
    if row.skill == BY_CATEGORY:
        return verdict, skill_of(verdict), page_of(verdict)
    if verdict in _ANY_TEXT and "numbers" in row.when:
        verdict = FailureCategory.PRECISION
    return verdict, row.skill, row.page


def _told(signals: Signals) -> Iterator[dict[str, str]]:
    failure = signals.failure
    if failure:
        yield {"from": "verdict", "says": f"{failure['failure_category']}: {failure['summary']}"}
    for hit in signals.found.hits[:3]:
        place = ":".join(str(part) for part in hit.log if part)
        blamed = f"; line {hit.line} of the kernel" if hit.line else ""
        yield {"from": "words", "says": f"{hit.entry.title} [{hit.entry.id}] ({hit.confidence:.0%}) {place}{blamed}".strip()}
    if not signals.hit:
        yield {"from": "words", "says": "nothing that is known"}
    if signals.look:
        yield {"from": "numbers", "says": f"{signals.look}: {signals.look_says}"}


def _contradictions(report: Mapping[str, Any] | None, signals: Signals) -> Iterator[str]:
    failure, hit = signals.failure, signals.hit
    verdict = failure.get("failure_category")
    if hit and verdict and verdict not in _ANY_TEXT and str(hit.entry.category) != verdict and hit.confidence >= SURE:
        yield f"the verdict says {verdict}, the words say {hit.entry.category} ({hit.entry.id})"
    sure = [other for other in signals.found.hits if other.confidence >= SURE]
    categories = list(dict.fromkeys(str(other.entry.category) for other in sure))
    if len(categories) > 1:
        yield f"the words speak of {' and of '.join(categories)}; the surest, of equals the earliest, was taken"
    if failure.get("cpu_reproducer_candidate") and signals.look == EMPTY:
        yield "the verdict calls it a near miss, but an output is empty: no rounding explains that"
    elsewhere = dict(_failing_modes(report, str(failure.get("case_id"))))
    pattern = failure.get("divergence_fingerprint")
    if pattern == Fingerprint.KERNEL_OK_NPU_ONLY and Mode.SIM in elsewhere:
        yield f"the fingerprint says that sim is right, but sim fails in case {elsewhere[Mode.SIM]}"
    if pattern == Fingerprint.IR_DIVERGENCE and Mode.NPU in elsewhere:
        yield f"the fingerprint says that the device is right, but it fails in case {elsewhere[Mode.NPU]}"


def _failing_modes(report: Mapping[str, Any] | None, case: str) -> Iterator[tuple[Mode, str]]:
    checks: Sequence[Mapping[str, Any]] = (report or {}).get("checks", ())
    for check in reversed(checks):
        for mode, status in check["per_mode_status"].items():
            if status in _BAD and check["id"] != case:
                yield Mode(mode), check["id"]


def _next(
    operator: OpWorkspace, report: Mapping[str, Any] | None, signals: Signals, row: Row, skill: str | None, log: str | None
) -> Iterator[str]:
    case, root = signals.failure.get("case_id"), typed(operator.root)
    apart = f"--report {typed(operator.debug_dir / _OTHER_REPORT)}"
    named = f"--case {shlex.quote(case)}" if case else ""
    if row.id == "near-miss":
        yield f"pypto-op reproduce {root} {named}".rstrip()
        return
    if signals.hit and (log is None or "\n" not in log):
        yield f"pypto-op diagnose {root if log is None else shlex.quote(log)}"
    elif signals.look and report and 1 < report["total_modules"] == report["up_to_module"]:
        yield f"pypto-op verify {root} --sweep {named}".rstrip()
    failure_words = signals.failure.get("summary")
    known = dict(_known(operator, report, case, named, log))
    if row.tools:
        yield from tools_of(row.tools, op=root, **known)[:1]
    yield from tools_of(skill or "", op=root, **known)
    if signals.look and not signals.hit:
        yield f"pypto-op verify {root} {named} --error-maps {apart}"
    elif failure_words and not signals.hit:  # the verdict's reason is exact: mend that, and see
        yield f"pypto-op verify {root} {_choice(report, case)}{apart}"


def _choice(report: Mapping[str, Any] | None, case: str | None) -> str:
    """Return the option for one case that failed and compares numbers, which alone is judged once the kernel is mended.

    At level 1 cases may show only that a kernel runs, which is no verdict; "" chooses all cases.
    """
    checks: Sequence[Mapping[str, Any]] = (report or {}).get("checks", ())
    failed = [check["id"] for check in checks if check["status"] in _BAD and check["level"] != Level.L1]
    chosen = case if case in failed or not checks else next(iter(failed), None)
    return f"--case {shlex.quote(chosen)} " if chosen else ""


def _known(
    operator: OpWorkspace, report: Mapping[str, Any] | None, case: str | None, named: str, log: str | None
) -> Iterator[tuple[str, str]]:
    """Yield what the skills' tools may be given: the case, and the file with the run's words where there is one."""
    if case and report is not None:
        phase = report["up_to_module"]
        yield "choice", f"{named} --up-to-module {phase}" if phase < report["total_modules"] else named
    words = operator.failure_dir(case) / "stderr.txt" if case else None
    if log is not None:
        words = None if is_text(log) else Path(log).expanduser()
    if words is not None and words.is_file():
        yield "words", typed(words)
