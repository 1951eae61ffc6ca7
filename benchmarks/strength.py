"""How strong the examples' suites are: mutants killed, honest variants accepted; writes docs/strength.md.

`python -m benchmarks strength` measures every operator whose files changed since its last measurement, keeps the result in
benchmarks/results/strength.json, and writes the page from it. `python -m benchmarks.strength rmsnorm ...` measures these
operators, changed or not, and tries mutants that earlier sittings had no time for; `--report FILE` takes over what
`pypto-op mutate --json` wrote.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import click

from benchmarks import fresh_results, keeping
from benchmarks.table import Row, Table

ROOT = Path(__file__).resolve().parents[1]
RESULTS = Path(__file__).with_name("results") / "strength.json"
PAGE = ROOT / "docs" / "strength.md"
TARGET = 0.98
QUICK_MUTANTS = 40
SECONDS = 900.0
"""After so long no further mutant of an operator is begun; a large kernel has 800, and a survivor takes a minute. The next
measurement of the same files goes on from there."""
FATES = ("killed", "survived", "equivalent", "invalid")
BOUND_TO = ("impl", "golden", "suite", "inputs")
"""Files whose change makes a measurement stale."""


def run(quick: bool) -> list[Table]:
    """Measure what is stale; `quick`: a sample of the mutants, and no page."""
    results = load()
    if quick:
        results = {op: _measured(op, QUICK_MUTANTS) for op in operators()[:2]}
    else:
        for op in operators():
            if stale(op, results):
                click.echo(
                    f"{op}: at most {SECONDS:.0f} s and the mutants under way; alone: python -m benchmarks.strength {op}",
                    err=True,
                )
                results[op] = _measured(op, None)
                store(results)
        write_page(results)
    return [_table(results)]


def operators() -> list[str]:
    """Return the examples that have an implementation."""
    return sorted(path.parent.name for path in (ROOT / "examples" / "ops").glob("*/*_impl.py"))


def load() -> dict[str, Any]:
    """Return the results of every operator that was measured."""
    return keeping.load(RESULTS)


def store(results: dict[str, Any]) -> None:
    """Keep the results."""
    keeping.store(RESULTS, dict(sorted(results.items())))


def stale(op: str, results: dict[str, Any]) -> bool:
    """Whether an operator was never measured, or its kernel, golden, suite or inputs are others now."""
    from pypto_op.proof import evidence
    from pypto_op.workspace import OpWorkspace

    now = evidence.file_hashes(OpWorkspace.at(ROOT / "examples" / "ops" / op))
    return op not in results or any(results[op]["hashes"].get(name) != now.get(name) for name in BOUND_TO)


def condensed(report: dict[str, Any]) -> dict[str, Any]:
    """Return what the page needs of a report of `pypto-op mutate`: the counts, and each mutant that lives."""
    kept = ("id", "operator", "line", "diff", "status", "detail")
    names = ("hashes", "made", *FATES, "score", "lower_bound", "limit", "cases", "trials")
    by_operator: dict[str, dict[str, int]] = {}
    for mutant in report["mutants"]:
        row = by_operator.setdefault(mutant["operator"], {})
        row[mutant["status"]] = row.get(mutant["status"], 0) + 1
    return {
        **{name: report[name] for name in names},
        "jobs": report["jobs"],
        "cpu_seconds": report["cpu_seconds"],
        "seconds": round(report["seconds"]),
        "load": report.get("load"),
        "sabotage": {run["kind"]: run["refused"] for run in report["sabotage"]},
        "kills_by_case": report["kills_by_case"],
        "by_operator": by_operator,
        "living": [{k: m[k] for k in kept} for m in report["mutants"] if m["status"] in ("survived", "equivalent")],
    }


def _measured(op: str, limit: int | None) -> dict[str, Any]:
    from pypto_op.mutation.campaign import Wish, measure
    from pypto_op.workspace import OpWorkspace

    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "custom" / op
        shutil.copytree(ROOT / "examples" / "ops" / op, root)
        wish = Wish(limit=limit, jobs=os.cpu_count() or 1, seconds=SECONDS, resume=True)
        return {**condensed(measure(OpWorkspace.at(root), wish)), "variants": _variants(op, root)}


def _variants(op: str, root: Path) -> dict[str, bool]:
    """Judge each honest variant by the case that the tests use; name -> accepted."""
    from tests.markdown_cases.examples import kernels

    from pypto_op.judge.cases.request import Request
    from pypto_op.judge.verify import verify_operator
    from pypto_op.vocabulary import Mode
    from pypto_op.workspace import OpWorkspace

    ws, found = OpWorkspace.at(root), {}
    for kernel in kernels("variants", op):
        ws.impl.write_bytes(kernel.text)
        found[kernel.name] = verify_operator(ws, Request(modes=[Mode.SIM], case=kernel.case))["status"] in ("PASS", "PARTIAL")
    return found


def _table(results: dict[str, Any]) -> Table:
    rows = [
        Row(op, {name: float(found[name] or 0) for name in ("killed", "survived", "score")}, TARGET, "score", True)
        for op, found in sorted(results.items())
    ]
    return Table(
        "mutants of the examples", "mutants; share", rows, ["equivalent and invalid ones are left out; docs/strength.md"]
    )


def write_page(results: dict[str, Any]) -> None:
    """Write docs/strength.md."""
    PAGE.write_text(page(results), encoding="utf-8")


def page(results: dict[str, Any]) -> str:
    """Return docs/strength.md as the results say it."""
    parts = [*_overview(results), "", *fresh_results.section(fresh_results.load()), *_by_operator(results), "", *_living(results)]
    return "\n".join([_HEAD, *parts, _TAIL])


_HEAD = """# How strong the examples' suites are
<!-- Generated by `python -m benchmarks strength` from strength.json and fresh.json in benchmarks/results; do not edit. -->

