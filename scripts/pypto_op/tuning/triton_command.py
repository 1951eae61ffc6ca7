"""`pypto-op triton tune`."""

from __future__ import annotations

import json
from pathlib import Path

import click

from pypto_op.options import SEARCH_SEED
from pypto_op.vocabulary import ExitCode


@click.command()
@click.option("--op_name", required=True, help="Name of the operator: {op_name}_torch.py is the task.")
@click.option("--verify_dir", type=click.Path(path_type=Path), default=Path(), help="Folder of task and implementation.")
@click.option("--triton_impl_name", default="triton_ascend_impl", help="Name of the implementation, without {op_name}_.")
@click.option(
    "--target", type=click.Choice(["auto", "interpret", "cuda", "npu"]), default="auto", help="Where; default: the device."
)
@click.option("--budget", "seconds", type=float, default=300.0, show_default=True, metavar="SECONDS", help="Of the search.")
@click.option("--trials", type=int, default=60, show_default=True, help="The most candidates.")
@click.option("--resume", is_flag=True, help="Go on with an earlier search of exactly these files.")
@click.option("--seed", type=SEARCH_SEED, default=11, show_default=True, help="Of the search.")
@click.option("--dry-run", is_flag=True, help="Leave the implementation as it is.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def tune(
    op_name: str,
    verify_dir: Path,
    triton_impl_name: str,
    target: str,
    as_json: bool,
    dry_run: bool,
    resume: bool,
    **wanted: float,
) -> int:
    """Search block sizes, warps and stages of a Triton implementation, and keep what is right and faster beyond the noise.

    Exit status: 0 searched, 2 there is no PASS for exactly these bytes, no budget or nothing to resume, 3 there is no device or
    it went away.
    """
    from pypto_op.triton.run.setup.project import Project
    from pypto_op.tuning.triton_admission import admit

    project = Project.at(verify_dir, op_name, triton_impl_name)
    named = None if target == "auto" else target
    admit(project, named, wanted["seconds"], int(wanted["trials"])).warm()  # before the next line brings torch
    from pypto_op import speaking
    from pypto_op.tuning import triton_report
    from pypto_op.tuning.triton_tune import tune_triton

    tuned = tune_triton(
        project,
        target=named,
        seconds=wanted["seconds"],
        trials=int(wanted["trials"]),
        seed=int(wanted["seed"]),
        write=not dry_run,
        resume=resume,
        note=speaking.now,
    )
    written = triton_report.write(project, tuned)
    if as_json:
        click.echo(json.dumps(triton_report.summary(project, tuned), indent=1))
        return int(ExitCode.OK)
    for line in [*triton_report.sentences(tuned), *(f"written: {path}" for path in written)]:
        click.echo(line)
    return int(ExitCode.OK)
