"""How tests lay out and lint a rule's example: a real operator directory called `custom/demo`."""

from __future__ import annotations

from pathlib import Path

from pypto_op.vocabulary import Artifact, LintEvent
from pypto_op.workspace import OpWorkspace
from pypto_op_lint.api import lint_operator, lint_path
from pypto_op_lint.findings import LintResult
from pypto_op_lint.rule import Valid


def operator_at(base: Path) -> OpWorkspace:
    root = base / "custom" / "demo"
    root.mkdir(parents=True, exist_ok=True)
    return OpWorkspace.at(root)


def path_of(ws: OpWorkspace, artifact: Artifact, phase: int | None) -> Path:
    k = phase or 1
    return {
        Artifact.SPEC: ws.spec,
        Artifact.API_REPORT: ws.api_report,
        Artifact.GOLDEN: ws.golden,
        Artifact.GOLDEN_PERF_REPORT: ws.golden_perf_report,
        Artifact.DESIGN: ws.design,
        Artifact.INTERFACES: ws.interfaces,
        Artifact.TEST_INPUTS: ws.test_inputs,
        Artifact.SUITE: ws.suite,
        Artifact.RUNNER: ws.runner,
        Artifact.IMPL: ws.impl,
        Artifact.TEST: ws.test,
        Artifact.README: ws.readme,
        Artifact.MEMORY: ws.memory,
        Artifact.TUNING_REPORT: ws.tuning_report,
        Artifact.STATE: ws.state,
        Artifact.MODULE_IMPL: ws.module_impl(k),
        Artifact.MODULE_GOLDEN: ws.module_golden(k),
        Artifact.MODULE_TEST: ws.module_test(k),
    }[artifact]


def lay_out(base: Path, example: Valid) -> Path:
    """Write the example's files; return the path of the file it is about."""
    ws = operator_at(base)
    target = path_of(ws, example.artifact, example.phase)
    for name, text in {**example.files, target.relative_to(ws.root).as_posix(): example.text}.items():
        path = ws.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    return target


def lint_example(base: Path, example: Valid, rules: list[str] | None) -> LintResult:
    target = lay_out(base, example)
    if example.event is LintEvent.ON_WRITE:
        return lint_path(target, stage=example.stage, phase=example.phase, rules=rules)
    return lint_operator(operator_at(base).root, event=example.event, stage=example.stage, phase=example.phase, rules=rules)
