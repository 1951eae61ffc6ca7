"""The linter's library interface: what hooks, gates and the command call."""

from __future__ import annotations

import gc
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pypto_op.errors import ContractError
from pypto_op.vocabulary import Artifact, LintEvent
from pypto_op.workspace import OpWorkspace
from pypto_op_lint import engine, pypto_names, registry
from pypto_op_lint.findings import Edit, Finding, LintResult
from pypto_op_lint.rule import LintContext, Rule
from pypto_op_lint.units import OperatorFiles, Unit

BANNER = "[pypto-op-lint] 产物写入后即时门禁未通过(S0/S1)"
"""First line of a refusal; agents look for it (coder seed)."""

_LOOSE_NAMES = (
    (re.compile(r"(?P<op>[a-z][a-z0-9_]*?)_module\d+_impl\.py\Z"), Artifact.MODULE_IMPL),
    (re.compile(r"(?P<op>[a-z][a-z0-9_]*)_impl\.py\Z"), Artifact.IMPL),
    (re.compile(r"(?P<op>[a-z][a-z0-9_]*?)_module\d+_golden\.py\Z"), Artifact.MODULE_GOLDEN),
    (re.compile(r"(?P<op>[a-z][a-z0-9_]*)_golden\.py\Z"), Artifact.GOLDEN),
    (re.compile(r"test_(?P<op>[a-z][a-z0-9_]*?)_module\d+\.py\Z"), Artifact.MODULE_TEST),
    (re.compile(r"test_(?P<op>[a-z][a-z0-9_]*)\.py\Z"), Artifact.TEST),
)
_DESIGN_ARTIFACTS = {Artifact.DESIGN, Artifact.INTERFACES}


def lint_path(
    path: Path | str,
    *,
    text: str | None = None,
    unsaved: Mapping[Path, str] | None = None,
    event: LintEvent = LintEvent.ON_WRITE,
    stage: int | None = None,
    phase: int | None = None,
    rules: Iterable[str] | None = None,
    loose: bool = False,
) -> LintResult:
    """Lint one file as what it is to its operator.

    Args:
        text: its text, when it is not (yet) what lies on disk.
        unsaved: the same for other files of the operator.
        event: the event this run stands for.
        stage: stage of the operator, 1 to 7; read from its state file when left out.
        phase: phase k of the staged chain.
        rules: ids of the rules to run; all that the event allows when left out.
        loose: lint a file that belongs to no operator, or lies in `_debug/`, by its name (`*_impl.py`, ...). Otherwise
            nothing is found in it.

    Raises:
        ContractError: a rule id does not exist, or the file lies in no operator and `loose` finds no kind for it.
    """
    where = Path(path).expanduser().absolute()
    result = LintResult(event)
    ws = OpWorkspace.owning(where)
    artifact, own_phase = ws.artifact_of(where) if ws is not None else (Artifact.OTHER, None)
    if loose and (artifact in (Artifact.OTHER, Artifact.DEBUG) or (ws is not None and ws.is_nobodys())):
        ws, artifact = _loose(where)
    if ws is None or artifact in (Artifact.OTHER, Artifact.DEBUG):
        result.notes.append("not a file that rules look at")
        return result
    with _without_collector():
        files = OperatorFiles(ws, {**(unsaved or {}), **({where: text} if text is not None else {})})
        stage = stage if stage is not None else current_stage(files)
        chosen = _chosen(rules, event, stage)
        context = LintContext(files, event, stage, phase if phase is not None else own_phase)
        unit = files.unit(where, artifact)
        found = engine.lint_units(chosen, context, [unit])
        found += engine.lint_operator_rules(chosen, context, [artifact])
    # A write answers for the written file only; the gates answer for the rest.
    result.add(f for f in found if f.file == unit.shown or event is not LintEvent.ON_WRITE)
    return _finish(result, files, chosen)


def lint_operator(
    op_dir: Path | str,
    *,
    event: LintEvent = LintEvent.COMPLETE_STAGE,
    stage: int | None = None,
    phase: int | None = None,
    rules: Iterable[str] | None = None,
) -> LintResult:
    """Lint an operator as one of its gates does.

    Args:
        event: the gate. `on-write` looks at every file as if it had just been written.
        stage: the stage that is being completed; the current one when left out.
        phase: the phase k that is handed over (`submit-for-verify`).

    Raises:
        ContractError: no such directory, no such rule, or a phase is missing for `submit-for-verify`.
    """
    ws = OpWorkspace.at(op_dir)
    files = OperatorFiles(ws)
    result = LintResult(event)
    if event is LintEvent.SUBMIT_FOR_VERIFY and phase is None:
        raise ContractError("a phase is missing", remedy="say which one with --phase M_k")
    with _without_collector():
        stage = stage if stage is not None else current_stage(files)
        chosen = _chosen(rules, event, stage)
        context = LintContext(files, event, stage, phase)
        units = _units_of(files, event, phase)
        result.add(engine.lint_units(chosen, context, units))
        result.add(engine.lint_operator_rules(chosen, context, Artifact))
        if event is not LintEvent.ON_WRITE:
            result.add(_missing(chosen, context, units))
    return _finish(result, files, chosen)


