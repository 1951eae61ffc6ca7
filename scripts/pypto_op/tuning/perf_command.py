"""`pypto-op perf`."""

from __future__ import annotations

import json
from pathlib import Path

import click

from pypto_op.options import op_dir_argument
from pypto_op.vocabulary import ExitCode
from pypto_op.workspace import OpWorkspace


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
