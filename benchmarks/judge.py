"""The judge's speed: cases per second and core on each example, and how time grows with shapes, cases and workers."""

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
        if not quick:
            tables.append(_cases(where, (8, 16, 32, 64)))
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
        seconds, report = _verify(folder, op, cases, jobs=1)
        passed = float(report["cases_passed"])
        rows.append(Row(op, {"cases": passed, "seconds": seconds, "cases/s": passed / seconds}))
    return Table("verify the first precision cases of each example, one worker", "as named", rows)


def _shapes(folder: Path, widths: Sequence[int]) -> Table:
    rows, base = [], next(case for case in _suite(GROWTH)["cases"] if case.get("precision", True))
    for width in widths:
        cases = [{**base, "id": f"w{width}_{i}", "shape": {"T": 64, "H": width}, "seed": i} for i in range(4)]
        seconds, _ = _verify(folder, GROWTH, cases, jobs=1)
        rows.append(Row(f"T=64, H={width}: {64 * width} elements", {"seconds per case": seconds / len(cases)}))
    return Table(f"growth with the shape, {GROWTH}", "s", rows)


def _workers(folder: Path, count: int) -> Table:
    rows, first = [], 0.0
    for jobs in (1, 2):
        seconds, _ = _verify(folder, GROWTH, _many(count), jobs=jobs)
        first = first or seconds
        rows.append(Row(f"{jobs} workers, {count} cases", {"seconds": seconds, "times faster": first / seconds}))
    return Table(f"growth with workers, {GROWTH}", "as named", rows)


def _cases(folder: Path, counts: Sequence[int]) -> Table:
    rows = []
    for count in counts:
        seconds, _ = _verify(folder, GROWTH, _many(count), jobs=2)
        rows.append(Row(f"{count} cases, two workers", {"seconds": seconds, "per case": seconds / count}))
    return Table(f"growth with the number of cases, {GROWTH}", "s", rows)


def _many(count: int) -> list[Mapping[str, Any]]:
    base = next(case for case in _suite(GROWTH)["cases"] if case.get("precision", True))
    return [{**base, "id": f"c{i}", "seed": 100 + i} for i in range(count)]


def _suite(op: str) -> dict[str, Any]:
    path = ROOT / "examples" / "ops" / op / "eval" / "adversarial_suite.json"
    suite: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return suite


def _verify(folder: Path, op: str, cases: Sequence[Mapping[str, Any]], *, jobs: int) -> tuple[float, dict[str, Any]]:
    """Judge `cases` of a copy of an example; return (wall seconds, report). The zygote is warm from the second call on."""
    from pypto_op.backends import sim
    from pypto_op.judge.verify import verify_operator
    from pypto_op.vocabulary import Mode
    from pypto_op.workspace import OpWorkspace

    root = folder / "custom" / op
    if not root.exists():
        shutil.copytree(ROOT / "examples" / "ops" / op, root)
    ws = OpWorkspace.at(root)
    ws.suite.write_text(json.dumps({**_suite(op), "cases": list(cases)}), encoding="utf-8")
    _ = sim.prepare().zygote().namespaces  # waits until it is warm
    begun = time.perf_counter()
    report = verify_operator(ws, modes=[Mode.SIM], jobs=jobs, seed=7)
    return time.perf_counter() - begun, report
