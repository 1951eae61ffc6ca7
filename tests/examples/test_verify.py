"""Every example passes its whole suite in `sim`, through the public command."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from pypto_op.documents import suite

from .operators import OPS, copy_of, original

pytest.importorskip("pypto")


@pytest.mark.sim
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("op", OPS)
def test_an_example_passes_its_suite(op, tmp_path):
    ws = copy_of(op, tmp_path)
    before = {path for path in ws.root.rglob("*") if "_debug" not in path.parts}
    run = subprocess.run(
        [sys.executable, "-m", "pypto_op.cli", "verify", str(ws.root), "--modes", "sim", "--json"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "TILE_FWK_DEVICE_ID": "0"},
        check=False,
    )
    assert run.returncode == 0, run.stdout[-2000:] + run.stderr[-2000:]
    report = json.loads(run.stdout)
    cases = suite.load(original(op).suite).cases
    assert report["status"] == "PASS"
    assert report["cases_passed"] == report["cases_total"] == len(cases)
    assert report["cases_precision"] == sum(case["precision"] for case in cases)
    assert report["modes"]["sim"]["numeric"]
    assert json.loads(ws.report.read_text())["hashes"] == report["hashes"]
    left = {path for path in ws.root.rglob("*") if "_debug" not in path.parts} - before
    assert left == {ws.report}
    assert [path.name for path in tmp_path.iterdir()] == ["custom"]
