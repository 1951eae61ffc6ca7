"""`pypto-op perf`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pypto_op.options import op_dir_argument
from pypto_op.vocabulary import ExitCode
from pypto_op.workspace import OpWorkspace

if TYPE_CHECKING:
    from pypto_op.tuning.profile import Shape

_MOST = 6


@click.command()
@op_dir_argument()
@click.option("--json", "as_json", is_flag=True, help="Print every figure as JSON.")
def perf(op_dir: Path, as_json: bool) -> int:
    """Say what bounds the kernel of OP_DIR on each P0 shape, where the gap is, and what to try next (cost model).

    Writes eval/perf.html with the swimlane of each shape. Exit status: 0 told, 2 the operator's files are wrong or the kernel is
    not right on a P0 shape, 3 there is no simulator with numbers.
    """
    from pypto_op.judge.precheck import need

    ws = OpWorkspace.at(op_dir)
    need(ws, ws.spec, ws.interfaces, ws.golden, ws.test_inputs, ws.impl)
    from pypto_op import speaking
    from pypto_op.tuning import pages
    from pypto_op.tuning.profile import profile_operator

    rows = profile_operator(ws, speaking.now)
    page = pages.write_perf(ws, rows)
    if as_json:
        click.echo(json.dumps({"schema_version": 1, "op_name": ws.name, "shapes": [summary(row) for row in rows]}, indent=1))
        return int(ExitCode.OK)
    for row in rows:
        for line in sentences(row):
            click.echo(line)
    from pypto_op.tuning.report import CANNOT_SAY

    click.echo(CANNOT_SAY)
    click.echo(f"written: {page}")
    return int(ExitCode.OK)


def sentences(row: Shape) -> Iterator[str]:
    """Yield what is said of a shape, a line each."""
    from pypto_op.perf.lever import place

    bound, work, reached = row.bound, row.work, f"{100 * row.share:.1f} % of it reached"
    yield f"{row.label}: {row.us:.2f} us in the cost model, bound {bound.us:.3g} us ({bound.by}), {reached}"
    yield (
        f"  {work.bytes} bytes, {work.product_flop} FLOP in products, {work.vector_flop} elsewhere, on {bound.device}: "
        f"memory {bound.memory_us:.3g} us, cube {bound.cube_us:.3g} us, vector {bound.vector_us:.3g} us"
    )
    for number, one in enumerate(row.analyses, 1):
        for usage in one.usage:
            yield (
                f"  launch {number}, {usage.kind}: {usage.used} of {usage.cores} cores, {usage.tasks} tasks, "
                f"utilisation {100 * usage.utilisation:.1f} %, gaps {100 * (1 - usage.busy):.0f} % on those, "
                f"balance {100 * usage.balance:.0f} %"
            )
        yield (
            f"  waiting: {one.waits_task_us:.1f} us for tasks, {one.waits_scheduler_us:.1f} us for the scheduler; critical path "
            f"{len(one.path)} tasks, busy {100 * one.path_busy:.0f} %"
        )
        for leaf in one.leaves[:_MOST]:
            yield (
                f"  leaf {leaf.hash}: {place(leaf)}; {leaf.tasks} tasks of {leaf.mean_us:.2f} us, "
                f"{100 * leaf.share:.0f} % of all work, {100 * leaf.critical:.0f} % of the critical path"
            )
        for chain in one.chains[:2]:
            yield f"  vector chain of {len(chain.leaves)} tasks, {chain.count} times, {chain.waits_us:.1f} us between them"
    for lever in row.levers[:2]:
        yield f"  next: {lever.name}; {lever.why}"


def summary(row: Shape) -> dict[str, Any]:
    """Return what is known of a shape, JSON-ready."""
    return {
        "label": row.label,
        "us": row.us,
        "bound_us": row.bound.us,
        "bound_by": row.bound.by,
        "share": row.share,
        "work": asdict(row.work),
        "bound": asdict(row.bound),
        "levers": [asdict(lever) for lever in row.levers],
        "launches": [
            {
                "us": one.us,
                "usage": [asdict(usage) for usage in one.usage],
                "waits_task_us": one.waits_task_us,
                "waits_scheduler_us": one.waits_scheduler_us,
                "critical_path": {"tasks": len(one.path), "busy": one.path_busy},
                "leaves": [asdict(leaf) for leaf in one.leaves],
                "chains": [asdict(chain) for chain in one.chains],
                "gaps": [asdict(gap) for gap in one.gaps[:20]],
            }
            for one in row.analyses
        ],
        "figures": dict(row.figures),
    }
