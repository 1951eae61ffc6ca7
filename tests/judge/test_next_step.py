"""The command after a failed verdict may be typed as it stands, wherever report and kernel lie."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pypto_op.errors import ContractError
from pypto_op.judge.reporting.next_step import after_failure
from pypto_op.workspace import OpWorkspace

FAILURE = {"case_id": "tile", "reason": "values", "failure_category": "precision", "mode": "sim"}


def report(impl: str, **failure: Any) -> dict[str, Any]:
    numbers = {"up_to_module": 1, "total_modules": 1, "status": "FAIL", "op_name": "add"}
    return {**numbers, "impl_file": impl, "first_failure": {**FAILURE, **failure}}


@pytest.fixture
def ws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> OpWorkspace:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "custom/add").mkdir(parents=True)
    return OpWorkspace.at("custom/add")


def test_a_report_elsewhere_and_a_kernel_of_another_name_are_told(ws: OpWorkspace) -> None:
    elsewhere = Path("/tmp/r.json")
    own = "pypto-op debug precision-compare custom/add --case tile  (which"
    assert after_failure(report("add_impl.py"), elsewhere, ws).startswith(own)
    other = "pypto-op debug precision-compare custom/add --case tile --impl custom/add/other_impl.py  (which"
    assert after_failure(report("other_impl.py"), elsewhere, ws).startswith(other)
    away = after_failure(report("/srv/it's.py", cpu_reproducer_candidate=True), elsewhere, ws)
    assert away.startswith("""pypto-op reproduce custom/add --case tile --impl '/srv/it'"'"'s.py'  (is""")
    known = after_failure(report("/srv/k.py", failure_category="aicore"), elsewhere, ws)
    assert known.startswith("pypto-op diagnose --log /tmp/r.json --kernel /srv/k.py  (is")


@pytest.mark.parametrize(
    ("said", "next_words"),
    [
        ("NameError: name 'topp' is not defined", "pypto-op verify custom/add  (once add_impl.py:24 is mended"),
        ("UnboundLocalError: cannot access local variable 'y'", "pypto-op verify custom/add  (once add_impl.py:24 is mended"),
        ("RuntimeError: NameError was said", "pypto-op diagnose --log /tmp/r.json --kernel custom/add/add_impl.py"),
    ],
)
def test_a_name_that_nobody_defined_needs_no_search(ws: OpWorkspace, said: str, next_words: str) -> None:
    """verify -> diagnose -> triage was the way to the line that stood in the verdict."""
    failed = report("add_impl.py", failure_category="runtime", summary=f"sim: the wrapper raised: add_impl.py:24: {said}")
    assert after_failure(failed, Path("/tmp/r.json"), ws).startswith(next_words)


def test_a_file_below_the_current_folder_is_told_as_it_may_be_typed(ws: OpWorkspace) -> None:
    problem = ContractError("is missing", file=ws.impl, where="line 3", remedy="write it")
    assert problem.told() == "custom/add/add_impl.py: line 3: is missing; write it"
    assert problem.one_line() == f"{ws.impl}: line 3: is missing; write it"
    assert ContractError("is missing", file="/srv/k.py").told() == "/srv/k.py: is missing"
    assert ContractError("is missing").told() == "is missing"
