"""The table of bad candidates: how each is made, what it must get, and the page that shows it.

python -m tests.judge.bad_table     writes docs/bad-inputs.md
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.quickly import read_table

_REPOSITORY = Path(__file__).resolve().parents[2]
_TABLE = _REPOSITORY / "tests" / "fixtures" / "bad_candidates" / "table.yaml"
PAGE = "docs/bad-inputs.md"

FILES_OF_AN_OPERATOR = {
    "SPEC.md",
    "sum_diff_golden.py",
    "sum_diff_impl.py",
    "eval",
    "eval/adversarial_suite.json",
    "eval/module_interfaces.yaml",
    "eval/test_inputs.py",
    "eval/evaluation_report.json",
}
"""What may lie in the operator's folder after a verdict, beside `_debug/`."""


@dataclass(frozen=True)
class BadCandidate:
    """One row of the table; see the head of table.yaml."""

    what: str
    expect: dict[str, Any]
    missing: bool = False
    source: str | None = None
    at_import: str = ""
    before_launch: str = ""
    after_launch: str = ""
    wrapper: str = ""
    replace: list[tuple[str, str]] = field(default_factory=list)
    layout: str = ""
    arguments: list[str] = field(default_factory=list)

    @property
    def id(self) -> str:
        return re.sub(r"\W+", "-", self.what).strip("-")

    def source_from(self, good: str) -> str | None:
        """Return the faulty file's text, made from the correct one; None for a file that is not there."""
        if self.missing:
            return None
        if self.source is not None:
            return self.source
        text = good
        for old, new in self.replace:
            assert old in text, f"{self.what}: {old!r} is not in the correct kernel"
            text = text.replace(old, new)
        head, definition, body = text.rpartition("def sum_diff_")
        if self.at_import:
            head = head.replace("\nROWS = ", f"\n{self.at_import}\n\nROWS = ")
        if self.wrapper:
            body = f"{body.partition(chr(10))[0]}\n{_indented(self.wrapper)}"
        if self.before_launch:
            body = body.replace("    _build(", f"{_indented(self.before_launch)}    _build(")
        if self.after_launch:
            body = body.replace("    return ", f"{_indented(self.after_launch)}    return ")
        return head + definition + body


def _indented(code: str) -> str:
    return textwrap.indent(code.rstrip("\n") + "\n", "    ")


def load() -> list[BadCandidate]:
    """Read the table."""
    return [BadCandidate(**row) for row in read_table(_TABLE)]


def render(rows: Sequence[BadCandidate]) -> str:
    """Return the page: one line per row. The tests hold the judge to the same table."""
    lines = [
        "# Bad inputs and their verdicts",
        "",
        "Each row is the correct kernel of the operator `sum_diff` with one fault, judged by `pypto-op verify`. The tests",
        "in `tests/judge/test_bad_inputs.py` run every row for real and hold it to this verdict; they also check that",
        "no process is left and no file lies outside the operator's directory. Exit codes: 0 PASS, 1 the kernel is wrong,",
        "2 the operator's files are, 3 the machine cannot judge.",
        "",
        "Written by `python -m tests.judge.bad_table` from `tests/fixtures/bad_candidates/table.yaml`; do not edit.",
        "",
        "| candidate | status | first reason | failure category | exit |",
        "|---|---|---|---|---|",
    ]
    for row in rows:
        want = row.expect
        reason, category = (f"`{want[key]}`" if want[key] else "" for key in ("reason", "category"))
        lines.append(f"| {row.what} | {want['status']} | {reason} | {category} | {want['exit']} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    (_REPOSITORY / PAGE).write_text(render(load()), encoding="utf-8")
