"""How a result is shown: text for people, JSON for scripts, SARIF for code scanning, annotations for GitHub's actions."""

from __future__ import annotations

import json
from typing import Any

from pypto_op import __version__
from pypto_op.vocabulary import Severity
from pypto_op_lint import registry
from pypto_op_lint.findings import FAIL, WARN, Finding, LintResult
from pypto_op_lint.reference import first_line

_SARIF_LEVEL = {Severity.S0: "error", Severity.S1: "error", Severity.S2: "warning", Severity.S3: "note"}


def render(result: LintResult, form: str) -> str:
    """Return `result` as "text", "json", "sarif" or "github"."""
    return {"text": as_text, "json": as_json, "sarif": as_sarif, "github": as_github}[form](result)


def as_text(result: LintResult) -> str:
    """Two lines a finding, what and what to do, and a last line with the counts."""
    lines: list[str] = []
    for finding in result.findings:
        lines.append(f"{finding.place}: [{finding.rule_id}][{finding.severity}] {finding.status}: {finding.message}")
        lines.append(f"    fix: {finding.fix_hint}")
    lines += [f"note: {note}" for note in result.notes]
    lines.append(_last_line(result))
    return "\n".join(lines)


def _last_line(result: LintResult) -> str:
    files = "1 file" if len(result.files) == 1 else f"{len(result.files)} files"
    counts = f"{files}, {len(result.rules)} rules, event {result.event}"
    if not result.findings:
        return f"clean: {counts}"
    fail = sum(f.status == FAIL for f in result.findings)
    warn = sum(f.status == WARN for f in result.findings)
    verdict = "blocked" if result.blocks else "nothing blocks"
    return f"{verdict}: {fail} fail, {warn} warn, {len(result.findings) - fail - warn} info; {counts}"


def as_json(result: LintResult) -> str:
    """`{"findings": [...], "summary": {...}}`."""
    return json.dumps(result.as_dict(), ensure_ascii=False, indent=2)


def as_github(result: LintResult) -> str:
    """One workflow command a finding, which GitHub shows beside the line, and a last line with the counts."""
    lines = []
    for finding in result.findings:
        places = {"file": finding.file, "line": finding.line, "col": finding.column}
        shown = ",".join(f"{name}={_escaped(str(value), ':,')}" for name, value in places.items() if value is not None)
        title = _escaped(f"{finding.rule_id} {finding.severity} {finding.status}", ":,")
        text = _escaped(f"{finding.message}\nfix: {finding.fix_hint}")
        lines.append(f"::{_github_level(finding)} {shown},title={title}::{text}")
    lines += [f"::notice::{_escaped(note)}" for note in result.notes]
    lines.append(_last_line(result))
    return "\n".join(lines)


def _github_level(finding: Finding) -> str:
    return "error" if finding.blocks else {FAIL: "warning", WARN: "warning"}.get(finding.status, "notice")


def _escaped(text: str, more: str = "") -> str:
    """Return `text` as a workflow command carries it; in a property `:` and `,` are separators too."""
    for character in "%\r\n" + more:
        text = text.replace(character, f"%{ord(character):02X}")
    return text


def as_sarif(result: LintResult) -> str:
    """SARIF 2.1.0 with one run."""
    rules = registry.all_rules()
    used = sorted({finding.rule_id for finding in result.findings})
    driver = {
        "name": "pypto-op-lint",
        "version": __version__,
        "rules": [
            {
                "id": rule_id,
                "name": rules[rule_id].name,
                "shortDescription": {"text": first_line(rules[rule_id])},
                "help": {"text": rules[rule_id].FIX_HINT},
                "defaultConfiguration": {"level": _SARIF_LEVEL[rules[rule_id].severity]},
                "properties": {"severity": str(rules[rule_id].severity)},
            }
            for rule_id in used
        ],
    }
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_sarif_result(finding, used) for finding in result.findings],
    }
    document = {"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0", "runs": [run]}
    return json.dumps(document, ensure_ascii=False, indent=2)


def _sarif_result(finding: Finding, used: list[str]) -> dict[str, Any]:
    where: dict[str, Any] = {"artifactLocation": {"uri": finding.file}}
    if finding.line is not None:
        where["region"] = {"startLine": finding.line}
        if finding.column is not None:
            where["region"]["startColumn"] = finding.column
    result: dict[str, Any] = {
        "ruleId": finding.rule_id,
        "ruleIndex": used.index(finding.rule_id),
        "level": {FAIL: "error", WARN: "warning"}.get(finding.status, "note"),
        "message": {"text": f"{finding.message}; {finding.fix_hint}"},
        "locations": [{"physicalLocation": where}],
    }
    if finding.fix is not None:
        edit = finding.fix
        region = {
            "startLine": edit.line,
            "startColumn": edit.column + 1,
            "endLine": edit.end_line,
            "endColumn": edit.end_column + 1,
        }
        change = {"deletedRegion": region, "insertedContent": {"text": edit.text}}
        result["fixes"] = [
            {
                "description": {"text": finding.fix_hint},
                "artifactChanges": [{"artifactLocation": where["artifactLocation"], "replacements": [change]}],
            }
        ]
    return result