A suite is as good as the wrong kernels it refuses and the right ones it lets through. `pypto-op mutate OP_DIR` plants one
fault at a time into the operator's own kernel (`--list` names the kinds), runs the suite's cases against it, each with two
seeds, and stops at the first that refuses it. The table counts:

- **killed**: a case refused it. **survived**: none did, and it differs from the kernel on some input.
- **equivalent**: each case of the suite and dozens of unkind inputs beside it (other shapes, NaN, Inf, denormals, huge
  numbers, other scalars) gave the same values, bit for bit. Evidence, not proof; each is shown below. Inputs on which the
  unchanged kernel is wrong count for nothing: SPEC.md does not cover them (NaN in `q` alone, where `lse` belongs to `q`).
- **killed** by numbers needs the tensor graph only; what lives there is run with pypto's passes, once in each dtype.
- **invalid**: pypto or the wrapper refuses it in every case that was tried, so it says nothing about the suite.
- **score** = killed / (killed + survived); **at least** is the lower end of the exact 95 % interval (Clopper-Pearson).
- **a sample**: the time was over before the mutants were; the kinds of fault took turns, each in random order.
- **sabotage**: a kernel that writes nothing, and one that writes one number everywhere, must be refused by every case.
- **variants**: right kernels written otherwise (tests/fixtures/variants); each must be accepted.
"""

_TAIL = """
The mutants are those of one kernel in its present form, and `sim` runs the tensor graph: a fault that only shows on the
device (a missing synchronisation, an overflow on chip) is neither planted nor seen.
"""


def _overview(results: dict[str, Any]) -> list[str]:
    lines = [
        "| operator | cases | mutants | killed | survived | equivalent | invalid | score | at least | sabotage | variants |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---|---:|",
    ]
    for op, found in sorted(results.items()):
        fates = [found[name] for name in FATES]
        made = f"{sum(fates)}" + (f" of {found['made']} (a sample)" if found["limit"] is not None else "")
        sabotage = "refused" if all(found["sabotage"].values()) else "PASSED"
        accepted = f"{sum(found['variants'].values())} of {len(found['variants'])}" if found.get("variants") else "not measured"
        share = f"{found['score']:.1%} | {found['lower_bound']:.1%}"
        counts = " | ".join(map(str, fates))
        lines.append(f"| {op} | {found['cases']} | {made} | {counts} | {share} | {sabotage} | {accepted} |")
    lines.append("")
    for op, found in sorted(results.items()):
        cases = ", ".join(f"`{case}` {count}" for case, count in list(found["kills_by_case"].items())[:5])
        tried = sum(found[name] for name in FATES)
        spent = [f"{found['seconds']} s with {found['jobs']} workers ({100 * found['seconds'] / tried:.0f} s for 100 mutants)"]
        cpu = found["cpu_seconds"]
        spent += [f"{cpu:.0f} s of processor time ({100 * cpu / tried:.0f} s for 100 mutants)"] if cpu else []
        spent += [f"load {found['load']:g}"] if found["load"] is not None else []
        lines.append(f"{op}: {', '.join(spent)}; most kills by {cases}.  ")
    return lines


def _by_operator(results: dict[str, Any]) -> list[str]:
    """Return one row per kind of fault: killed of killed and survived, per operator."""
    from pypto_op.mutation.operators.registry import OPERATORS

    ops = sorted(results)
    lines = ["## By kind of fault", "", f"| fault | {' | '.join(ops)} |", f"|---|{'---:|' * len(ops)}"]
    for name, operator in OPERATORS.items():
        cells = []
        for op in ops:
            row = results[op]["by_operator"].get(name, {})
            tried = row.get("killed", 0) + row.get("survived", 0)
            cells.append(f"{row.get('killed', 0)} of {tried}" if tried else "")
        lines.append(f"| `{name}`: {operator.fault} | {' | '.join(cells)} |")
    return lines


def _living(results: dict[str, Any]) -> list[str]:
    """Return every mutant that no case refused, with the reason."""
    lines = ["## What no case refused, and why", ""]
    for op, found in sorted(results.items()):
        lines += [f"### {op}", ""]
        for mutant in sorted(found["living"], key=lambda m: (m["status"] != "survived", m["id"])):
            text = f"line {mutant['line']}, `{mutant['operator']}`: {mutant['detail'] or 'not compared with the kernel'}"
            lines += [f"- **{mutant['status']}**, {text}", "  ```diff", *(f"  {d}" for d in mutant["diff"].splitlines()), "  ```"]
        if not found["living"]:
            lines.append("Nothing.")
        lines.append("")
    return lines


def _merged(reports: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return one report per operator; one of some mutants only replaces or adds these in the one before it."""
    from pypto_op.mutation.score import lower_bound

    whole: dict[str, dict[str, Any]] = {}
    for report in reports:
        old = whole.get(report["op_name"])
        if old is None or not (report["only"] or report["operators"]):
            whole[report["op_name"]] = report
            continue
        if {name: old["hashes"].get(name) for name in BOUND_TO} != {name: report["hashes"].get(name) for name in BOUND_TO}:
            raise click.UsageError(f"the reports on {report['op_name']} are of different files")
        together = {(m["operator"], m["line"], m["diff"]): m for m in (*old["mutants"], *report["mutants"])}
        mutants = list(together.values())
        for name in FATES:
            old[name] = sum(mutant["status"] == name for mutant in mutants)
        tried = old["killed"] + old["survived"]
        old["mutants"], old["score"], old["lower_bound"] = mutants, old["killed"] / tried, lower_bound(old["killed"], tried)
    return list(whole.values())


@click.command()
@click.argument("ops", nargs=-1)
@click.option("--report", "reports", type=click.Path(path_type=Path, exists=True), multiple=True)
@click.option("--limit", type=click.IntRange(1), help="At most so many mutants of each operator.")
@click.option("--variants", is_flag=True, help="Judge the honest variants again.")
@click.option("--page", "page_only", is_flag=True, help="Only write the page from the results that there are.")
def main(ops: Sequence[str], reports: Sequence[Path], limit: int | None, variants: bool, page_only: bool) -> None:
    """Measure some operators, or take over reports, and write docs/strength.md."""
    results = load()
    for report in _merged(json.loads(path.read_text(encoding="utf-8")) for path in reports):
        old = results.get(report["op_name"], {})
        results[report["op_name"]] = {**condensed(report), "variants": old.get("variants", {})}
    for op in () if page_only else ops:
        if variants:
            with tempfile.TemporaryDirectory() as folder:
                root = Path(folder) / "custom" / op
                shutil.copytree(ROOT / "examples" / "ops" / op, root)
                results[op]["variants"] = _variants(op, root)
        else:
            results[op] = _measured(op, limit)
    store(results)
    write_page(results)


if __name__ == "__main__":
    main()
