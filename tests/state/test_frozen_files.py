"""What a phase or stage 5 freezes is linted and held to the generator first: kernel, golden and test."""

import re

import pytest
from tests.state.operators import Operator

from pypto_op.errors import Refused
from pypto_op.generators.writing.tests import new_tests
from pypto_op.state import deliverables, service
from pypto_op.state.deliverables import run_judge
from pypto_op.state.service import transition
from pypto_op_lint import events, registry
from pypto_op_lint.rule import GOLDENS, IMPLS, TESTS

pytestmark = pytest.mark.slow

EDITS = {
    "always fails": ("_set_device()\n    for case in L1", "raise AssertionError\n    for case in L1"),
    "asserts nothing": ("assert not bad, f", "bad or f"),
    "is skipped": ("import torch\n", 'import pytest\nimport torch\n\npytestmark = pytest.mark.skip(reason="slow")\n'),
    "compares less": ("for case in L0:", "for case in L0[:1]:"),
    "has a new stamp": ("# pypto-op generated: ", "# pypto-op generated: 0"),
}


@pytest.fixture
def awaiting(clone):
    """The staged operator with M2 handed over: impl, golden and test are written."""
    ws = clone("module1")
    transition(ws.root, "start_phase", phase="M2")
    Operator(ws.root, op=ws.name, n=2).module(2)
    transition(ws.root, "submit_for_verify", phase="M2")
    return ws


def no_judge(monkeypatch):
    monkeypatch.setattr(deliverables, "judge", lambda *_: pytest.fail("the judge was asked before the files were looked at"))


def edit(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def refused(ws, what, action, **arguments):
    before = ws.state.read_bytes()
    with pytest.raises(Refused, match=what):
        transition(ws.root, action, **arguments)
    assert ws.state.read_bytes() == before


def test_no_phase_ends_with_a_test_that_is_not_the_generated_one(awaiting, monkeypatch):
    no_judge(monkeypatch)
    good = awaiting.module_test(2).read_text()
    for old, new in EDITS.values():
        edit(awaiting.module_test(2), old, new)
        refused(awaiting, r"test_chain_module12\.py.*(is not what pypto-op generates|\[OL\d\d\])", "complete_phase", phase="M2")
        awaiting.module_test(2).write_text(good)
    awaiting.module_test(2).unlink()
    refused(awaiting, "is missing", "complete_phase", phase="M2")


REFUSED_GOLDENS = {
    "OL15": ("return x * x + y", "return (x * x + y).T.T"),
    "PX12": ("# generated during Phase M2 scaffolding", "# generated during Phase M1 scaffolding"),
    "OL41": (
        '"""Cumulative',
        '# blocking_rules: OL15\n# fix_hints: none\n# [pypto-op-lint] 产物写入后即时门禁未通过(S0/S1)\n"""Cumulative',
    ),
}


def test_no_phase_ends_with_a_golden_that_the_linter_refuses(awaiting, monkeypatch):
    no_judge(monkeypatch)
    good = awaiting.module_golden(2).read_text()
    for rule, (old, new) in REFUSED_GOLDENS.items():
        edit(awaiting.module_golden(2), old, new)
        refused(awaiting, rf"module12_golden\.py.*\[{rule}\]", "complete_phase", phase="M2")
        awaiting.module_golden(2).write_text(good)


@pytest.mark.sim
def test_a_sealed_pass_alone_does_not_verify_a_phase(awaiting):
    attempt = service.status(awaiting.root)["phases"]["M2"]["attempt"]
    words = ["--modes", "sim", "--up-to-module", "2", "--levels", "L1,L2,L3"]
    assert run_judge(awaiting, words)["status"] == "PARTIAL"
    edit(awaiting.module_test(2), "assert not bad, f", "bad or f")
    refused(awaiting, "test_chain_module12", "record_verdict", attempt=attempt)
    new_tests(awaiting, phase=2, force=True)
    for other in ("1", "M1.1", "M2.77"):
        refused(awaiting, f"the open attempt is {re.escape(attempt)}", "record_verdict", attempt=other)
    assert transition(awaiting.root, "record_verdict", attempt=attempt)["phase_status"] == "verified"


def test_stage_5_ends_with_the_generated_end_to_end_test(clone):
    ws = clone("verified")
    good = ws.test.read_text()
    edit(ws.test, "assert not bad, f", "bad or f")
    refused(ws, "test_square_add", "complete_stage", stage=5)
    ws.test.write_text(good.replace("detailed_tensor_compare(leaf,", "detailed_tensor_compare(reference,"))
    refused(ws, "test_square_add", "complete_stage", stage=5)
    ws.test.write_text(good)
    assert transition(ws.root, "complete_stage", stage=5)["current_stage"] == 6


def test_a_readme_that_does_not_say_how_to_call_the_operator_ends_no_stage(clone):
    ws = clone("verified")
    ws.readme.write_text("# square_add\n\nIt works.\n")
    refused(ws, "README.md: does not say square_add_wrapper, x, y", "complete_stage", stage=5)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (
            "def square_add_golden(x, y):\n    return x * x + y\n\n\ndef _validate():\n    assert square_add_golden(2, 1) == 6\n",
            "_validate",
        ),
        ("import no_such_package\n\n\ndef square_add_golden(x, y):\n    return x * x + y\n", "cannot be imported"),
        ("def other_golden(x, y):\n    return x * x + y\n", "does not define"),
    ],
)
def test_a_golden_that_does_not_stand_its_own_check_is_not_frozen(clone, text, what):
    ws = clone("stage2")
    ws.golden.write_text(text)
    refused(ws, rf"\[OL11\].*{what}", "complete_stage", stage=2)


