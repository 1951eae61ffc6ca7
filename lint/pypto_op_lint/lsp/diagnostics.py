"""Findings in the protocol's words: diagnostics with places in the client's units, repairs as text edits."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from lsprotocol import types

from pypto_op.bundle_files import bundle_root
from pypto_op.vocabulary import Severity
from pypto_op_lint.findings import FAIL, INFO, Finding
from pypto_op_lint.source import normalised

SOURCE = "pypto-op"
_RULE_PAGES = "skills/pypto-op-review/references/lint-rules"

Units = Callable[[str], int]
"""Says how many of the client's units (UTF-16 unless agreed otherwise) a piece of text has."""


def diagnostics(findings: Iterable[Finding], text: str, units: Units) -> list[types.Diagnostic]:
    """Return the findings about `text`; one without a line stands on the first."""
    lines = normalised(text).text.split("\n")
    shift = units("\ufeff") if text.startswith("\ufeff") else 0
    return [_diagnostic(finding, lines, units, shift) for finding in findings]


def told(sentence: str) -> types.Diagnostic:
    """Return a remark about the whole file."""
    start = types.Position(0, 0)
    return types.Diagnostic(types.Range(start, start), sentence, types.DiagnosticSeverity.Information, source=SOURCE)


def quick_fixes(uri: str, wanted: Iterable[types.Diagnostic]) -> list[types.CodeAction]:
    """Return the safe repairs that came with these diagnostics."""
    actions = []
    for diagnostic in wanted:
        data = diagnostic.data
        if diagnostic.source != SOURCE or not isinstance(data, dict) or "newText" not in data:
            continue
        edit = types.TextEdit(_range(data["range"]), str(data["newText"]))
        actions.append(
            types.CodeAction(
                title=f"{diagnostic.code}: {data['title']}",
                kind=types.CodeActionKind.QuickFix,
                diagnostics=[diagnostic],
                edit=types.WorkspaceEdit(changes={uri: [edit]}),
            )
        )
    return actions


def _diagnostic(finding: Finding, lines: list[str], units: Units, shift: int) -> types.Diagnostic:
    def position(line: int, column: int) -> types.Position:
        line = min(max(line, 1), len(lines))
        return types.Position(line - 1, units(lines[line - 1][:column]) + (shift if line == 1 else 0))

    line = min(finding.line or 1, len(lines))
    written = lines[line - 1]
    begin = (finding.column or 1) - 1 or len(written) - len(written.lstrip())
    end = max(len(written.rstrip()), begin)
    data: dict[str, Any] | None = None
    if finding.fix is not None:
        fix = finding.fix
        first, last = position(fix.line, fix.column), position(fix.end_line, fix.end_column)
        place = [first.line, first.character, last.line, last.character]
        data = {"range": place, "newText": fix.text, "title": finding.fix_hint}
    page = bundle_root() / _RULE_PAGES / f"{finding.rule_id}.md"
    return types.Diagnostic(
        range=types.Range(position(line, begin), position(line, end)),
        message=f"{finding.message}\nfix: {finding.fix_hint}",
        severity=_severity(finding),
        code=finding.rule_id,
        code_description=types.CodeDescription(page.as_uri()) if page.is_file() else None,
        source=SOURCE,
        data=data,
    )


def _severity(finding: Finding) -> types.DiagnosticSeverity:
    if finding.blocks:
        return types.DiagnosticSeverity.Error
    if finding.status == INFO or (finding.status == FAIL and finding.severity is Severity.S3):
        return types.DiagnosticSeverity.Information
    return types.DiagnosticSeverity.Warning


def _range(place: list[int]) -> types.Range:
    first_line, first, last_line, last = place
    return types.Range(types.Position(first_line, first), types.Position(last_line, last))
