"""Verification of rmsnorm in sim: a cold machine, a cached calculator, a warm worker; fifty cases in one call."""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.table import Row, Table

_OPERATOR = "rmsnorm"
_CASE = "L2_two_tiles_fp32"
_CASES = 50


def run(quick: bool) -> list[Table]:
    """Measure; every figure of a table is from the same run."""
    from pypto_op.bundle_files import bundle_root

    with tempfile.TemporaryDirectory() as folder:
        op = Path(folder) / "custom" / _OPERATOR
        shutil.copytree(bundle_root() / "examples" / "ops" / _OPERATOR, op)
        cold = _verify(op, "--case", _CASE, cache=Path(folder) / "empty")[0]
        cached = statistics.median(_verify(op, "--case", _CASE)[0] for _ in range(1 if quick else 3))
        warm = _warm_case(op, 3 if quick else 10)
        _grow_suite(op)
        many, report = _verify(op)
    peak = max(r["peak_rss_mb"] for check in report["checks"] for r in check["modes"].values())
    first = Table(
        "verify rmsnorm in sim",
        "s",
        [
            Row("one case, nothing cached (what every process would pay without the cache)", {"wall": cold}),
            Row("one case, calculator cached", {"wall": cached}),
            Row("one more trial in a warm worker", {"wall": warm}),
            Row(f"{_CASES} cases in one call, per case (two trials each)", {"wall": many / _CASES}, 1.0, "wall"),
        ],
        [
            "nothing cached: pypto's calculator and our own native helpers are built",
            f"all {report['cases_passed']} of {report['cases_total']} cases pass; load {os.getloadavg()[0]:.1f}",
        ],
    )
    ratio = Table("what the cache gives", "times", [Row("uncached / cached", {"ratio": cold / cached}, 5.0, "ratio", True)])
    memory = Table("memory of a worker", "MB", [Row("peak resident memory of a candidate's process group", {"peak": peak})])
    return [first, ratio, memory]


def _verify(op: Path, *words: str, cache: Path | None = None) -> tuple[float, dict[str, Any]]:
    """Return (wall seconds, report) of one `pypto-op verify` process."""
    environment = dict(os.environ)
    if cache is not None:
        environment["PYPTO_OP_CACHE"] = str(cache)
    begun = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "pypto_op.cli", "verify", str(op), "--modes", "sim", "--json", *words],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    return time.perf_counter() - begun, json.loads(done.stdout)


def _warm_case(op: Path, rounds: int) -> float:
    """Return the median seconds of one trial in a session that has already run one."""
    from pypto_op.backends.reference import ReferenceSession
    from pypto_op.backends.registry import get_backend
    from pypto_op.documents import suite
    from pypto_op.vocabulary import Mode
    from pypto_op.workspace import OpWorkspace

    ws = OpWorkspace.at(op)
    case = next(c for c in suite.load(ws.suite).cases if c["id"] == _CASE)
    with ReferenceSession(ws) as reference:
        inputs = [value for _, value in reference.make_inputs(dict(case))]
    times = []
    with get_backend(Mode.SIM).open(ws.impl, ws.wrapper_name(), ws) as session:
        session.run(_CASE, inputs)
        for _ in range(rounds):
            begun = time.perf_counter()
            session.run(_CASE, inputs)
            times.append(time.perf_counter() - begun)
    return statistics.median(times)


def _grow_suite(op: Path) -> None:
    """Repeat the ordinary cases with other seeds until there are enough."""
    path = op / "eval" / "adversarial_suite.json"
    data = json.loads(path.read_text(encoding="utf-8"))
    cases = [c for c in data["cases"] if c["level"] in ("L2", "L3", 2, 3)]
    data["cases"] = [
        {**cases[i % len(cases)], "id": f"{cases[i % len(cases)]['id']}_{i}", "seed": 1000 + i} for i in range(_CASES)
    ]
    path.write_text(json.dumps(data), encoding="utf-8")
