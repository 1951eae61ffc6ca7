"""`pypto-op perf`."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click

from pypto_op.errors import ContractError
from pypto_op.options import op_dir_argument
from pypto_op.vocabulary import ExitCode, Mode
from pypto_op.workspace import OpWorkspace

_MOST_PASSES = 12


@click.command()
@op_dir_argument()
@click.option(
    "--left",
    type=click.Path(path_type=Path),
    help="Run nothing; tell what an earlier run left in this folder: cores, gaps, path, leaves, chains.",
)
@click.option("--leaf", default="", help="With --left: only this leaf function, by its hash: its loop and lines, its tasks.")
@click.option(
    "--passes", type=click.Path(path_type=Path), help="Run nothing; tell what each pass of a compilation cost, from pypto's log."
)
@click.option("--against", type=click.Path(path_type=Path), help="With --passes: an earlier log to compare with.")
@click.option("--json", "as_json", is_flag=True, help="Print every figure as JSON.")
def perf(op_dir: Path, left: Path | None, leaf: str, passes: Path | None, against: Path | None, *, as_json: bool) -> int:
    """Say what bounds the kernel of OP_DIR on each P0 shape, where the gap is, and what to try next (cost model).

    Writes eval/perf.html with the swimlane of each shape. Exit status: 0 told, 2 the operator's files are wrong, the kernel is
    not right on a P0 shape, or a folder or log holds nothing to tell, 3 there is no simulator with numbers.
    """
    ws = OpWorkspace.at(op_dir)
    if leaf and left is None or against is not None and passes is None:
        raise ContractError("--leaf needs --left, and --against needs --passes", remedy="name the folder or the log, too")
    if passes is not None:
        return _passes(passes, against, as_json=as_json)
    if left is not None:
        return _left(left, leaf, as_json=as_json)
    return _run(ws, as_json=as_json)


def _passes(log: Path, against: Path | None, *, as_json: bool) -> int:
    from pypto_op.perf.passes import differences, read_passes

    rows = read_passes(log)
    changed = differences(read_passes(against), rows) if against is not None else []
    if as_json:
        told = {"schema_version": 1, "passes": [asdict(row) for row in rows], "differences": [asdict(row) for row in changed]}
        click.echo(json.dumps(told, indent=1))
        return int(ExitCode.OK)
    total = sum(row.total_us for row in rows)
    click.echo(f"{len(rows)} passes, {total / 1000:.1f} ms in all")
    for row in rows[:_MOST_PASSES]:
        share, most = 100 * row.total_us / max(1, total), f"longest {row.longest_us / 1000:.2f} ms in {row.longest}"
        click.echo(f"  {row.name}: {row.total_us / 1000:.2f} ms, {share:.0f} %, {row.runs} runs, {most}")
    for one in changed[:_MOST_PASSES]:
        click.echo(f"  {one.name}: {one.before_us / 1000:.2f} -> {one.after_us / 1000:.2f} ms")
    return int(ExitCode.OK)


def _left(folder: Path, leaf: str, *, as_json: bool) -> int:
    from pypto_op.perf.analysis import analyse
    from pypto_op.perf.left import launches_in
    from pypto_op.tuning.perf_words import launch_summary, of_launch
    from pypto_op.tuning.report import CANNOT_SAY

    found = {name: analyse(launch) for name, launch in launches_in(folder)}
    if leaf and not any(row.hash == leaf for one in found.values() for row in one.leaves):
        raise ContractError(f"knows no leaf function {leaf}", file=folder, remedy="take a hash that --left without --leaf tells")
    if as_json:
        told = {"schema_version": 1, "launches": {name: launch_summary(one) for name, one in found.items()}}
        click.echo(json.dumps(told, indent=1))
        return int(ExitCode.OK)
    for name, one in found.items():
        click.echo(f"{name}: {one.us:.2f} us in the cost model")
        for line in of_launch("cores", one, leaf):
            click.echo(line)
    click.echo(CANNOT_SAY)
    return int(ExitCode.OK)


def _run(ws: OpWorkspace, *, as_json: bool) -> int:
    from pypto_op.documents.way import need

    need(ws, ws.spec, ws.interfaces, ws.golden, ws.test_inputs, ws.impl)
    from pypto_op import speaking
    from pypto_op.perf.admission import numeric_mode

    numeric_mode(Mode.SIM)
    from pypto_op.tuning import pages
    from pypto_op.tuning.perf_words import sentences, summary
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
