"""A document, a golden or inputs that are broken end in exit 2 with the file's name, and are not the candidate's fault."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pypto_op.workspace import OpWorkspace

from .judging import CASES, place, verify

pytestmark = [pytest.mark.sim, pytest.mark.usefixtures("numeric")]


@pytest.mark.parametrize("file", ["SPEC.md", "eval/module_interfaces.yaml", "eval/adversarial_suite.json"])
def test_a_broken_document_replaces_an_earlier_pass(operator: OpWorkspace, file: str) -> None:
    operator.report.write_text('{"status": "PASS"}')
    (operator.root / file).write_text("{{{{ nothing\n")
    answer = verify(operator.root)
    assert (answer.code, answer.report["status"], answer.report["error"]["kind"]) == (2, "ERROR", "contract")
    assert Path(file).name in answer.report["error"]["message"]
    assert answer.stdout == operator.report.read_text()


@pytest.mark.parametrize("file", ["SPEC.md", "eval/module_interfaces.yaml", "eval/adversarial_suite.json"])
def test_a_document_of_another_operator_is_no_failure_of_the_kernel(operator: OpWorkspace, file: str) -> None:
    """A copied suite or contract asks the kernel for inputs that it never promised to take."""
    path = operator.root / file
    path.write_text(re.sub(rf"(op(?:_name)?\"?: \"?){operator.name}\b", r"\1rmsnorm", path.read_text()))
    answer = verify(operator.root)
    assert (answer.code, answer.report["status"], answer.report["error"]["kind"]) == (2, "ERROR", "contract")
    message = answer.report["error"]["message"]
    assert path.name in message and f"'rmsnorm' is not the name of the directory, '{operator.name}'; name the folder" in message


@pytest.mark.parametrize("file", ["SPEC.md", "eval/adversarial_suite.json"])
def test_a_link_that_leads_nowhere_is_no_document_that_was_left_out(operator: OpWorkspace, file: str) -> None:
    """Without a suite the judge derives one; a suite that is lost must not be replaced by it."""
    path = operator.root / file
    path.unlink(missing_ok=True)
    path.symlink_to("no/such/file")
    answer = verify(operator.root)
    assert answer.code == 2 and "its link leads to no file" in answer.report["error"]["message"]


GOLDENS = {
    "raises": ("def sum_diff_golden(x, y):\n    raise ValueError(float(x[0, 0]))\n", "exception, sum_diff_golden.py:2"),
    "changes its input": (
        "def sum_diff_golden(x, y):\n    return x.sub_(y), y\n",
        "its own inputs; let it copy them first",
    ),
    "exits": ("import os\ndef sum_diff_golden(x, y):\n    os._exit(0)\n", "it ended with: exited"),
    "returns nothing": ("def sum_diff_golden(x, y):\n    return None\n", "it must return a tensor, or a tuple of tensors"),
    "returns a dict": ("def sum_diff_golden(x, y):\n    return {'sum': x}\n", "it returned dict; it must return a tensor"),
    "returns a number": ("def sum_diff_golden(x, y):\n    return float(x.sum())\n", "it returned float; it must return a tensor"),
    "returns an array": ("def sum_diff_golden(x, y):\n    return x.numpy()\n", "it returned ndarray; it must return a tensor"),
    "defines nothing": ("import torch\n", "its file defines no function of that name"),
}


@pytest.mark.parametrize("how", sorted(GOLDENS))
def test_a_broken_golden_is_not_the_candidates_fault(operator: OpWorkspace, how: str) -> None:
    source, told = GOLDENS[how]
    operator.golden.write_text(source)
    answer = verify(operator.root)
    assert (answer.code, answer.report["status"], answer.report["error"]["kind"]) == (2, "ERROR", "contract")
    assert answer.report["first_failure"]["reason"] == "golden_failed"
    message = answer.report["error"]["message"]
    assert message.startswith("sum_diff_golden.py: case ") and told in message


UNREADABLE = {
    "syntax": (b"\ndef f(x, y:\n", "line 2: not valid Python"),
    "Latin-1": (b"# na\xefve\n", "byte 4: not UTF-8; save it as UTF-8"),
    "Latin-1, declared": (b"# coding: latin-1\n# na\xefve\n", "byte 22: not UTF-8; save it as UTF-8"),
    "UTF-16": ("x = 1\n".encode("utf-16"), "not UTF-8; save it as UTF-8"),
    "NUL": (b"# na\0ve\n", "holds NUL bytes; save it as plain text"),
}


@pytest.mark.parametrize("how", sorted(UNREADABLE))
@pytest.mark.parametrize("file", ["sum_diff_golden.py", "eval/test_inputs.py"])
def test_a_golden_or_inputs_that_nobody_can_read_are_told_with_place_and_remedy(
    operator: OpWorkspace, file: str, how: str
) -> None:
    source, told = UNREADABLE[how]
    (operator.root / file).write_bytes(source)
    answer = verify(operator.root)
    assert (answer.code, answer.report["status"], answer.report["error"]["kind"]) == (2, "ERROR", "contract")
    message = answer.report["error"]["message"]
    assert f"{file}: " in message and told in message and message.count("; ") >= 1, message


def test_a_golden_with_a_byte_order_mark_is_read(operator: OpWorkspace) -> None:
    operator.golden.write_bytes(b"\xef\xbb\xbf" + operator.golden.read_bytes())
    assert verify(operator.root, "--case", str(CASES[0]["id"])).code == 0


@pytest.mark.parametrize(
    "source", ["raise ValueError\n", "def make_inputs(case):\n    raise ValueError\n", "import os; os._exit(0)\n"]
)
def test_broken_inputs_are_not_the_candidates_fault(operator: OpWorkspace, source: str) -> None:
    operator.test_inputs.write_text(source)
    answer = verify(operator.root)
    assert (answer.code, answer.report["status"], answer.report["error"]["kind"]) == (2, "ERROR", "contract")


def test_a_suite_without_numbers_is_no_pass(tmp_path: Path) -> None:
    ws = place("sum_diff", tmp_path, cases=[{**CASES[0], "precision": False}])
    answer = verify(ws.root)
    assert (answer.code, answer.report["status"]) == (2, "ERROR")
    assert "compares numbers" in answer.report["error"]["message"]
