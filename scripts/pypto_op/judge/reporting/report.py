"""evaluation_report.json: built from records, cut down to its schema, checked, sealed and written in one piece."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from pypto_op import __version__
from pypto_op.backends.base import Availability
from pypto_op.documents import schema, targets
from pypto_op.documents.writing import write_atomically
from pypto_op.judge.cases.inputs import FRESH, stress_of
from pypto_op.judge.cases.inspection import onset
from pypto_op.judge.cases.subject import Subject
from pypto_op.judge.findings.records import CaseRecord, ModeRecord, TrialVerdict
from pypto_op.proof import evidence
from pypto_op.vocabulary import ExitCode, FailureCategory, Level, Loader, Status

SCHEMA = "evaluation_report"
MAX_STDOUT = 64 * 1024
MAX_TRIAL_OUTPUT = 8 * 1024
_MAX_SENTENCE = 600

_EXIT_OF_KIND = {"candidate": ExitCode.FAIL, "contract": ExitCode.CONTRACT, "infra": ExitCode.INFRA}


def exit_code(report: Mapping[str, Any]) -> ExitCode:
    """Return the exit code that a report stands for: 0 PASS or PARTIAL, 1 the kernel, 2 the contract, 3 the machine.

    What failed for the machine's sake alone (a library, module or device that is missing) is no word on the kernel.
    """
    if Status(report["status"]).passed:
        return ExitCode.OK
    results = [result for check in report.get("checks", ()) for result in check["modes"].values()]
    categories = {result["failure_category"] for result in results if result["status"] in (Status.FAIL, Status.ERROR)}
    if categories == {FailureCategory.INFRA}:
        return ExitCode.INFRA
    error = report.get("error")
    return _EXIT_OF_KIND[error["kind"]] if error else ExitCode.FAIL


def check_entry(record: CaseRecord, policy: str) -> dict[str, Any]:
    """Return the `checks` entry of one case."""
    case = record.case
    results = {str(mode): _mode_entry(r) for mode, r in record.modes.items()}
    leaves = [leaf for result in results.values() for leaf in result["per_tensor"]]
    checked = any(r["precision_checked"] for r in results.values())
    dtype = case.get("dtype", "")
    return {
        "id": record.id,
        "level": str(Level.parse(case["level"])),
        "status": str(record.status),
        "shape": dict(case.get("shape") or {}),
        "dtype": dtype if isinstance(dtype, str) else json.dumps(dtype, sort_keys=True)[:256],
        "precision_checked": checked,
        "all_close": all(leaf["all_close"] for leaf in leaves) if checked and leaves else None,
        "max_abs_diff": largest(leaves, "max_abs_diff"),
        "max_rel_diff": largest(leaves, "max_rel_diff"),
        "per_mode_status": {mode: result["status"] for mode, result in results.items()},
        "policy": policy,
        "seeds": list(record.seeds),
        "modes": results,
        "seconds": round(record.seconds, 3),
        **({"left_draws": list(record.left_draws)} if record.left_draws else {}),
        **({"alike_draws": list(record.alike_draws)} if record.alike_draws else {}),
        **_stress_entry(record),
        **_inspection_entry(record),
        **_further_entry(record),
    }


def fresh_entry(records: Sequence[CaseRecord], seed: int, left_out: Mapping[str, str]) -> dict[str, Any]:
    """Return the report's `fresh_shapes`: the cases that were drawn, and the seed that draws them again.

    Args:
        left_out: id -> why an axis has no such case.
    """
    cases = [record.id for record in records if record.case.get(FRESH)]
    return {"seed": seed, "cases": cases, "left_out": {name: _sentence(why) for name, why in left_out.items()}}


def _stress_entry(record: CaseRecord) -> dict[str, Any]:
    """Return `stress` of a case whose inputs shall cancel: what was wanted, and what they reached."""
    wanted = stress_of(record.case)
    if wanted is None or not record.conditions:
        return {}
    return {"stress": {"quantile": wanted.quantile, "wanted": wanted.condition, "reached": min(record.conditions)}}


def _further_entry(record: CaseRecord) -> dict[str, Any]:
    """Return `further_calls` of a case that the wrapper was called with again: how often, and what was not shown."""
    told = list(record.further.values())
    if not told:
        return {}
    return {
        "further_calls": {
            "calls": sum(one.calls for one in told),
            "scalars": list(dict.fromkeys(name for one in told for name in one.varied)),
            "not_shown": list(dict.fromkeys(_sentence(words) for one in told for words in one.not_shown)),
            "planted": list(dict.fromkeys(what for one in told for what in one.planted)),
        }
    }


def _inspection_entry(record: CaseRecord) -> dict[str, Any]:
    """Return `inspection`: each iteration's comparison, in the mode whose drift begins first."""
    rows = [(mode, trial.per_iter) for mode, r in record.modes.items() for trial in r.trials if trial.per_iter]
    if not rows:
        return {}
    never = max(len(per_iter) for _, per_iter in rows)
    mode, per_iter = min(rows, key=lambda row: never if (at := onset(row[1])) is None else at)
    return {"inspection": {"mode": str(mode), "per_iter": per_iter}}


