"""Every example passes its suite in `sim`, through the public command.

Of some operators an ordinary run takes one level; PYPTO_OP_ALL_CASES=1 takes all of them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from pypto_op.documents import suite

from .operators import OPS, SAMPLED, copy_of, everything, original

pytest.importorskip("pypto")


@pytest.mark.sim
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("op", OPS)
def test_an_example_passes_its_suite(op, tmp_path):
    ws = copy_of(op, tmp_path)
    levels = ["--levels", "L1"] if op in SAMPLED and not everything() else []
    before = {path for path in ws.root.rglob("*") if "_debug" not in path.parts}
    run = subprocess.run(
        [sys.executable, "-m", "pypto_op.cli", "verify", str(ws.root), "--modes", "sim", "--json", *levels],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "TILE_FWK_DEVICE_ID": "0"},
        check=False,
    )
    assert run.returncode == 0, run.stdout[-2000:] + run.stderr[-2000:]
    report = json.loads(run.stdout)
    cases = suite.load(original(op).suite).select(levels=levels[1:] or None)
    assert report["status"] == "PASS"
    assert report["cases_passed"] == report["cases_total"] == len(cases)
    assert report["cases_precision"] == sum(case["precision"] for case in cases)
    assert report["modes"]["sim"]["numeric"]
    assert json.loads(ws.report.read_text())["hashes"] == report["hashes"]
    left = {path for path in ws.root.rglob("*") if "_debug" not in path.parts} - before
    assert left == {ws.report}
    assert [path.name for path in tmp_path.iterdir()] == ["custom"]
