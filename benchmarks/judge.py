"""The judge's speed: what a case and a suite cost on each example, and how that grows with shapes, cases and workers.

Processor seconds are those of judge, references and candidates together; they hardly depend on what else runs.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.table import Row, Table

ROOT = Path(__file__).resolve().parents[1]
GROWTH = "rmsnorm"


def run(quick: bool) -> list[Table]:
    """Measure; `quick`: fewer cases, and no growth with cases."""
    with tempfile.TemporaryDirectory() as folder:
        where = Path(folder)
        tables = [_examples(where, 4 if quick else 12), _shapes(where, (64, 256) if quick else (64, 256, 1024, 4096))]
        tables.append(_workers(where, 8 if quick else 32))
        tables.append(_cases(where, (4, 8) if quick else (8, 16, 32, 64)))
        tables.append(_harness(where, (GROWTH,) if quick else (GROWTH, "matmul_bias_gelu")))
    for table in tables:
        load = f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
        table.notes.append(f"{load}; each case: two seeds, then one run without the kernel")
    return tables


def _examples(folder: Path, most: int) -> Table:
    """Cases per second and core: one worker, so one candidate and one reference take turns on one core."""
    rows = []
    for impl in sorted((ROOT / "examples" / "ops").glob("*/*_impl.py")):
        op = impl.parent.name
        cases = [case for case in _suite(op)["cases"] if case.get("precision", True)][:most]
        seconds, spent, report = _verify(folder, op, cases, jobs=1)
        passed = float(report["cases_passed"])
        rows.append(Row(op, {"cases": passed, "seconds": seconds, "cpu": spent, "cpu per case": spent / passed}))
    return Table("verify the first precision cases of each example, one worker", "as named", rows)


def _shapes(folder: Path, widths: Sequence[int]) -> Table:
    rows, base = [], next(case for case in _suite(GROWTH)["cases"] if case.get("precision", True))
    for width in widths:
        cases = [{**base, "id": f"w{width}_{i}", "shape": {"T": 64, "H": width}, "seed": i} for i in range(4)]
        seconds, spent, _ = _verify(folder, GROWTH, cases, jobs=1)
        each = {"seconds per case": seconds / len(cases), "cpu per case": spent / len(cases)}
        rows.append(Row(f"T=64, H={width}: {64 * width} elements", each))
    return Table(f"growth with the shape, {GROWTH}", "s", rows)


def _workers(folder: Path, count: int) -> Table:
    rows, first = [], 0.0
    for jobs in (1, 2):
        seconds, _, _ = _verify(folder, GROWTH, _many(count), jobs=jobs)
        first = first or seconds
        rows.append(Row(f"{jobs} workers, {count} cases", {"seconds": seconds, "times faster": first / seconds}))
    return Table(f"growth with workers, {GROWTH}", "as named", rows)


def _cases(folder: Path, counts: Sequence[int]) -> Table:
    rows = []
    for count in counts:
        seconds, spent, _ = _verify(folder, GROWTH, _many(count), jobs=2)
        rows.append(Row(f"{count} cases, two workers", {"seconds": seconds, "cpu": spent, "cpu per case": spent / count}))
    return Table(f"growth with the number of cases, {GROWTH}", "s", rows)


def _harness(folder: Path, ops: Sequence[str]) -> Table:
    """What the generator of a suite costs, and how that grows with its cases."""
    from pypto_op.backends.launcher import cpu_seconds
    from pypto_op.generators.evaluation import new_harness
    from pypto_op.workspace import OpWorkspace

    rows = []
    for op in ops:
        root = folder / "harness" / op
        shutil.copytree(ROOT / "examples" / "ops" / op, root)
        before, begun = cpu_seconds(), time.perf_counter()
        new_harness(OpWorkspace.at(root), force=True)
        spent, seconds = cpu_seconds() - before, time.perf_counter() - begun
        suite = json.loads(OpWorkspace.at(root).suite.read_text(encoding="utf-8"))
        count = len(suite["cases"])
        rows.append(Row(f"{op}, {count} cases", {"seconds": seconds, "cpu": spent, "cpu per case": spent / count}))
    return Table("harness new, in a process that is warm", "s", rows)


def _many(count: int) -> list[Mapping[str, Any]]:
    base = next(case for case in _suite(GROWTH)["cases"] if case.get("precision", True))
    return [{**base, "id": f"c{i}", "seed": 100 + i} for i in range(count)]


def _suite(op: str) -> dict[str, Any]:
    path = ROOT / "examples" / "ops" / op / "eval" / "adversarial_suite.json"
    suite: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return suite


def _verify(folder: Path, op: str, cases: Sequence[Mapping[str, Any]], *, jobs: int) -> tuple[float, float, dict[str, Any]]:
    """Judge `cases` of a copy of an example; return (wall seconds, processor seconds, report). The zygote is warm."""
    from pypto_op.backends import sim
    from pypto_op.backends.launcher import cpu_seconds
    from pypto_op.judge.cases.request import Request
    from pypto_op.judge.verify import verify_operator
    from pypto_op.vocabulary import Mode
    from pypto_op.workspace import OpWorkspace

    root = folder / "custom" / op
    if not root.exists():
        shutil.copytree(ROOT / "examples" / "ops" / op, root)
    ws = OpWorkspace.at(root)
    ws.suite.write_text(json.dumps({**_suite(op), "cases": list(cases)}), encoding="utf-8")
    _ = sim.prepare().zygote().namespaces  # waits until it is warm
    begun, before = time.perf_counter(), cpu_seconds()
    report = verify_operator(ws, Request(modes=[Mode.SIM], jobs=jobs, seed=7))
    return time.perf_counter() - begun, cpu_seconds() - before, report
