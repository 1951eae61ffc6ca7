"""`pypto-op mutate`: measures how many planted faults an operator's suite refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pypto_op.judge.options import levels_option
from pypto_op.options import SEED, Amount, op_dir_argument
from pypto_op.pool.address import Address, pool_option
from pypto_op.vocabulary import ExitCode
from pypto_op.workspace import OpWorkspace

if TYPE_CHECKING:
    from pypto_op.mutation.campaign import Wish


def _names(context: click.Context, option: click.Parameter, text: str | None) -> list[str] | None:
    return [word.strip() for word in text.split(",") if word.strip()] if text else None


@click.command()
@op_dir_argument()
@click.option("--operators", callback=_names, metavar="A,B", help="Only these mutation operators; see --list.")
@click.option("--limit", type=click.IntRange(1), metavar="N", help="At most N mutants, chosen at random.")
@click.option("--only", callback=_names, metavar="m012,m034", help="Only these mutants of an earlier report.")
@click.option("--jobs", type=click.IntRange(1, 64), help="Mutants at once; default: one per core.")
@pool_option
@click.option("--seed", type=SEED, help="Of the choice and of each case's second trial; default: a fixed one.")
@levels_option(help="Only these levels of the suite.")
@click.option("--case", metavar="ID", help="Only this case.")
@click.option("--timeout", type=Amount(0.1), metavar="SECONDS", help="Longest time for one run of a mutant.")
@click.option(
    "--seconds", type=Amount(0), metavar="N", help="Begin no mutant N seconds after the start; default 360; 0: try all."
)
@click.option("--all-cases", is_flag=True, help="Ask every case about each mutant: how many kill it, not only the first.")
@click.option(
    "--resume", is_flag=True, help="Take over what earlier runs found of the same mutants; each run tries further ones."
)
@click.option("--no-likeness", is_flag=True, help="Do not compare survivors with the kernel, bit by bit.")
@click.option("--list", "list_only", is_flag=True, help="Print the mutation operators and stop.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
def mutate(op_dir: Path, as_json: bool, list_only: bool, pool: Address, **wanted: Any) -> int:
    """Plant faults into the kernel of OP_DIR and see whether its suite refuses each of them.

    Exit status: 0 measured, and both sabotaged kernels were refused; 1 one of them passed; 2 the operator's files or the
    request are wrong, or the kernel does not pass its own suite; 3 this machine cannot run kernels with numbers.
    """
    from pypto_op.mutation.operators.registry import OPERATORS, select

    if list_only:
        for operator in OPERATORS.values():
            click.echo(f"{operator.name:18} {operator.fault}")
        return int(ExitCode.OK)
    from pypto_op.backends import sim
    from pypto_op.documents.way import need
    from pypto_op.judge.cases.precheck import check_request

    select(wanted["operators"])
    ws = OpWorkspace.at(op_dir)
    need(ws, ws.spec, ws.interfaces, ws.golden, ws.test_inputs, ws.impl)
    check_request(ws, case=wanted["case"], levels=wanted["levels"])
    sim.warm_up()
    from pypto_op.judge.reporting.display import verdict_console
    from pypto_op.mutation import display
    from pypto_op.mutation.campaign import measure
    from pypto_op.pool.pool import Pool

    console = verdict_console(stderr=as_json)
    progress = display.Progress(console)
    with Pool(pool) as there:
        report = measure(ws, _wish(pool, **wanted), progress, progress.note, there)
    if as_json:
        click.echo(json.dumps(report, indent=1))
    else:
        display.show(console, report)
    return int(ExitCode.OK if all(run["refused"] for run in report["sabotage"] if run["ran"]) else ExitCode.FAIL)


def _wish(pool: Address, *, jobs: int | None, seed: int | None, seconds: float | None, no_likeness: bool, **same: Any) -> Wish:
    """Return what the flags ask for, with the defaults of those that were left out; the others are fields of `Wish`."""
    from pypto_op.backends.cores import usable
    from pypto_op.judge.running.runner import MOST_JOBS
    from pypto_op.mutation.campaign import DEFAULT_SECONDS, DEFAULT_SEED, Wish

    return Wish(
        jobs=jobs or (MOST_JOBS if pool.host else usable()),
        seed=DEFAULT_SEED if seed is None else seed,
        seconds=(DEFAULT_SECONDS if seconds is None else seconds) or None,
        likeness=not no_likeness,
        **same,
    )