def block_message(result: LintResult) -> str:
    """Return the text an agent must see when a write was refused; empty when nothing blocks.

    Banner, one line a finding, `blocking_rules:`, `fix_hints:` with a line a rule, and what to do next (coder seed).
    """
    blocking = result.blocking
    if not blocking:
        return ""
    lines = [BANNER]
    lines += [f"  [{f.rule_id}][{f.severity}] {f.place} {f.message}" for f in blocking]
    others = [f for f in result.findings if not f.blocks]
    lines += [f"  [{f.rule_id}][{f.severity}][{f.status}] {f.place} {f.message}" for f in others]
    lines.append(f"blocking_rules: {', '.join(sorted({f.rule_id for f in blocking}))}")
    lines.append("fix_hints:")
    hints = dict.fromkeys((f.rule_id, f.fix_hint) for f in blocking)
    lines += [f"  - {rule_id}: {hint}" for rule_id, hint in hints]
    lines.append("Repair the same file with Write or Edit at the same path; do not move it and do not write it with Bash.")
    return "\n".join(lines)


def apply_fixes(text: str, findings: Iterable[Finding]) -> tuple[str, int]:
    """Return `text` with the safe edits of `findings` applied, and how many; of two that overlap the first counts."""
    lines = text.split("\n")
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    spans: list[tuple[int, int, str]] = []
    edits: list[Edit] = [f.fix for f in findings if f.fix is not None]
    for edit in sorted(set(edits), key=lambda e: (e.line, e.column, e.end_line, e.end_column)):
        begin, end = starts[edit.line - 1] + edit.column, starts[edit.end_line - 1] + edit.end_column
        if not spans or begin >= spans[-1][1]:
            spans.append((begin, end, edit.text))
    for begin, end, new in reversed(spans):
        text = text[:begin] + new + text[end:]
    return text, len(spans)


def current_stage(files: OperatorFiles) -> int | None:
    """Return the stage that the operator's state file names; None without a readable one."""
    unit = files.existing(files.ws.state)
    if unit is None:
        return None
    try:
        stage = json.loads(unit.text).get("current_stage")
    except (ValueError, AttributeError, RecursionError):
        return None
    return stage if isinstance(stage, int) and not isinstance(stage, bool) and 1 <= stage <= 7 else None


def _chosen(rules: Iterable[str] | None, event: LintEvent, stage: int | None) -> dict[str, type[Rule]]:
    return engine.applicable(registry.select(rules), event, stage)


def _units_of(files: OperatorFiles, event: LintEvent, phase: int | None) -> list[Unit]:
    units = files.units()
    if event is LintEvent.SUBMIT_DESIGN:
        return [unit for unit in units if unit.artifact in _DESIGN_ARTIFACTS]
    if event is LintEvent.SUBMIT_FOR_VERIFY and phase is not None:
        return _units_of_phase(files, units, phase)
    return units


def _units_of_phase(files: OperatorFiles, units: list[Unit], phase: int) -> list[Unit]:
    """What phase M_k freezes, as far as it is there; on the single-module path, without staged files, the operator's own.

    Golden and test are written after the first submission and before the phase is completed, so both gates see them.
    """
    ws = files.ws
    staged = ws.module_impl(phase)
    single = phase == 1 and files.existing(staged) is None
    impl, *others = (ws.impl, ws.golden, ws.test) if single else (staged, ws.module_golden(phase), ws.module_test(phase))
    there = [files.unit(path) for path in others if files.existing(path) is not None]
    return [files.unit(impl), *there, *(unit for unit in units if unit.artifact is Artifact.MEMORY)]


def _missing(rules: dict[str, type[Rule]], context: LintContext, units: list[Unit]) -> list[Finding]:
    present = {unit.artifact for unit in units}
    found: list[Finding] = []
    for rule in rules.values():
        if rule.missing_is_fault and not present & rule.artifacts:
            instance = rule(context, None)
            kinds = " or ".join(sorted(_file_name(context.operator.ws, a) for a in rule.artifacts))
            instance.report(None, f"{kinds} does not exist", file=context.operator.shown(context.operator.ws.root))
            found.extend(instance.findings)
    return found


def _file_name(ws: OpWorkspace, artifact: Artifact) -> str:
    names = {
        Artifact.SPEC: ws.spec, Artifact.API_REPORT: ws.api_report, Artifact.GOLDEN: ws.golden,
        Artifact.GOLDEN_PERF_REPORT: ws.golden_perf_report, Artifact.DESIGN: ws.design, Artifact.IMPL: ws.impl,
        Artifact.INTERFACES: ws.interfaces, Artifact.TEST: ws.test, Artifact.README: ws.readme,
        Artifact.MEMORY: ws.memory, Artifact.STATE: ws.state,
    }  # fmt: skip
    return names[artifact].relative_to(ws.root).as_posix() if artifact in names else str(artifact)


def _loose(path: Path) -> tuple[OpWorkspace, Artifact]:
    for pattern, artifact in _LOOSE_NAMES:
        match = pattern.match(path.name)
        if match:
            root = path.parent.parent if path.parent.name == "modules" else path.parent
            return OpWorkspace(root, match["op"]), artifact
    raise ContractError(
        "belongs to no operator and its name does not say what it is",
        file=path,
        remedy="put it in custom/<op>/, or call it <op>_impl.py, <op>_golden.py or test_<op>.py",
    )


def _finish(result: LintResult, files: OperatorFiles, chosen: dict[str, type[Rule]]) -> LintResult:
    result.files = sorted(set(files.read))
    result.rules = list(chosen)
    result.base = files.base
    result.notes.extend(pypto_names.notes())
    return result


@contextmanager
def _without_collector() -> Iterator[None]:
    """A run makes some ten thousand long-lived objects; collecting in between costs a third of its time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


__all__ = ["BANNER", "Finding", "LintResult", "apply_fixes", "block_message", "lint_operator", "lint_path"]
