"""`pypto-op benchmark`: times a kernel that has a PASS for exactly its bytes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from pypto_op.errors import ContractError
from pypto_op.judge.options import levels_option, modes_option
from pypto_op.options import op_dir_argument
from pypto_op.pool.address import Address, pool_option
from pypto_op.vocabulary import ExitCode
from pypto_op.workspace import OpWorkspace


@click.command()
@op_dir_argument()
@modes_option
@levels_option(default="L2,L4", help="Levels of the suite whose shapes are timed.")
@click.option(
    "--repeats", type=click.IntRange(1, 1000), default=1, show_default=True, help="Runs of each input; noise needs two."
)
@click.option(
    "--compare", "base", type=click.Path(path_type=Path, dir_okay=False), help="A kernel with a PASS, timed in turns with this."
)
@pool_option
@click.option("--history", "only_history", is_flag=True, help="Print the earlier benchmarks of this operator and stop.")
@click.option("--json", "as_json", is_flag=True, help="Print the result instead of the table.")
def benchmark(op_dir: Path, as_json: bool, only_history: bool, pool: Address, **wanted: Any) -> int:
    """Time the kernel of OP_DIR, shape by shape: the cost model in sim, the device profile on an NPU.

    Exit status: 0 timed, 1 a shape failed while it was timed, 2 there is no PASS for exactly these bytes, 3 nothing to
    time on.
    """
    from pypto_op.documents.way import need

    ws = OpWorkspace.at(op_dir)
    if only_history:
        if pool.ray:
            raise ContractError("--history takes no --pool", remedy="leave it out")
        return _show_history(ws, as_json=as_json)
    need(ws, ws.spec, ws.interfaces)  # of kernel and verdict `admit` tells: it removes an earlier result first
    from pypto_op.perf.admission import admit
    from pypto_op.pool.pool import Pool

    with Pool(pool) as there:
        admitted = admit(ws, wanted["modes"], wanted["base"], away=there.away)  # before the next lines bring torch
        from pypto_op.judge.reporting import report as reports
        from pypto_op.perf.benchmark import benchmark_operator

        result = benchmark_operator(ws, admitted=admitted, pool=there, **wanted)
    if as_json:
        click.echo(reports.serialise(result), nl=False)
    else:
        _show(result)
    return int(ExitCode.FAIL if result["failed_cases"] else ExitCode.OK)


def _show_history(ws: OpWorkspace, *, as_json: bool) -> int:
    import json

    from pypto_op.perf import history

    found = history.read(ws)
    if as_json:
        click.echo(json.dumps(found, indent=1))
    for one in [] if as_json else found:
        rows = ", ".join(f"{row['label']} {row['median']:.2f}" for row in one["rows"] if row["median"] is not None)
        click.echo(f"{one['created']} {one['impl'][:12]} {rows}")
    if not found and not as_json:
        click.echo("no benchmark yet")
    return int(ExitCode.OK)


def _show(result: Mapping[str, Any]) -> None:
    from rich.table import Table

    from pypto_op.judge.reporting.display import verdict_console

    console = verdict_console()
    table = Table(title=f"{result['op_name']}: time per shape", title_justify="left")
    for column in ("shape", "mode", "median", "spread", "utilisation", "tasks", "status"):
        table.add_column(column, justify="left" if column in ("shape", "mode", "status") else "right")
    for row in result["per_shape_results"]:
        cost = row["cost"]
        used = cost.get("utilisation")
        table.add_row(
            row["label"],
            row["mode"],
            "" if row["median"] is None else f"{row['median']:.2f}",
            "" if row["spread"] is None else f"{100 * row['spread']:.1f} %",
            "" if used is None else f"{100 * used:.1f} %",
            f"{cost['tasks']:.0f}" if "tasks" in cost else "",
            row["status"] if row["status"] == "ok" else f"failed: {row['reason']}",
        )
    console.print(table)
    compared = result.get("compared", {})
    for row in compared.get("rows", ()):
        base = Path(compared["file"]).name
        told = row["reason"] or f"takes {row['ratio']:.3f} of the time of {base} [{row['low']:.3f}, {row['high']:.3f}]"
        null = "" if row["null"] is None else f", A/A {row['null']:.3f}"
        console.print(f"{row['case_id']}, {row['mode']}: {told}{null}")
    for mode, entry in result["modes"].items():
        console.print(f"{mode}: {entry['unit']}" if entry["status"] == "timed" else f"{mode}: SKIPPED, {entry['reason']}")
    for caveat in result["caveats"]:
        console.print(f"[dim]{caveat}[/]")
