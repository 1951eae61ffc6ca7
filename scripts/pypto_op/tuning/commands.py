"""`pypto-op tune`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pypto_op.options import SEARCH_SEED, Amount, op_dir_argument
from pypto_op.pool.address import Address, pool_option
from pypto_op.vocabulary import ExitCode, Mode
from pypto_op.workspace import OpWorkspace

if TYPE_CHECKING:
    from pypto_op.tuning.tune import Tuned


@click.command()
@op_dir_argument()
@click.option("--budget", "seconds", type=float, default=300.0, show_default=True, metavar="SECONDS", help="Of search and judge.")
@click.option("--trials", type=int, default=200, show_default=True, help="The most candidates.")
@click.option("--target-us", type=Amount(), help="Stop when the largest P0 shape takes this.")
@click.option("--resume", is_flag=True, help="Go on with an earlier search of exactly this kernel.")
@click.option("--mode", type=click.Choice([str(mode) for mode in Mode]), help="Where; default: a device if there is one.")
@click.option("--jobs", type=click.IntRange(1, 64), help="Candidates at once; default: one per core, at most 4.")
@pool_option
@click.option("--mutants", type=click.IntRange(0), default=8, show_default=True, help="Faults that the score is compared on.")
@click.option("--seed", type=SEARCH_SEED, default=11, show_default=True, help="Of the search.")
@click.option("--dry-run", is_flag=True, help="Leave the kernel as it is; the report tells what was found.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def tune(op_dir: Path, as_json: bool, dry_run: bool, mode: str | None, jobs: int | None, pool: Address, **wanted: Any) -> int:
    """Search a faster kernel for OP_DIR, keep it only if it is right, and write the tuning report.

    Exit status: 0 searched, and the target was met where one was set; 1 it was not met; 2 there is no PASS for exactly these
    bytes, no budget, or a target that no kernel can meet; 3 nothing can time a kernel here, or
    another search of this operator is running.
    """
    from pypto_op import speaking
    from pypto_op.backends.cores import usable
    from pypto_op.documents.way import need
    from pypto_op.pool.pool import Pool
    from pypto_op.tuning.admission import Request, admitted

    ws = OpWorkspace.at(op_dir)
    need(ws, ws.spec, ws.interfaces, ws.golden, ws.test_inputs, ws.impl)

    def note(words: str) -> None:
        speaking.now(words)
        click.echo(words, err=True)

    with Pool(pool) as there:
        chosen = None if mode is None else Mode(mode)
        request = Request(mode=chosen, jobs=jobs or max(1, min(4, usable())), write=not dry_run, pool=there, **wanted)
        with admitted(ws, request) as operator:  # before the next line brings torch
            from pypto_op.tuning import pages, report
            from pypto_op.tuning.tune import tune_operator

            tuned = tune_operator(operator, request, note)
    written = [*report.write(tuned), pages.write_tuning(tuned)]
    if as_json:
        click.echo(json.dumps(report.summary(tuned), indent=1))
    else:
        _show(tuned, written)
    return int(ExitCode.OK if tuned.met else ExitCode.FAIL)


def _show(tuned: Tuned, written: list[Path]) -> None:
    from pypto_op.tuning import report

    for line in report.sentences(tuned):
        click.echo(line)
    for page in written:
        click.echo(f"written: {page}")
