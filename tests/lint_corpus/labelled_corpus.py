"""The labelled corpus of `tests/corpus/lint`: reading its pages, laying snippets out as operators, judging the linter."""

from __future__ import annotations

import functools
import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jsonschema
from tests.markdown_cases import cases
from tests.markdown_cases.cases import Case, Cases, Files
from tests.markdown_cases.pages import PageError

from pypto_op.vocabulary import Artifact, LintEvent
from pypto_op.workspace import OpWorkspace
from pypto_op_lint import registry
from pypto_op_lint.api import lint_operator, lint_path
from pypto_op_lint.findings import Finding, LintResult

CORPUS = Path(__file__).resolve().parents[1] / "corpus" / "lint"
OPERATORS = ("complete", "staged")
"""Bases that are whole operators: a snippet may lie on one of them."""
ANY_RULE = "all"
SLOW_RULES = {"OL11"}
"""They start a process that imports torch, so they run only where a label is about them."""
_NO_RULES = {"README", "bases"}


@dataclass(frozen=True)
class Snippet:
    """One labelled snippet: a file, or several files of an operator by their paths in it."""

    page: str
    rule: str
    name: str
    label: str
    why: str
    files: Files = field(hash=False, repr=False)
    at: tuple[str, ...] = ()
    others: frozenset[str] = frozenset()
    known_limit: str = ""
    artifact: Artifact | None = None
    phase: int | None = None
    event: LintEvent = LintEvent.ON_WRITE
    stage: int = 5
    operator: str | None = None
    remove: tuple[str, ...] = ()
    op: str = "demo"
    clean: bool = False
    soft: bool = False

    @property
    def single(self) -> bool:
        """Whether it is one file, placed as its artifact."""
        return "" in self.files

    @property
    def source(self) -> bytes:
        """The bytes of a snippet that is one file."""
        return self.files[""]

    @property
    def bad(self) -> bool:
        return self.label == "bad"

    @property
    def shown(self) -> str:
        return f"{self.page}/{self.name}"


@dataclass
class Verdict:
    """What the linter said to one snippet, held against its label."""

    snippet: Snippet
    caught: bool
    misplaced: list[str] = field(default_factory=list)
    unclean: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)

    @property
    def problem(self) -> str:
        """Why the label is not met, in one line; empty when it is."""
        s = self.snippet
        if s.bad and not self.caught:
            return f"MISS        {s.shown}: {s.why} (said: {'; '.join(self.said) or 'nothing'})"
        if not s.bad and self.caught:
            return f"FALSE ALARM {s.shown}: {s.why} (said: {'; '.join(self.said)})"
        if self.misplaced:
            return f"WRONG LINE  {s.shown}: expected {' or '.join(map(repr, s.at))}, said {'; '.join(self.misplaced)}"
        if self.unclean:
            return f"NOT CLEAN   {s.shown}: {s.why} (blocked by {'; '.join(self.unclean)})"
        return ""


@functools.cache
def page_names() -> tuple[str, ...]:
    """The name of every page with labels: a rule's id, or `whole`."""
    return tuple(sorted(path.stem for path in CORPUS.glob("*.md") if path.stem not in _NO_RULES))


@functools.cache
def bases() -> Mapping[str, Files]:
    """The bases that all pages share."""
    return cases.load(CORPUS / "bases.md").bases


@functools.cache
def page(name: str) -> Cases:
    """One page, its front matter and the keys of its cases checked against the schema."""
    path = CORPUS / f"{name}.md"
    if not path.is_file():
        raise PageError(path, 1, f"{name} has no snippets: write the page as tests/corpus/lint/README.md says")
    return checked(cases.load(path, bases(), _file_of_operator))


@functools.cache
def snippets(name: str) -> tuple[Snippet, ...]:
    """The snippets of one page."""
    return tuple(_snippet(page(name), case) for case in page(name).cases)


def all_snippets() -> Iterator[Snippet]:
    """Every snippet of the corpus."""
    for name in page_names():
        yield from snippets(name)


def checked(found: Cases) -> Cases:
    """Return `found` as it is.

    Raises:
        PageError: the title is no rule, no sentence says what the rule is for, a key is unknown or has a wrong value, or a
            case has nothing that could be looked at.
    """
    path, schema = found.page.path, json.loads((CORPUS / "pages.schema.json").read_text(encoding="utf-8"))

    def hold(value: object, part: str, line: int, lines: Mapping[str, int]) -> None:
        for error in jsonschema.Draft202012Validator({**schema, "$ref": f"#/$defs/{part}"}).iter_errors(value):
            named = [str(error.path[0])] if error.path else sorted(set(lines) - set(schema["$defs"][part].get("properties", ())))
            raise PageError(path, lines.get(named[0], line) if named else line, f"{': '.join([*named[:1], error.message])}")

    hold({"title": found.title, "intent": found.intent}, "page", found.page.sections[0].line, {})
    hold(found.page.front, "defaults", 1, dict.fromkeys(found.page.front, 1))
    for case in found.cases:
        hold(dict(case.keys), "case", case.line, case.key_lines)
        merged = {**found.page.front, **case.keys}
        if not case.files and merged.get("operator", cases.NO_BASE) == cases.NO_BASE:
            raise PageError(path, case.line, f"case {case.name} has no file: write a block, or name an operator")
        if "" in case.files and "artifact" not in merged:
            raise PageError(path, case.line, f"case {case.name} needs an `artifact`, which says what its file is")
    return found


def _file_of_operator(keys: Mapping[str, Any], path: str) -> bytes | None:
    return bases().get(str(keys.get("operator")), {}).get(path)


