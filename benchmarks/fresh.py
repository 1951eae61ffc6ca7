"""How the suites that `harness new` makes judge operators that nobody tuned it for: tests/fixtures/fresh.

Each operator there was written from its request alone, before any suite of it existed: documents, golden, a right kernel,
honest rewrites and wrong variants. `python -m benchmarks fresh [OP ...]` makes a workspace of documents and golden, lets
`pypto-op harness new` write the suite, and judges every kernel with that suite as it is, by `pypto-op verify` in `sim`.
`OP:right,honest` or `OP:KERNEL` judges these kernels only; verdicts of the others stay, with the commit that they are of.
The result is benchmarks/results/fresh.json, written after each verdict; docs/strength.md shows it.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import partial
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
    """Measure the named operators, or those that are not measured whole; `quick`: the right kernels, and nothing is kept.

    Args:
        ops: `OP`, or `OP:` and kinds or names of kernels, with commas between.

    Raises:
        click.UsageError: an operator has no fixtures, or no such kernel.
    """
    asked = [_asked(word) for word in ops or [op for op in operators() if not whole(load().get(op, {}), op)]]
    results = load()
    for op, names in asked:
        chosen = [k for k in kernels(op) if (k.kind == "right" if quick else not names or {k.kind, k.id} & names)]
        with tempfile.TemporaryDirectory() as folder:
            keep = _ignored if quick else partial(_kept, op)
            results[op] = measure(op, Path(folder), chosen, known=results.get(op, {}), keep=keep)
    if not quick:
        strength.write_page(strength.load())
    return [_table(results)]


def _asked(word: str) -> tuple[str, set[str]]:
    """Return the operator that a word of the command line names, and the kinds and names of kernels; none means all."""
    op, _, rest = word.partition(":")
    if op not in operators():
        raise click.UsageError(f"no operator {op}; tests/fixtures/fresh has {', '.join(operators())}")
    names = {name for name in rest.split(",") if name}
    unknown = names - {name for kernel in kernels(op) for name in (kernel.kind, kernel.id)}
    if unknown:
        raise click.UsageError(f"no kernel {', '.join(sorted(unknown))} of {op}; see tests/fixtures/fresh/{op}")
    return op, names


def whole(found: dict[str, Any], op: str) -> bool:
    """Whether each kernel in the fixtures of an operator, as they are now, has a verdict in `found`."""
    judged_now = {row["digest"] for row in found.get("kernels", ()) if row["status"] != "ERROR"}
    return found.get("fixtures") == digest(op) and all(kernel.digest in judged_now for kernel in kernels(op))


def _kept(op: str, found: dict[str, Any]) -> None:
    store({**load(), op: found})


def _ignored(found: dict[str, Any]) -> None:
    """Keep nothing of a quick look."""


def workspace(op: str, folder: Path) -> Path:
    """Put documents and golden of an operator under `folder`, not its kernels; return the operator's directory."""
    root = folder / "custom" / op
    for name in _DOCUMENTS:
        path = Path(name.format(op=op))
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(FIXTURES / op / path, root / path)
    return root


def measure(
    op: str, folder: Path, chosen: Sequence[Kernel], known: dict[str, Any], keep: Callable[[dict[str, Any]], None]
) -> dict[str, Any]:
    """Make the suite of an operator and judge kernels with it.

    Args:
        op: the operator.
        folder: an empty directory.
        chosen: the kernels.
        known: an earlier result. A verdict in it stands where suite, inputs, golden and kernel are the same bytes, and where the
            kernel is not among the chosen ones. An ERROR is none: somebody may have interrupted it.
        keep: is given the result so far after each verdict.

    Returns:
        What is kept of an operator in fresh.json. Without a suite, `kernels` is empty and `harness` says why.
    """
    root = workspace(op, folder)
    result = {**head(op), **suite_of(op, root)}
    if "suite" not in result:
        keep(result)
        return result
    stamp = {"suite": result["suite"], "commit": commit(ROOT)}
    rows = {row["digest"]: {"suite": known["suite"], **row} for row in known.get("kernels", ()) if row["status"] != "ERROR"}
    same = {key for key, row in rows.items() if row["suite"] == result["suite"]}
    with ThreadPoolExecutor(WORKERS) as pool:
        begun = [pool.submit(judged, op, root, kernel) for kernel in chosen if kernel.digest not in same]
        for done in as_completed(begun):
            row = _told({**done.result(), **stamp})
            rows[row["digest"]] = row
            keep({**result, "kernels": _in_order(op, rows)})
    result["kernels"] = _in_order(op, rows)
    keep(result)
    return result


def suite_of(op: str, root: Path) -> dict[str, Any]:
    """Let `harness new` write the suite of an operator; return what it cost and said, and, where there is a suite, its digest."""
    made = process.command(["harness", "new", str(root)], cwd=root.parents[1])
    harness: dict[str, Any] = {**made.spent(), "exit": made.code}
    if made.code != 0:
        harness["said"] = made.last_lines(8)
    suite = root / "eval" / SUITE_FILES[0]
    if not suite.is_file():
        return {"harness": harness}
    harness["cases"] = len(json.loads(suite.read_text(encoding="utf-8"))["cases"])
    files = (*(root / "eval" / name for name in SUITE_FILES), root / f"{op}_golden.py")
    return {"harness": harness, "suite": process.digest_of(*files)}


def _in_order(op: str, rows: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the verdicts of the kernels that the fixtures have now, in their order."""
    return [rows[kernel.digest] for kernel in kernels(op) if kernel.digest in rows]


def head(op: str) -> dict[str, Any]:
    """Return what an operator's result says before anything is judged: its fixtures, and how many kernels they have."""
    kinds = [kernel.kind for kernel in kernels(op)]
    wrong = kinds.count("wrong")
    return {"fixtures": digest(op), "of": {"right": len(kinds) - wrong, "wrong": wrong}, "kernels": []}


def commit(root: Path) -> str:
    """Return the commit of a checkout in eight digits, with a plus where files under scripts differ from it."""
    at = process.run(["git", "rev-parse", "--short=8", "HEAD"], cwd=root)
    changed = process.run(["git", "status", "--porcelain", "--", "scripts"], cwd=root)
    return at.output.strip() + ("+" if changed.output.strip() else "") if at.code == 0 else "unknown"


def judged(op: str, made: Path, kernel: Kernel) -> dict[str, Any]:
    """Judge one kernel with the suite in `made`; return its verdict, the case that refused it first, and what it cost."""
    spent: dict[str, float] = {}
    report: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "custom" / op
        shutil.copytree(made, root)
        (root / f"{op}_impl.py").write_text(kernel.text, encoding="utf-8")
        for part in ([] if kernel.must_pass else [["--levels", FIRST_LEVEL]]) + [[]]:
            words = ["verify", "--modes", "sim", "--jobs", "1", "--quiet", *part, str(root)]
            done = process.command(words, cwd=Path(folder))
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