def _mode_entry(record: ModeRecord) -> dict[str, Any]:
    trial = record.deciding or TrialVerdict(0, Status.SKIPPED)
    ran = [t for t in record.trials if t.seed is not None]
    return {
        "status": str(record.status),
        "reasons": [str(reason) for reason in trial.reasons],
        "reason": _sentence(trial.summary),
        "failure_category": str(trial.category) if trial.category else None,
        "precision_checked": any(t.precision_checked for t in record.trials),
        "cpu_reproducer_candidate": trial.near_miss,
        "seeds": list(dict.fromkeys(t.seed for t in ran)),
        "per_tensor": worst_leaves(record),
        "seconds": round(sum(t.seconds for t in record.trials), 4),
        "peak_rss_mb": round(max((t.peak_rss_mb for t in record.trials), default=0.0), 1),
        "not_shown": list(dict.fromkeys(_sentence(clause) for t in record.trials for clause in t.unshown)),
        "launches": max((t.launches for t in record.trials), default=0),
        "cost": dict(trial.cost) if trial.cost else None,
    }


def worst_leaves(record: ModeRecord) -> list[dict[str, Any]]:
    """Return per output the entry of the trial in which it was worst: a failing one, else the largest error."""
    worst: dict[str, dict[str, Any]] = {}
    for trial in record.trials:
        for leaf in trial.per_tensor:
            best = worst.get(leaf["name"])
            if best is None or _badness(leaf) > _badness(best):
                worst[leaf["name"]] = leaf
    return list(worst.values())


def _badness(leaf: Mapping[str, Any]) -> tuple[bool, float]:
    violation = leaf.get("max_violation")
    return (not leaf["all_close"], math.inf if violation is None else float(violation))


def largest(leaves: Sequence[Mapping[str, Any]], key: str) -> float | None:
    """Return the largest value under `key`; None when there is no leaf, or one of them has none."""
    values = [leaf.get(key) for leaf in leaves]
    if not values or any(value is None for value in values):
        return None
    return max(float(value) for value in values if value is not None)


def candidate_output(records: Sequence[CaseRecord]) -> str:
    """Return what the candidate printed, failing runs first, each capped, all of it capped."""
    runs = [
        (trial.status not in (Status.FAIL, Status.ERROR), f"=== {record.id}, {mode}, seed {trial.seed}", trial)
        for record in records
        for mode, result in record.modes.items()
        for trial in result.trials
        if trial.log.strip()
    ]
    parts: list[str] = []
    size = 0
    for _, title, trial in sorted(runs, key=lambda run: run[0]):
        text = f"{title}\n{_middle_cut(trial.log.strip(), MAX_TRIAL_OUTPUT)}\n"
        if size + len(text) > MAX_STDOUT:
            parts.append("=== (more output was cut)\n")
            break
        parts.append(text)
        size += len(text)
    return "".join(parts)


