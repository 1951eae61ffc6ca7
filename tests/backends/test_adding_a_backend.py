"""docs/adding-a-backend.md, followed to the letter in a copy of the bundle: the third back end judges, times and reports."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.following import follow

from pypto_op.proof.key import KEY_ENV

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/adding-a-backend.md"
PARTS = ["scripts", "lint", "schemas", "tests/judge", "tests/schemas", "tests/fixtures/ops", "tests/fixtures/bad_candidates"]
FILES = [f"tests/{path.name}" for path in sorted((ROOT / "tests").glob("*.py")) if not path.name.startswith("test_")]


class Copy:
    """A copy of the bundle, and its commands in a workspace."""

    def __init__(self, root: Path, workspace: Path) -> None:
        self.root, self.workspace = root, workspace
        for part in PARTS:
            ignored = shutil.ignore_patterns("_debug", ".pytest_cache", "evaluation_report.json")
            shutil.copytree(ROOT / part, root / part, ignore=ignored, symlinks=True)
        for name in FILES:
            shutil.copy(ROOT / name, root / name)
        for name in ("pyproject.toml", "docs", ".agents", ".claude-plugin", "skills", "hooks", "commands"):
            (root / name).symlink_to(ROOT / name)

    def run(self, *words: str, where: Path | None = None) -> subprocess.CompletedProcess[str]:
        paths = os.pathsep.join(str(self.root / part) for part in ("scripts", "lint"))
        return subprocess.run(
            [sys.executable, "-m", *words],
            cwd=where or self.workspace,
            env={**os.environ, "PYTHONPATH": paths, KEY_ENV: str(self.workspace / "key"), "PYPTO_OP_ALL_CASES": "1"},
            capture_output=True,
            text=True,
            check=False,
        )

    def place(self, name: str) -> Path:
        op = self.workspace / "custom" / name
        shutil.copytree(self.root / "tests/fixtures/ops" / name, op)
        return op


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Copy:
    made = Copy(tmp_path_factory.mktemp("bundle"), tmp_path_factory.mktemp("workspace"))
    follow(PAGE, made.root)
    return made


@pytest.fixture(scope="module")
def judged(copy: Copy) -> Path:
    """An operator with a verdict of all three modes."""
    op = copy.place("sum_diff")
    answer = copy.run("pypto_op.cli", "verify", str(op), "--json")
    assert answer.returncode == 0, answer.stderr
    report = json.loads(answer.stdout)
    assert report["per_mode_status"] == {"sim": "PASS", "npu": "SKIPPED", "second": "PASS"}
    assert {check["modes"]["second"]["status"] for check in report["checks"]} == {"PASS"}
    return op


@pytest.mark.slow
def test_the_schemas_name_it(copy: Copy) -> None:
    done = copy.run("pytest", "-p", "no:xdist", "tests/schemas", "-k", "vocabulary or doctor", where=copy.root)
    assert done.returncode == 0, done.stdout


@pytest.mark.slow
def test_the_doctor_has_a_line_for_it(copy: Copy) -> None:
    answer = copy.run("pypto_op.cli", "doctor", "--json")
    document = json.loads(answer.stdout)
    assert document["second"]["numeric"] == document["sim"]["numeric"]
    assert "second" in [finding["name"] for finding in document["findings"]]


def test_an_unknown_mode_is_refused_with_every_word(copy: Copy) -> None:
    answer = copy.run("pypto_op.cli", "verify", str(copy.workspace), "--modes", "third")
    assert answer.returncode == 2
    assert "sim,npu,second" in answer.stderr


@pytest.mark.sim
@pytest.mark.slow
class TestJudging:
    def test_times_and_pages_show_it(self, copy: Copy, judged: Path) -> None:
        timed = copy.run("pypto_op.cli", "benchmark", str(judged), "--modes", "sim,second", "--json")
        assert timed.returncode == 0, timed.stderr
        result = json.loads(timed.stdout)
        assert {row["mode"] for row in result["per_shape_results"] if row["median"]} == {"sim", "second"}
        assert result["modes"]["second"]["method"] == "cost_model"
        made = copy.run("pypto_op.cli", "report", str(judged))
        assert made.returncode == 0, made.stderr
        page = next(judged.rglob("*.html")).read_text()
        assert 'data-name="Mode">second' in page
        index = copy.run("pypto_op.cli", "report", "--index", str(copy.workspace))
        assert index.returncode == 0, index.stderr

    def test_a_wrong_kernel_fails_in_both(self, copy: Copy, judged: Path, tmp_path: Path) -> None:
        wrong = tmp_path / "sum_diff_impl.py"
        text = (judged / "sum_diff_impl.py").read_text()
        assert "x_tile - y_tile" in text
        wrong.write_text(text.replace("x_tile - y_tile", "x_tile + y_tile"))
        answer = copy.run(
            "pypto_op.cli", "verify", str(judged), "--impl", str(wrong), "--report", str(tmp_path / "r.json"), "--json"
        )
        assert answer.returncode == 1, answer.stderr
        report = json.loads(answer.stdout)
        assert report["per_mode_status"] == {"sim": "FAIL", "npu": "SKIPPED", "second": "FAIL"}
        assert report["first_failure"]["divergence_fingerprint"] == "all_fail"

    def test_the_table_of_bad_candidates_runs_on_it(self, copy: Copy) -> None:
        rows = "correct-kernel or os-_exit-0-in-the-wrapper or missing-file"
        done = copy.run(
            "pytest", "-p", "no:xdist", "tests/judge/test_bad_inputs.py", "-k", f"second and ({rows})", where=copy.root
        )
        assert done.returncode == 0, done.stdout
        assert "3 passed" in done.stdout and "skipped" not in done.stdout