def test_a_golden_that_stands_its_own_check_is_frozen(clone):
    ws = clone("stage2")
    text = (
        ws.golden.read_text()
        + "\n\ndef _validate():\n    for n in (1, 2, 3):\n        assert square_add_golden(n, 1) == n * n + 1\n"
    )
    ws.golden.write_text(text)
    assert transition(ws.root, "complete_stage", stage=2)["current_stage"] == 3


def test_debug_options_do_not_outlive_the_tuning(clone, monkeypatch):
    no_judge(monkeypatch)
    ws = clone("stage7")
    edit(ws.impl, "@pypto.frontend.jit(", '@pypto.frontend.jit(debug_options={"runtime_debug_mode": 1}, ')
    refused(ws, "still sets debug_options", "complete_stage", stage=7)


def test_the_integration_wants_the_generated_test_too(clone):
    ws = clone("composed")
    good = ws.test.read_text()
    edit(ws.test, "for case in L0:", "for case in L0[:1]:")
    refused(ws, "test_chain.py: is not what pypto-op generates", "record_integration")
    ws.test.write_text(good)
    transition(ws.root, "record_integration")


def test_an_unfinished_inventory_is_not_handed_over(clone):
    ws = clone("begun")
    good = ws.memory.read_text()
    row = "| 2 | add y | [N, D] -> [N, D] | `+` | 27 | ✅ |"
    for text in (
        good.replace(row, row.replace("✅", "❌")),
        good.replace("function inventory", "function list"),
        good.replace(row, "").replace("| 1 | square", "square"),
    ):
        assert text != good
        ws.memory.write_text(text)
        refused(ws, "OL53", "submit_for_verify", phase="M1")
    ws.memory.write_text(good)
    transition(ws.root, "submit_for_verify", phase="M1")


def test_a_golden_and_a_test_that_are_there_are_linted_when_the_kernel_is_handed_over(clone):
    ws = clone("begun")
    good = ws.test.read_text()
    ws.test.write_text("def test_square_add_l0():\n    assert True\n")
    refused(ws, r"test_square_add\.py.*\[OL", "submit_for_verify", phase="M1")
    ws.test.write_text(good)
    transition(ws.root, "submit_for_verify", phase="M1")


def test_what_stage_5_refuses_in_a_frozen_file_was_looked_at_when_it_froze():
    """Of each blocking rule about a kernel, a golden or a test, an earlier gate asks too: nothing is found first at the end."""
    about = IMPLS | GOLDENS | TESTS
    late = [
        rule_id
        for rule_id, row in events.table().items()
        if row.effect == events.BLOCK and 5 in row.complete_stage and not row.submit_for_verify
        if registry.all_rules()[rule_id].artifacts & about
    ]
    assert set(late) <= {"OL13", "OL44"}, "but for two that count files, these find faults of frozen files first at the end"
