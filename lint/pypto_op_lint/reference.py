"""The rule reference, made from the rules' own docstrings; `pypto-op bundle write` writes it."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from textwrap import dedent

from pypto_op.vocabulary import LintEvent
from pypto_op_lint import events, registry
from pypto_op_lint.rule import ALL_STAGES, Rule

INDEX = Path("skills/pypto-op-review/references/lint-rules.md")
PAGES = INDEX.with_suffix("")
_MADE_BY = "<!-- Made from the rules by `pypto-op bundle write`; do not edit. -->"
_CODE_HEADINGS = {"Example", "Use instead"}


def explain(rule: type[Rule]) -> str:
    """Return everything a rule says about itself, as Markdown."""
    row = events.row(rule.id)
    stages = "all" if rule.stages == ALL_STAGES else ", ".join(str(s) for s in sorted(rule.stages))
    when = [str(e) for e in LintEvent if e is not LintEvent.COMPLETE_STAGE and row.runs_at(e, None)]
    if row.complete_stage:
        when.append(f"{LintEvent.COMPLETE_STAGE} {', '.join(str(s) for s in sorted(row.complete_stage))}")
    files = ", ".join(sorted(str(a) for a in rule.artifacts))
    lines = [
        f"# {rule.id} {rule.name} ({rule.severity}, {'blocks' if row.effect == events.BLOCK else 'informs'})",
        "",
        first_line(rule),
        "",
        f"- Files: {files}",
        f"- Stages: {stages}",
        f"- Runs: {'; '.join(when)}",
        f"- Fix: {rule.FIX_HINT}",
    ]
    for heading, text in _parts(rule):
        body = f"```python\n{text}\n```" if heading in _CODE_HEADINGS and _is_code(text) else text
        lines += ["", f"## {heading}", "", body]
    return "\n".join(lines) + "\n"


def first_line(rule: type[Rule]) -> str:
    """Return what the rule reports, in one sentence."""
    return inspect.cleandoc(rule.__doc__ or "").split("\n\n")[0].replace("\n", " ")


def index() -> str:
    """Return the table of all rules, as Markdown."""
    lines = [
        _MADE_BY,
        "# Lint rules",
        "",
        "S0 and S1 block; S2 warns; S3 informs. `pypto-op lint --explain ID` prints a rule, so does the file of its name.",
        "",
        "| id | severity | reports | files |",
        "|---|---|---|---|",
    ]
    for rule_id, rule in registry.all_rules().items():
        files = ", ".join(sorted(str(a) for a in rule.artifacts))
        files = "every artefact" if len(rule.artifacts) > 8 else files
        reports = first_line(rule).replace("|", "\\|")
        lines.append(f"| [{rule_id}]({PAGES.name}/{rule_id}.md) | {rule.severity} | {reports} | {files} |")
    return "\n".join(lines) + "\n"


def pages() -> dict[Path, str]:
    """Return every page of the reference by its path inside the bundle."""
    made = {INDEX: index()}
    for rule_id, rule in registry.all_rules().items():
        made[PAGES / f"{rule_id}.md"] = f"{_MADE_BY}\n{explain(rule)}"
    return made


def _parts(rule: type[Rule]) -> list[tuple[str, str]]:
    text = inspect.cleandoc(rule.__doc__ or "")
    found: list[tuple[str, str]] = []
    pieces = re.split(r"^([A-Z][a-z ]+):$", text, flags=re.MULTILINE)
    for heading, body in zip(pieces[1::2], pieces[2::2], strict=True):
        found.append((heading, dedent(body.strip("\n")).strip()))
    return found


def _is_code(text: str) -> bool:
    """Whether an example is Python (it may be a piece of a document)."""
    return bool(re.search(r"^\s*(?:def |for |while |import |from |@|\w[\w.\[\]:, ]* = |[\w.]+\()", text, re.MULTILINE))
