"""From nothing to PASS: `check` ends with the command that comes next, whatever is there."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from pypto_op.documents.way import next_step
from pypto_op.hashing import sha256_file
from pypto_op.workspace import OpWorkspace

EXAMPLE = Path(__file__).parents[2] / "examples" / "ops" / "rmsnorm"


@pytest.fixture
def ws(tmp_path: Path) -> OpWorkspace:
    root = tmp_path / "custom" / "rmsnorm"
    shutil.copytree(EXAMPLE, root, ignore=shutil.ignore_patterns("_debug", "evaluation_report.json", "__pycache__"))
    return OpWorkspace.at(root)


def test_each_missing_file_names_the_command_that_makes_it(ws: OpWorkspace) -> None:
    assert "pypto-op verify" in next_step(ws)
    for missing, words in (
        (ws.impl, "write the kernel"),
        (ws.suite, "pypto-op harness new"),
        (ws.interfaces, "pypto-op interfaces new"),
        (ws.golden, "write the formula"),
        (ws.spec, "SPEC.md"),
    ):
        missing.unlink()
        assert words in next_step(ws), missing


def test_a_verdict_counts_for_its_bytes_only(ws: OpWorkspace) -> None:
    ws.report.write_text(json.dumps({"status": "PASS", "hashes": {"impl": sha256_file(ws.impl)}}))
    assert next_step(ws).startswith("run `pypto-op benchmark ") and next_step(ws).endswith("its verdict is PASS")
    ws.impl.write_text(ws.impl.read_text() + "\n")
    assert "changed since its verdict" in next_step(ws)


@pytest.mark.parametrize("text", ["", "[]", '{"status": 1}', "{"])
def test_a_damaged_report_leads_to_verify(ws: OpWorkspace, text: str) -> None:
    ws.report.write_text(text)
    assert "pypto-op verify" in next_step(ws)


def test_a_new_operator_has_a_golden_that_says_what_is_left(run, tmp_path: Path) -> None:
    code, out, _ = run("new", "relu", "--into", tmp_path, "--dtype", "float32", "--p0", "T=8,H=16")
    root = tmp_path / "custom" / "relu"
    assert code == 0 and "relu_golden.py" in out and out.splitlines()[-1].startswith("next: fill in")
    code, out, _ = run("check", root)
    assert code == 1 and "relu_golden.py: line 6: a TODO was left" in out
    assert out.splitlines()[-1].startswith("next: mend SPEC.md")
