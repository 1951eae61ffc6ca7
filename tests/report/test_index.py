"""`pypto-op report --index`: one row an operator, whatever state its files are in."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from pypto_op.bundle_files import bundle_root
from pypto_op.cli import root as pypto_op
from pypto_op.errors import ContractError
from pypto_op.proof import evidence
from pypto_op.workspace import OpWorkspace

EXAMPLES = bundle_root() / "examples" / "ops"


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Five operators: a PASS, the same after an edit, an unsealed FAIL, a damaged one, and one just begun."""
    monkeypatch.setenv("PYPTO_OP_KEY_FILE", str(tmp_path / "seal.key"))
    base = tmp_path / "kernels" / "custom"
    for op in ("softmax", "rmsnorm", "matmul_bias_gelu", "flash_attention_fwd"):
        shutil.copytree(EXAMPLES / op, base / op)
    for op, status in (("softmax", "PASS"), ("rmsnorm", "PASS"), ("matmul_bias_gelu", "FAIL")):
        ws = OpWorkspace.at(base / op)
        report = _report(ws, status)
        sealed = report if status == "FAIL" else evidence.seal(report)
        ws.report.write_text(json.dumps(sealed), encoding="utf-8")
    impl = base / "rmsnorm" / "rmsnorm_impl.py"
    impl.write_text(impl.read_text(encoding="utf-8") + "# edited\n", encoding="utf-8")
    (base / "flash_attention_fwd" / "eval" / "evaluation_report.json").write_text("{", encoding="utf-8")
    (base / "flash_attention_fwd" / ".orchestrator_state.json").write_text("[]", encoding="utf-8")
    (base / "begun").mkdir()
    (base / "begun" / "SPEC.md").write_text("TODO\n", encoding="utf-8")
    (base / "theme").mkdir()  # somebody else's folder is no operator
    perf = {
        "modes": {"sim": {"status": "timed", "unit": "us"}, "npu": {"status": "SKIPPED", "unit": "us"}},
        "per_shape_results": [{"mode": "sim", "median": m, "label": str(m), "cost": {}} for m in (2.5, 24.0)],
        "hashes": {"impl": evidence.file_hashes(OpWorkspace.at(base / "softmax"))["impl"]},
    }
    (base / "softmax" / "eval" / "perf_result.json").write_text(json.dumps(perf), encoding="utf-8")
    return base.parent


def _report(ws: OpWorkspace, status: str) -> dict:
    policy = {"name": "allclose", "version": 1}
    return {
        "op_name": ws.name, "impl_file": ws.impl.name,
        "status": status, "checks": [], "cases_total": 27, "cases_passed": 27 if status == "PASS" else 3,
        "cases_precision": 3, "per_mode_status": {"sim": status}, "first_failure": {"summary": "wrong"}, "up_to_module": 1,
        "total_modules": 1, "selection": {"complete": True}, "created": "2026-11-22T10:00:00+00:00", "seconds": 3.0,
        "hashes": {**evidence.file_hashes(ws), "policy": evidence.policy_hash(policy)}, "policy": policy,
        "closure": dict.fromkeys(("candidate", "golden", "inputs"), {}), "versions": {}, "modes": {},
        "tool": {"name": "pypto-op", "version": "0"},
    }  # fmt: skip


def test_each_operator_has_a_row_that_says_how_far_it_counts(workspace: Path) -> None:
    done = CliRunner().invoke(pypto_op, ["report", "--index", str(workspace), "--json"], standalone_mode=False)
    assert done.exception is None, done.exception
    rows = {row["op"]: row for row in json.loads(done.stdout)["operators"]}
    assert list(rows) == ["begun", "flash_attention_fwd", "matmul_bias_gelu", "rmsnorm", "softmax"]
    assert (rows["softmax"]["verdict"], rows["softmax"]["badge"], rows["softmax"]["cases"]) == ("PASS", "PASS", "27 / 27")
    assert rows["softmax"]["speed"] == "2.5 to 24 us"
    assert rows["rmsnorm"]["badge"] == "STALE"
    assert "impl changed since" in rows["rmsnorm"]["remark"]
    assert rows["matmul_bias_gelu"]["badge"] == "STALE"
    assert "not sealed" in rows["matmul_bias_gelu"]["remark"]
    assert "evaluation_report.json is not valid JSON" in rows["flash_attention_fwd"]["remark"]
    assert rows["flash_attention_fwd"]["stage"] == "unknown"
    assert (rows["begun"]["verdict"], rows["begun"]["stage"], rows["begun"]["page"]) == ("none yet", "not started", "")


def test_links_lead_to_pages_that_are_there(workspace: Path) -> None:
    CliRunner().invoke(pypto_op, ["report", "--index", str(workspace)], standalone_mode=False, catch_exceptions=False)
    index = workspace / "custom" / "index.html"
    links = re.findall(r'href="([^"]+)"', index.read_text(encoding="utf-8"))
    assert "softmax/eval/report.html" in links
    assert all((index.parent / link).is_file() for link in links)


@pytest.mark.parametrize("words", [["report"], ["report", "OP", "--index", "WS"]])
def test_one_of_the_two_must_be_named(words: list[str]) -> None:
    done = CliRunner().invoke(pypto_op, words, standalone_mode=False)
    assert isinstance(done.exception, ContractError)
    assert "--index WORKSPACE" in done.exception.one_line()


def test_a_folder_without_operators_and_a_file_of_the_user_are_refused(workspace: Path, tmp_path: Path) -> None:
    done = CliRunner().invoke(pypto_op, ["report", "--index", str(tmp_path / "nowhere")], standalone_mode=False)
    assert "holds no operator" in str(done.exception)
    mine = workspace / "custom" / "index.html"
    mine.write_text("<html>mine</html>", encoding="utf-8")
    done = CliRunner().invoke(pypto_op, ["report", "--index", str(workspace)], standalone_mode=False)
    assert isinstance(done.exception, ContractError)
    assert mine.read_text(encoding="utf-8") == "<html>mine</html>"
