"""What the linter says: findings, safe edits and the result of one run."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pypto_op.vocabulary import ExitCode, LintEvent, Severity

FAIL, WARN, INFO = "FAIL", "WARN", "INFO"
"""Status words of a finding. Only a FAIL of severity S0 or S1 blocks."""

STATUS_WORDS = (FAIL, WARN, INFO)


@dataclass(frozen=True)
class Edit:
    """A safe replacement of a range of one file, applied by `pypto-op lint --fix`.

    Lines count from 1, columns from 0, both ends as libcst gives them; `end_column` is exclusive.
    """

    line: int
    column: int
    end_line: int
    end_column: int
    text: str


@dataclass(frozen=True)
class Finding:
    """One thing a rule saw."""

    rule_id: str  # id of the rule, such as OL48
    severity: Severity  # severity of the rule
    status: str  # FAIL, WARN or INFO
    file: str  # path of the file that must change; relative to the operator's directory where it lies in it
    line: int | None  # line of the fault, from 1; None when the fault is that something is missing
    column: int | None  # column of the fault, from 1
    message: str  # what was seen and why it matters
    fix_hint: str  # what to do about it, imperative
    fix: Edit | None = None  # an edit that repairs it without changing what the code means, where there is one

    @property
    def blocks(self) -> bool:
        """Whether this finding refuses a write or a transition."""
        return self.status == FAIL and self.severity.blocks

    @property
    def place(self) -> str:
        """`file`, `file:line` or `file:line:column`."""
        parts = [self.file] + [str(p) for p in (self.line, self.column) if p is not None]
        return ":".join(parts)

    def as_dict(self) -> dict[str, Any]:
        """Return the finding under the JSON keys of the CLI."""
        return {
            "rule_id": self.rule_id,
            "severity": str(self.severity),
            "status": self.status,
            "file": self.file,
            "line": self.line,
            "column": self.column,
            "message": self.message,
            "fix_hint": self.fix_hint,
        }


@dataclass
class LintResult:
    """Every finding of one run, most severe first, and what was looked at."""

    event: LintEvent  # the event the run stood for
    findings: list[Finding] = field(default_factory=list)  # all findings, each once
    files: list[str] = field(default_factory=list)  # files that were read
    rules: list[str] = field(default_factory=list)  # ids of the rules that ran
    notes: list[str] = field(default_factory=list)  # remarks about the run itself, such as a regenerated name table
    base: Path | None = None  # the folder that the files of the findings are relative to; None when nothing was looked at

    @property
    def blocks(self) -> bool:
        """Whether any finding refuses the write or the transition."""
        return any(finding.blocks for finding in self.findings)

    @property
    def blocking(self) -> list[Finding]:
        """The findings that block."""
        return [finding for finding in self.findings if finding.blocks]

    @property
    def exit_code(self) -> ExitCode:
        """0 clean, 2 when an S0 or S1 FAIL exists."""
        return ExitCode.CONTRACT if self.blocks else ExitCode.OK

    def add(self, findings: Iterable[Finding]) -> None:
        """Append `findings`, drop repetitions, keep the order severity, file, line."""
        merged = dict.fromkeys([*self.findings, *findings])
        self.findings = sorted(merged, key=lambda f: (not f.blocks, f.severity, f.file, f.line or 0, f.column or 0, f.rule_id))

    def relative_to(self, root: Path) -> LintResult:
        """Return the same result with files named relative to `root`, as a code host wants them; as before outside it."""
        if self.base is None:
            return self

        def named(file: str) -> str:
            path = Path(os.path.normpath((self.base or root) / file))
            return path.relative_to(root).as_posix() if path.is_relative_to(root) else file

        moved = LintResult(self.event, files=[named(f) for f in self.files], rules=self.rules, notes=self.notes, base=root)
        moved.add(replace(finding, file=named(finding.file)) for finding in self.findings)
        return moved

    def as_dict(self) -> dict[str, Any]:
        """Return `{"findings": [...], "summary": {...}}`."""
        by_status = {word.lower(): 0 for word in STATUS_WORDS}
        for finding in self.findings:
            by_status[finding.status.lower()] += 1
        summary = {
            **by_status,
            "blocks": self.blocks,
            "blocking_rules": sorted({f.rule_id for f in self.blocking}),
            "event": str(self.event),
            "files": self.files,
            "rules_run": len(self.rules),
            "notes": self.notes,
        }
        return {"findings": [f.as_dict() for f in self.findings], "summary": summary}