def _middle_cut(text: str, limit: int) -> str:
    """Keep the beginning, where pypto prints its real error, and the end, where Python does."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n... ({len(text) - 2 * half} characters cut) ...\n{text[-half:]}"


def mode_entry(availability: Availability, untried: Sequence[str]) -> dict[str, Any]:
    """Return the `modes` entry of a back end; `untried` is what SPEC.md supports and no case has."""
    untold = [f"Not shown: {', '.join(untried)}, which SPEC.md supports and no case has."] if untried else []
    return {
        "numeric": availability.ok and availability.numeric,
        "caveats": [_sentence(caveat) for caveat in (*availability.caveats, *untold)] if availability.ok else [],
        "reason": _sentence(availability.reason),
    }


def skeleton(subject: Subject | None, op_name: str, impl_file: str, wrapper: str) -> dict[str, Any]:
    """Return a report that claims nothing: status ERROR, no cases. Callers fill in what they know."""
    return {
        "schema_version": 1,
        "tool": {"name": "pypto-op", "version": __version__},
        "op_name": op_name,
        "impl_file": impl_file,
        "wrapper": wrapper,
        "up_to_module": subject.boundary if subject else 0,
        "total_modules": subject.total_modules if subject else 0,
        "status": str(Status.ERROR),
        "checks": [],
        "cases_total": 0,
        "cases_passed": 0,
        "cases_skipped": 0,
        "cases_precision": 0,
        "per_mode_status": {},
        "first_failure": None,
        "error": None,
        "stdout": "",
        "selection": {"levels": None, "case": None, "complete": False},
        "policy": {"name": "none", "version": 0},
        "hashes": {},
        "closure": {str(loader): {} for loader in Loader},
        "versions": {},
        "modes": {},
        "seconds": 0.0,
        "created": datetime.now(timezone.utc).isoformat(timespec="seconds"),
    }


def failure_without_case(subject: Subject | None, category: str, summary: str, reason: str) -> dict[str, Any]:
    """Return the `first_failure` of a report whose failure belongs to no case."""
    return {
        "case_id": None,
        "failing_module_boundary": subject.boundary if subject else None,
        "failure_category": category,
        # A broken contract is broken in every mode (verifier seed, verdict table); a broken machine says nothing.
        "divergence_fingerprint": None if category == "infra" else "all_fail",
        "summary": _sentence(summary),
        "mode": None,
        "reason": reason,
        "seed": None,
        "first_bad_output": None,
        "first_bad_producer": None,
        "cpu_reproducer_candidate": False,
    }


def sanitize(report: Mapping[str, Any]) -> dict[str, Any]:
    """Return the report with nothing in it that its schema does not name; NaN and infinities become null."""
    cleaned = _allowed(report, schema.validator(SCHEMA).schema, schema.validator(SCHEMA).schema)
    assert isinstance(cleaned, dict)
    return cleaned


def _allowed(value: Any, rule: Any, root: Any) -> Any:
    rule, root = _resolve(rule, value, root)
    if isinstance(value, Mapping):
        known, other = rule.get("properties", {}), rule.get("additionalProperties", True)
        return {
            str(key): _allowed(item, known.get(key, other if isinstance(other, dict) else {}), root)
            for key, item in value.items()
            if key in known or other is not False
        }
    if isinstance(value, (list, tuple)):
        return [_allowed(item, rule.get("items", {}), root) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, str) and "maxLength" in rule:
        return value[: rule["maxLength"]]
    return value


def _resolve(rule: Any, value: Any, root: Any) -> tuple[Any, Any]:
    """Follow `$ref`, into another schema too, and of a `oneOf` take the branch for values that are not null.

    Returns:
        The rule that is left, and the schema that it stands in.
    """
    while True:
        if "$ref" in rule:
            other, _, name = rule["$ref"].partition("#/$defs/")
            root = schema.validator(other.removesuffix(".schema.json")).schema if other else root
            rule = root["$defs"][name]
        elif "oneOf" in rule:
            rule = next(branch for branch in rule["oneOf"] if branch.get("type") != "null" or value is None)
        else:
            return rule, root


def publish(report: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """Sanitise, seal, check and write a report; return what was written.

    Raises:
        InfraError: the file cannot be written.
    """
    final = evidence.seal(sanitize(report))
    schema.check(final, SCHEMA, file=path)
    write_atomically(path, serialise(final))
    return final


def serialise(report: Mapping[str, Any]) -> str:
    """Return the text of a report, the same for the file and for `--json`."""
    return json.dumps(report, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def check_target(path: Path, *, own: Path | None = None) -> None:
    """Refuse a file that a report must not replace; nothing is changed yet.

    Args:
        own: the operator's own report, which every verdict replaces.

    Raises:
        ContractError: something that is no report lies there, or belongs there.
    """
    targets.check_target(path, "report", _is_report, own=own)


def _is_report(path: Path) -> bool:
    """Whether a file is a report of this judge, of any version and account."""
    data = targets.json_object(path)
    tool = data.get("tool")
    return isinstance(tool, Mapping) and tool.get("name") == "pypto-op" and {"op_name", "checks", "seal"} <= set(data)


def _sentence(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _MAX_SENTENCE else text[: _MAX_SENTENCE - 3] + "..."
