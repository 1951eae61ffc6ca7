"""The demo is a test of the whole: hooks, gates, judge and benchmark on a real operator."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from pypto_op.bundle_files import bundle_root
from pypto_op.demo import planted
from pypto_op.demo.story import open_scratch
from pypto_op.errors import ContractError

RMSNORM = bundle_root() / "examples" / "ops" / "rmsnorm"


@pytest.mark.sim
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_demo_refuses_three_times_and_ends_in_a_sealed_pass(tmp_path: Path) -> None:
    out = tmp_path / "demo"
    done = subprocess.run(
        [sys.executable, "-m", "pypto_op.cli", "demo", "--out", str(out)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    op = out / "custom" / "rmsnorm"
    report = json.loads((op / "eval" / "evaluation_report.json").read_text(encoding="utf-8"))
    assert report["status"] == "PASS"
    state = json.loads((op / ".orchestrator_state.json").read_text(encoding="utf-8"))
    assert state["stage_status"]["6"] == "completed"
    perf = json.loads((op / "eval" / "perf_result.json").read_text(encoding="utf-8"))
    assert perf["failed_cases"] == 0 < perf["passed_cases"]
    page = (out / "report.html").read_text(encoding="utf-8")
    assert ">2</b><span>refusals" in page
    assert page.count("<svg") == 2
    # The planted fault drops the ragged tail: the map shows it as such, with the whole tiles before it right.
    assert "Outside the tolerance: rows 16 to 30 (the last is 30), in every column." in page
    assert "No element is outside the tolerance." in page
    assert re.search(r"Begun 20\d\d-\d\d-\d\d", page)
    assert "OL48" in page


@pytest.mark.parametrize("fault", [planted.TILE_FROM_ARGUMENT, planted.DROPPED_TAIL], ids=lambda f: f.what[:20])
def test_planted_faults_still_fit_the_example(fault: planted.Fault) -> None:
    source = (RMSNORM / "rmsnorm_impl.py").read_text(encoding="utf-8")
    assert fault.plant(source) != source


def test_a_fault_that_no_longer_fits_is_told() -> None:
    with pytest.raises(ContractError, match="no longer fits the example"):
        planted.DROPPED_TAIL.plant("another kernel")


def test_demo_does_not_remove_a_folder_that_is_not_its_own(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("precious", encoding="utf-8")
    with pytest.raises(ContractError, match="no earlier demo's"):
        open_scratch(tmp_path, RMSNORM)
    assert (tmp_path / "mine.txt").exists()
