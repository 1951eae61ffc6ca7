"""`pypto-op verify`: runs a kernel on its suite and judges its numbers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pypto_op import speaking
from pypto_op.errors import InfraError
from pypto_op.judge.options import levels_option, modes_option
from pypto_op.options import MEGABYTES, SEED, Amount, op_dir_argument
from pypto_op.pool.address import Address, pool_option
from pypto_op.vocabulary import Mode
from pypto_op.workspace import OpWorkspace

if TYPE_CHECKING:
    from rich.console import Console

    from pypto_op.judge.findings.records import CaseRecord
    from pypto_op.judge.verify import Progress


@click.command()
@op_dir_argument()
@modes_option
@click.option("--impl", type=click.Path(path_type=Path), help="Judge this file instead of the operator's own.")
@click.option("--up-to-module", metavar="K", help="Judge the cumulative phase M_K against its own golden.")
@levels_option(help="Only these levels of the suite.")
@click.option("--case", metavar="ID", help="Only this case.")
@click.option("--suite", type=click.Path(path_type=Path, dir_okay=False), help="Another suite than eval/adversarial_suite.json.")
@click.option("--inspect", metavar="NAME", help="Compare the buffer inspection_NAME, iteration by iteration, not the outputs.")
@click.option("--sweep", "other", flag_value="sweep", help="Judge each boundary M_1..M_K, and name the smallest that fails.")
@click.option("--self-test", "other", flag_value="self_test", help="Judge the harness instead of a kernel.")
@click.option("--compose", "other", flag_value="compose", help="Compare the goldens of M_1..M_N, composed, with the golden.")
@click.option("--jobs", type=click.IntRange(1, 64), help="Lanes of cases at once; default: what memory and cores allow.")
@pool_option
@click.option("--policy", metavar="NAME", help="Tolerance policy in the place of SPEC.md's, e.g. mere_mare@1.")
@click.option("--seed", type=SEED, help="Second seed of each precision case; default, for evidence: a fresh one.")
@click.option("--timeout", type=Amount(0.1), metavar="SECONDS", help="Longest time for one run.")
@click.option("--import-timeout", type=Amount(0.1), metavar="SECONDS", help="Longest time for importing the file.")
@click.option("--memory-mb", type=MEGABYTES, help="Most memory the candidate may use.")
@click.option(
    "--report",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Where the report goes; default: eval/evaluation_report.json.",
)
@click.option("--error-maps", is_flag=True, help="Keep where each output is off, for `pypto-op report`.")
@click.option("--json", "as_json", is_flag=True, help="Print the report instead of the table.")
@click.option("--quiet", is_flag=True, help="Print the verdict line only.")
def verify(op_dir: Path, other: str | None, as_json: bool, quiet: bool, jobs: int | None, pool: Address, **wanted: Any) -> int:
    """Run the kernel of OP_DIR on every case of its suite and judge the numbers against the golden.

    PASS speaks of the whole suite. A part of it (--levels, --case, another --suite, --policy or --inspect) that passes is
    PARTIAL, and so is what passes with a --seed that was known before. A run that compares no number is neither.

    Exit status: 0 PASS or PARTIAL, 1 the kernel is wrong, 2 the operator's files or the request are, 3 the machine cannot
    judge.
    """
    from pypto_op.judge.cases.precheck import check_request, refuse_ignored

    workspace = OpWorkspace.at(op_dir)
    if other is not None:
        refuse_ignored(other, {**wanted, "pool": pool if pool.ray and other != "sweep" else None})
    check_request(workspace, **{name: wanted[name] for name in ("case", "suite", "policy", "impl", "up_to_module")})
    _warm_up(workspace, other, wanted)
    from pypto_op.judge.cases.request import Request
    from pypto_op.judge.reporting import report as reports
    from pypto_op.judge.reporting.display import show_report, verdict_console
    from pypto_op.judge.verify import verify_operator
    from pypto_op.pool.pool import Pool

    if quiet:
        speaking.hush()
    console = verdict_console(stderr=as_json, quiet=quiet and as_json, soft_wrap=False)
    progress = _progress(console, quiet)
    limits = _limits(
        case_seconds=wanted.pop("timeout"),
        startup_seconds=wanted.pop("import_timeout"),
        memory_mb=wanted.pop("memory_mb"),
    )
    with Pool(pool) as there:
        if other is not None:
            from pypto_op.judge import other_checks

            options = {"jobs": jobs, "pool": there, "limits": limits, "progress": progress, **wanted}
            return other_checks.run(other, workspace, console, options, as_json=as_json)
        report = verify_operator(workspace, Request(jobs=jobs, pool=there, limits=limits, **wanted), progress=progress)
    if as_json:
        click.echo(reports.serialise(report), nl=False)
    else:
        file = (wanted["report"] or workspace.report).absolute()
        phase = report["up_to_module"] if wanted["up_to_module"] is not None else None
        show_report(console, report, verdict_only=quiet, file=file, phase=phase or None, ws=workspace)
    return int(reports.exit_code(report))


def _progress(console: Console, quiet: bool) -> Progress:
    """Return what tells a person of each case that was judged."""
    from pypto_op.judge.reporting.display import show_progress

    finished: list[CaseRecord] = []

    def progress(record: CaseRecord, total: int) -> None:
        if len(finished) >= total:
            finished.clear()  # the next boundary of a sweep
        finished.append(record)
        speaking.now(f"verify, {len(finished)} of {total} cases judged", len(finished), total)
        if not quiet:
            show_progress(console, record, len(finished), total)
            speaking.heard()

    return progress


def _warm_up(ws: OpWorkspace, other: str | None, wanted: Mapping[str, Any]) -> None:
    """Let `sim` import torch beside this process, which is about to do the same; refuse a machine whose parts are misplaced."""
    from pypto_op.backends import sim

    if outside := sim.misplaced():
        raise InfraError(outside)
    own_kernel = wanted["impl"] is None and wanted["up_to_module"] is None and other is None
    needed = [ws.spec, ws.interfaces, ws.test_inputs, *([ws.impl] if own_kernel else [])]
    if Mode.SIM in wanted["modes"] and other in (None, "sweep") and all(path.is_file() for path in needed):
        sim.warm_up()


def _limits(**given: Any) -> Any:
    from dataclasses import replace

    from pypto_op.backends.base import Limits

    return replace(Limits(), **{name: value for name, value in given.items() if value is not None})
