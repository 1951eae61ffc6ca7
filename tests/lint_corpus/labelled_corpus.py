"""The labelled corpus of `tests/corpus/lint`: reading it, laying a snippet out as an operator, judging what the linter says."""

from __future__ import annotations

import functools
import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jsonschema
import yaml

from pypto_op.vocabulary import Artifact, LintEvent
from pypto_op.workspace import OpWorkspace
from pypto_op_lint import registry
from pypto_op_lint.api import lint_operator, lint_path
from pypto_op_lint.findings import Finding, LintResult

CORPUS = Path(__file__).resolve().parents[1] / "corpus" / "lint"
BASES = {"complete": CORPUS / "_complete", "staged": CORPUS / "_staged"}
ANY_RULE = "all"
SLOW_RULES = {"OL11"}
"""They start a process that imports torch, so they run only where a label is about them."""


@dataclass(frozen=True)
class Snippet:
    """One labelled snippet: a file, or a folder with several files of an operator."""

    folder: Path
    rule: str
    name: str
    is_dir: bool
    label: str
    why: str
    at: tuple[str, ...] = ()
    others: frozenset[str] = frozenset()
    known_limit: str = ""
    artifact: Artifact | None = None
    phase: int | None = None
    event: LintEvent = LintEvent.ON_WRITE
    stage: int = 5
    base: str | None = None
    remove: tuple[str, ...] = ()
    op: str = "demo"
    clean: bool = False
    soft: bool = False

    @property
    def path(self) -> Path:
        return self.folder / self.name

    @property
    def files(self) -> list[Path]:
        """The files that the snippet brings along."""
        return [p for p in self.path.rglob("*") if p.is_file()] if self.is_dir else [self.path]

    @property
    def bad(self) -> bool:
        return self.label == "bad"

    @property
    def shown(self) -> str:
        return f"{self.folder.name}/{self.name}"


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
def folders() -> tuple[Path, ...]:
    """Every folder with labels, in order of name."""
    return tuple(sorted(path.parent for path in CORPUS.glob("*/labels.yaml")))


@functools.cache
def labels(folder: Path) -> dict[str, Any]:
    """The manifest of a folder, checked against the schema."""
    document = yaml.safe_load((folder / "labels.yaml").read_text(encoding="utf-8"))
    schema = json.loads((CORPUS / "labels.schema.json").read_text(encoding="utf-8"))
    jsonschema.validate(document, schema)
    return dict(document)


@functools.cache
def snippets(folder: Path) -> tuple[Snippet, ...]:
    """The snippets of one folder."""
    document = labels(folder)
    return tuple(_snippet(folder, document, entry) for entry in document["snippets"])


def all_snippets() -> Iterator[Snippet]:
    """Every snippet of the corpus."""
    for folder in folders():
        yield from snippets(folder)


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


def _snippet(folder: Path, document: dict[str, Any], entry: dict[str, Any]) -> Snippet:
    merged = {**document.get("defaults", {}), **entry}
    is_dir = "dir" in entry
    artifact = merged.get("artifact")
    base = merged.get("base")
    return Snippet(
        folder=folder,
        rule=document["rule"],
        name=entry["dir"] if is_dir else entry["file"],
        is_dir=is_dir,
        label=entry["label"],
        why=" ".join(entry["why"].split()),
        at=tuple(entry.get("at", ())),
        others=frozenset(entry.get("or", ())),
        known_limit=entry.get("known_limit", ""),
        artifact=None if artifact is None else Artifact(artifact),
        phase=merged.get("phase"),
        event=LintEvent(merged.get("event", "on-write")),
        stage=merged.get("stage", 5),
        base=None if base == "none" else base,
        remove=tuple(entry.get("remove", ())),
        op=entry.get("op", "demo"),
        clean=bool(merged.get("clean", False)),
        soft=bool(merged.get("soft", False)),
    )


def _lay_out(snippet: Snippet, scratch: Path) -> Path:
    root = scratch / "custom" / snippet.op
    root.mkdir(parents=True)
    sources = [BASES[snippet.base]] if snippet.base else []
    if snippet.is_dir and snippet.path.is_dir():
        sources.append(snippet.path)
    for source in sources:
        shutil.copytree(source, root, dirs_exist_ok=True)
    if not snippet.is_dir:
        target = _target(snippet, root)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(snippet.path.read_bytes())
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
    for path in snippet.files:
        name = path.name if snippet.is_dir else _target(snippet, Path(snippet.op)).name
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").split("\n"), 1):
            if any(part in line for part in snippet.at):
                places.add((name, number))
    return places


def _shown(finding: Finding) -> str:
    return f"{finding.rule_id}[{finding.severity} {finding.status}] {finding.place} {finding.message}"
