"""The library that hooks and gates call."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from linting import lay_out, operator_at

from pypto_op.errors import ContractError
from pypto_op.vocabulary import Artifact, LintEvent, Severity
from pypto_op_lint import registry
from pypto_op_lint.api import BANNER, apply_fixes, block_message, lint_operator, lint_path
from pypto_op_lint.examples import GOLDEN, TEST, impl
from pypto_op_lint.findings import FAIL, INFO, WARN, Edit, Finding, LintResult
from pypto_op_lint.rule import Valid

BAD = impl("x = pypto.silu(x)\nreturn x\n")


def _finding(**changes: object) -> Finding:
    plain = Finding("OL48", Severity.S0, FAIL, "custom/demo/demo_impl.py", 3, 5, "seen", "do")
    return replace(plain, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("severity", "status", "blocks"),
    [
        (Severity.S0, FAIL, True),
        (Severity.S1, FAIL, True),
        (Severity.S2, FAIL, False),
        (Severity.S3, FAIL, False),
        (Severity.S0, WARN, False),
        (Severity.S1, WARN, False),
        (Severity.S0, INFO, False),
    ],
)
def test_only_a_fail_of_s0_or_s1_blocks(severity: Severity, status: str, blocks: bool) -> None:
    result = LintResult(LintEvent.ON_WRITE)
    result.add([_finding(severity=severity, status=status)])
    assert result.blocks is blocks
    assert int(result.exit_code) == (2 if blocks else 0)
    assert bool(block_message(result)) is blocks


def test_every_fault_of_a_file_is_told_at_once_with_its_place_and_hint(tmp_path: Path) -> None:
    path = lay_out(tmp_path, Valid(BAD))
    result = lint_path(path)
    found = {f.rule_id for f in result.findings}
    assert {"OL03", "OL04", "OL55"} <= found
    message = block_message(result)
    lines = message.split("\n")
    assert lines[0] == BANNER
    line = BAD.split("\n").index("    x = pypto.silu(x)") + 1
    assert any(text.startswith(f"  [OL55][S0] custom/demo/demo_impl.py:{line}:") for text in lines)
    blocking = next(text for text in lines if text.startswith("blocking_rules: "))
    assert {"OL03", "OL04", "OL55"} <= set(blocking.removeprefix("blocking_rules: ").split(", "))
    hints = lines[lines.index("fix_hints:") + 1 :]
    for rule_id in ("OL03", "OL04", "OL55"):
        assert any(text.startswith(f"  - {rule_id}: ") for text in hints)


def test_findings_are_sorted_and_told_once() -> None:
    result = LintResult(LintEvent.ON_WRITE)
    late, early = _finding(line=9), _finding(line=2)
    soft = _finding(severity=Severity.S2, status=WARN, line=1)
    result.add([late, soft])
    result.add([early, late])
    assert result.findings == [early, late, soft]
    summary = result.as_dict()["summary"]
    assert (summary["fail"], summary["warn"], summary["info"], summary["blocks"]) == (2, 1, 0, True)
    assert summary["blocking_rules"] == ["OL48"]


def test_a_file_that_is_no_operators_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes_impl.py"
    path.write_text("def broken(:\n", encoding="utf-8")
    assert lint_path(path).findings == []
    assert [f.rule_id for f in lint_path(path, loose=True).findings] == ["PX00"]


def test_a_copy_in_debug_is_linted_when_it_is_named(tmp_path: Path) -> None:
    path = operator_at(tmp_path).root / "_debug" / "demo_impl.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(impl().replace("pypto.exp(tile)", "pypto.silu(tile)"))
    assert [f.rule_id for f in lint_path(path, loose=True).findings] == ["OL55"]
    assert not lint_path(path).findings


def test_the_first_file_of_a_new_operator_is_already_linted(tmp_path: Path) -> None:
    path = tmp_path / "custom" / "demo" / "demo_impl.py"
    path.parent.mkdir(parents=True)
    path.write_text("x = 1\n", encoding="utf-8")
    assert "OL01" in {f.rule_id for f in lint_path(path).findings}


def test_scratch_files_are_left_alone(tmp_path: Path) -> None:
    path = operator_at(tmp_path).debug_dir / "demo_impl.py"
    path.parent.mkdir()
    path.write_text("def broken(:\n", encoding="utf-8")
    assert lint_path(path).findings == []


def test_text_stands_in_for_what_is_on_disk(tmp_path: Path) -> None:
    path = lay_out(tmp_path, Valid(impl()))
    assert not lint_path(path).blocks
    assert lint_path(path, text=BAD).blocks
    assert path.read_text(encoding="utf-8") == impl()


@pytest.mark.parametrize("kind", [Artifact.MODULE_GOLDEN, Artifact.MODULE_TEST])
def test_module_goldens_and_tests_are_linted_as_such(kind: Artifact, tmp_path: Path) -> None:
    text = "import pypto\n" + (GOLDEN if kind is Artifact.MODULE_GOLDEN else TEST.replace("set_device", "nothing"))
    path = lay_out(tmp_path, Valid(text, artifact=kind))
    result = lint_path(path)
    assert {f.file for f in result.findings} == {path.relative_to(tmp_path).as_posix()}
    assert result.blocks


def test_a_write_answers_for_the_written_file_only(tmp_path: Path) -> None:
    lay_out(tmp_path, Valid(BAD))
    path = lay_out(tmp_path, Valid(GOLDEN, artifact=Artifact.GOLDEN))
    assert [f for f in lint_path(path).findings if f.blocks] == []


def test_a_vanished_file_is_a_finding_not_a_crash(tmp_path: Path) -> None:
    path = operator_at(tmp_path).impl
    assert [f.rule_id for f in lint_path(path).findings] == ["PX00"]


def test_a_link_to_itself_is_a_finding(tmp_path: Path) -> None:
    path = operator_at(tmp_path).impl
    path.symlink_to(path.name)
    assert [f.rule_id for f in lint_path(path).findings] == ["PX00"]


def test_a_gate_on_a_phase_whose_file_is_missing_refuses(tmp_path: Path) -> None:
    ws = operator_at(tmp_path)
    result = lint_operator(ws.root, event=LintEvent.SUBMIT_FOR_VERIFY, stage=5, phase=2, rules=["PX00", "OL01"])
    assert result.blocks
    assert {f.file for f in result.blocking} == {"custom/demo/modules/demo_module12_impl.py"}


def test_a_gate_looks_at_the_phase_it_is_about(tmp_path: Path) -> None:
    lay_out(tmp_path, Valid(BAD, artifact=Artifact.MODULE_IMPL, phase=1))
    lay_out(tmp_path, Valid(impl().replace("demo_wrapper", "demo_module12_wrapper"), artifact=Artifact.MODULE_IMPL, phase=2))
    root = operator_at(tmp_path).root

    def blocked(phase: int) -> set[str]:
        result = lint_operator(root, event=LintEvent.SUBMIT_FOR_VERIFY, stage=5, phase=phase, rules=["OL01", "OL55"])
        return {f.rule_id for f in result.blocking}

    assert blocked(1) == {"OL55"}
    assert blocked(2) == set()


def test_the_stage_is_read_from_the_state_file(tmp_path: Path) -> None:
    text = impl().replace('idx_name="i"', 'idx_name="i", unroll_list=[4, 1]')
    path = lay_out(tmp_path, Valid(text))
    state = operator_at(tmp_path).state
    for stage, expected in ((5, True), (7, False)):
        state.write_text(f'{{"current_stage": {stage}}}', encoding="utf-8")
        assert ("OL56" in {f.rule_id for f in lint_path(path).findings}) is expected
    for broken in ("[]", "{", '{"current_stage": "x"}', '{"current_stage": 99}'):
        state.write_text(broken, encoding="utf-8")
        assert "OL56" in {f.rule_id for f in lint_path(path).findings}


def test_wrong_requests_are_refused_in_one_line(tmp_path: Path) -> None:
    path = lay_out(tmp_path, Valid(impl()))
    with pytest.raises(ContractError, match="OL99"):
        lint_path(path, rules=["OL01", "OL99"])
    with pytest.raises(ContractError, match="no such rule"):
        lint_path(path, rules=[])
    with pytest.raises(ContractError, match="no such operator directory"):
        lint_operator(tmp_path / "custom" / "nothing")
    with pytest.raises(ContractError, match="phase is missing"):
        lint_operator(path.parent, event=LintEvent.SUBMIT_FOR_VERIFY)
    with pytest.raises(ContractError, match="belongs to no operator"):
        lint_path(tmp_path / "thing.py", loose=True)


def test_edits_that_overlap_are_applied_once() -> None:
    first = _finding(fix=Edit(1, 0, 1, 3, "one"))
    second = _finding(fix=Edit(1, 2, 1, 5, "two"), line=4)
    third = _finding(fix=Edit(2, 0, 3, 0, ""), line=5)
    assert apply_fixes("abcdef\nline\nlast", [second, first, third, first]) == ("onedef\nlast", 2)


def test_nothing_is_imported_that_slows_a_write() -> None:
    """pypto and torch take seconds; the linter must never load them."""
    import subprocess
    import sys

    code = (
        "import sys; from pypto_op_lint import registry; registry.all_rules();"
        "print([m for m in ('pypto', 'torch', 'yaml', 'click', 'jsonschema', 'rich') if m in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


@pytest.mark.parametrize("rule_id", sorted(registry.all_rules()))
def test_a_rule_without_its_body_fails_its_own_examples(rule_id: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The examples depend on the rule's code: with its methods emptied, a bad example goes unreported."""
    from linting import lint_example

    rule = registry.all_rules()[rule_id]
    for name, method in list(vars(rule).items()):
        if name in ("check_file", "check_operator") or name.startswith("visit_"):
            assert callable(method)
            monkeypatch.setattr(rule, name, lambda self, *_: None)
    silent = [e for e in rule.INVALID if not lint_example(tmp_path, e, [rule_id]).findings]
    assert silent, "the bad examples are reported by something else than the rule's own code"
