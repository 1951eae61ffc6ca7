"""How the suites that `harness new` makes judge operators that nobody tuned it for: tests/fixtures/fresh.

Each operator there was written from its request alone, before any suite of it existed: documents, golden, a right kernel,
honest rewrites and wrong variants. `python -m benchmarks fresh [OP ...]` makes a workspace of documents and golden, lets
`pypto-op harness new` write the suite, and judges every kernel with that suite as it is, by `pypto-op verify` in `sim`.
The result is benchmarks/results/fresh.json; docs/strength.md shows it.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import click

from benchmarks import process, strength
from benchmarks.fresh_kernels import FIXTURES, Kernel, digest, kernels, operators
from benchmarks.fresh_results import FIRST_LEVEL, counts, load, store
from benchmarks.table import Row, Table

ROOT = Path(__file__).resolve().parents[1]
TARGET = 0.95
"""Share of the wrong variants that the untouched suites must refuse."""

WORKERS = len(os.sched_getaffinity(0))
"""So many kernels are judged side by side, each by one process."""
SUITE_FILES = ("adversarial_suite.json", "test_inputs.py")
_DOCUMENTS = ("SPEC.md", "DESIGN.md", "{op}_golden.py", "eval/module_interfaces.yaml")


def run(quick: bool, ops: Sequence[str] = ()) -> list[Table]:
    """Measure the named operators, or those whose fixtures changed; `quick`: the right kernels only, and nothing is kept.

    Raises:
        click.UsageError: an operator has no fixtures.
    """
    unknown = set(ops) - set(operators())
    if unknown:
        raise click.UsageError(f"no operator {', '.join(sorted(unknown))}; tests/fixtures/fresh has {', '.join(operators())}")
    results = load()
    for op in ops or [op for op in operators() if results.get(op, {}).get("fixtures") != digest(op)]:
        chosen = [kernel for kernel in kernels(op) if kernel.kind == "right" or not quick]
        with tempfile.TemporaryDirectory() as folder:
            measured = measure(op, Path(folder), chosen, known=results.get(op, {}))
        results = {**load(), op: measured}
        if not quick:
            store(results)
    if not quick:
        strength.write_page(strength.load())
    return [_table(results)]


def workspace(op: str, folder: Path) -> Path:
    """Put documents and golden of an operator under `folder`, not its kernels; return the operator's directory."""
    root = folder / "custom" / op
    for name in _DOCUMENTS:
        path = Path(name.format(op=op))
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(FIXTURES / op / path, root / path)
    return root


def measure(op: str, folder: Path, chosen: Sequence[Kernel], known: dict[str, Any]) -> dict[str, Any]:
    """Make the suite of an operator and judge kernels with it.

    Args:
        op: the operator.
        folder: an empty directory.
        chosen: the kernels.
        known: an earlier result; a verdict in it stands where suite, inputs, golden and kernel are the same bytes. An ERROR is
            none: somebody may have interrupted it.

    Returns:
        What is kept of an operator in fresh.json. Without a suite, `kernels` is empty and `harness` says why.
    """
    root = workspace(op, folder)
    made = process.run([*COMMAND, "harness", "new", str(root)], cwd=folder)
    suite = root / "eval" / SUITE_FILES[0]
    result: dict[str, Any] = {"fixtures": digest(op), "harness": {**made.spent(), "exit": made.code}, "kernels": []}
    if made.code != 0:
        result["harness"]["said"] = made.last_lines(8)
    if not suite.is_file():
        return result
    result["harness"]["cases"] = len(json.loads(suite.read_text(encoding="utf-8"))["cases"])
    result["suite"] = process.digest_of(*(root / "eval" / name for name in SUITE_FILES), root / f"{op}_golden.py")
    same = result["suite"] == known.get("suite")
    earlier = {old["digest"]: old for old in known.get("kernels", ()) if same and old["status"] != "ERROR"}
    with ThreadPoolExecutor(WORKERS) as pool:
        result["kernels"] = list(pool.map(lambda kernel: earlier.get(kernel.digest) or _told(judged(op, root, kernel)), chosen))
    return result


def judged(op: str, made: Path, kernel: Kernel) -> dict[str, Any]:
    """Judge one kernel with the suite in `made`; return its verdict, the case that refused it first, and what it cost."""
    spent: dict[str, float] = {}
    report: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "custom" / op
        shutil.copytree(made, root)
        (root / f"{op}_impl.py").write_text(kernel.text, encoding="utf-8")
        for part in ([] if kernel.must_pass else [["--levels", FIRST_LEVEL]]) + [[]]:
            command = [*COMMAND, "verify", "--modes", "sim", "--jobs", "1", "--quiet", *part, str(root)]
            done = process.run(command, cwd=Path(folder))
            spent = {name: round(spent.get(name, 0.0) + value, 1) for name, value in done.spent().items()}
            report = report_of(root, done)
            if report["status"] == "FAIL":
                break
    return {"kind": kernel.kind, "id": kernel.id, "why": kernel.why, "digest": kernel.digest, **verdict(report), **spent}


def verdict(report: dict[str, Any]) -> dict[str, Any]:
    """Return what the page says of a report: status, cases, and which case refused the kernel first, why."""
    failed = [check["id"] for check in report["checks"] if check["status"] == "FAIL"]
    first = report["first_failure"] or {}
    return {
        "status": report["status"],
        "cases": len(report["checks"]),
        "refused_by": first.get("case_id"),
        "category": first.get("failure_category"),
        "said": first.get("summary") or (report["error"] or {}).get("message"),
        "failed": failed,
    }


def report_of(root: Path, done: process.Done) -> dict[str, Any]:
    """Return the report that a verdict left, or what stands for one that left none."""
    path = root / "eval" / "evaluation_report.json"
    if path.is_file():
        return json.loads(path.read_text(encoding="utf-8"))
    return {"status": "ERROR", "checks": [], "first_failure": None, "error": {"message": done.last_lines(3)}}


def _told(row: dict[str, Any]) -> dict[str, Any]:
    by = f", refused by {row['refused_by']}" if row["refused_by"] else ""
    click.echo(f"{row['kind']} {row['id']}: {row['status']}{by}; {row['cpu_seconds']:.0f} s of processor time", err=True)
    return row


def _table(results: dict[str, Any]) -> Table:
    rows = []
    for op, found in sorted(results.items()):
        figures = {name: float(count) for name, count in counts(found).items()}
        figures["refused %"] = 100.0 * figures["refused"] / max(figures["wrong"], 1.0)
        rows.append(Row(op, figures, 100.0 * TARGET, "refused %", True))
    return Table("operators that nobody tuned the suite for", "kernels", rows, ["each suite as harness new wrote it"])


COMMAND = (sys.executable, "-m", "pypto_op.cli")