def judge(snippet: Snippet, scratch: Path, change: Callable[[str], str] | None = None) -> Verdict:
    """Lay `snippet` out below `scratch`, lint it as its label says, and hold the answer against the label.

    `change` rewrites the snippet's file first; where its findings then stand is not looked at.
    """
    root = _lay_out(snippet, scratch)
    if change is not None:
        target = _target(snippet, root)
        target.write_bytes(change(target.read_bytes().decode("utf-8")).encode("utf-8"))
    found = _lint(snippet, root, _rules_needed(snippet)).findings
    relevant = [f for f in found if _counts(snippet, f)]
    verdict = Verdict(snippet, bool(relevant))
    if snippet.bad and not relevant:
        found = _lint(snippet, root, None).findings  # what else was said helps whoever reads the miss
    shutil.rmtree(scratch, ignore_errors=True)
    verdict.said = [_shown(f) for f in (relevant or found)]
    if snippet.bad and relevant and snippet.at and change is None:
        wanted = _expected_places(snippet)
        if not any((Path(f.file).name, f.line) in wanted for f in relevant):
            verdict.misplaced = [_shown(f) for f in relevant]
    if not snippet.bad and snippet.clean:
        verdict.unclean = [_shown(f) for f in found if f.blocks]
    return verdict


def lay_out_text(snippet: Snippet, text: str, scratch: Path) -> Path:
    """Lay `snippet` out with `text` as its file; return where that file stands."""
    target = _target(snippet, _lay_out(snippet, scratch))
    target.write_text(text, encoding="utf-8")
    return target


def reports(snippet: Snippet, scratch: Path) -> bool:
    """Return whether the snippet's own rule, run alone, says anything about it."""
    result = _lint(snippet, _lay_out(snippet, scratch), [snippet.rule])
    shutil.rmtree(scratch, ignore_errors=True)
    return any(finding.rule_id == snippet.rule for finding in result.findings)


def _snippet(found: Cases, case: Case) -> Snippet:
    merged = {**found.page.front, **case.keys}
    artifact, operator = merged.get("artifact"), merged.get("operator")
    return Snippet(
        page=found.page.path.stem,
        rule=found.title,
        name=case.name,
        label=case.label,
        why=case.why,
        files=case.files,
        at=tuple(merged.get("at", ())),
        others=frozenset(merged.get("or", ())),
        known_limit=merged.get("known_limit", ""),
        artifact=None if artifact is None else Artifact(artifact),
        phase=merged.get("phase"),
        event=LintEvent(merged.get("event", "on-write")),
        stage=merged.get("stage", 5),
        operator=None if operator == cases.NO_BASE else operator,
        remove=tuple(merged.get("remove", ())),
        op=merged.get("op", "demo"),
        clean=bool(merged.get("clean", False)),
        soft=bool(merged.get("soft", False)) or _informs(found.title),
    )


def _informs(title: str) -> bool:
    """Whether `title` names a rule that refuses nothing (S2, S3), so that any finding of it counts."""
    return title != ANY_RULE and not registry.all_rules()[title].severity.blocks


def _lay_out(snippet: Snippet, scratch: Path) -> Path:
    root = scratch / "custom" / snippet.op
    root.mkdir(parents=True)
    below = bases()[snippet.operator] if snippet.operator else {}
    for path, content in {**below, **snippet.files}.items():
        target = root / path if path else _target(snippet, root)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    for name in snippet.remove:
        (root / name).unlink()
    return root


def _target(snippet: Snippet, root: Path) -> Path:
    """Where the file of `snippet` belongs in its operator."""
    ws, k = OpWorkspace(root, snippet.op), snippet.phase or 1
    assert snippet.artifact is not None, f"{snippet.shown} needs an artifact"
    by_phase = {
        Artifact.MODULE_IMPL: ws.module_impl,
        Artifact.MODULE_GOLDEN: ws.module_golden,
        Artifact.MODULE_TEST: ws.module_test,
    }
    if snippet.artifact in by_phase:
        return by_phase[snippet.artifact](k)
    path: Path = getattr(ws, snippet.artifact.value)
    return path


def _rules_needed(snippet: Snippet) -> list[str] | None:
    """The rules whose answer the label speaks of; None for all of them."""
    if snippet.rule == ANY_RULE or (snippet.clean and not snippet.bad):
        return [rule_id for rule_id in registry.all_rules() if rule_id not in SLOW_RULES - {snippet.rule}]
    return sorted({snippet.rule} | snippet.others)


def _lint(snippet: Snippet, root: Path, rules: list[str] | None) -> LintResult:
    if snippet.event is LintEvent.ON_WRITE:
        return lint_path(_target(snippet, root), stage=snippet.stage, phase=snippet.phase, rules=rules)
    return lint_operator(root, event=snippet.event, stage=snippet.stage, phase=snippet.phase, rules=rules)


def _counts(snippet: Snippet, finding: Finding) -> bool:
    if snippet.rule == ANY_RULE:
        return finding.blocks
    if snippet.bad:
        accepted = {snippet.rule} | snippet.others
        return finding.rule_id in accepted and (snippet.soft or finding.blocks)
    # A warning of a blocking rule refuses nothing; of a rule that only informs it is all there is.
    return finding.rule_id == snippet.rule and (snippet.soft or finding.blocks)


def _expected_places(snippet: Snippet) -> set[tuple[str, int]]:
    places = set()
    for path, content in snippet.files.items():
        name = Path(path).name if path else _target(snippet, Path(snippet.op)).name
        for number, line in enumerate(content.decode("utf-8", errors="replace").split("\n"), 1):
            if any(part in line for part in snippet.at):
                places.add((name, number))
    return places


def _shown(finding: Finding) -> str:
    return f"{finding.rule_id}[{finding.severity} {finding.status}] {finding.place} {finding.message}"
