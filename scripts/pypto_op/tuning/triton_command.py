"""`pypto-op triton tune`."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click

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
@click.option("--seed", type=click.IntRange(0), default=11, show_default=True, help="Of the search.")
@click.option("--dry-run", is_flag=True, help="Leave the implementation as it is.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def tune(
    op_name: str, verify_dir: Path, triton_impl_name: str, target: str, as_json: bool, dry_run: bool, **wanted: float
) -> int:
    """Search block sizes, warps and stages of a Triton implementation, and keep what is right and faster beyond the noise.

    Exit status: 0 searched, 2 there is no PASS for exactly these bytes, or no budget, 3 there is no device.
    """
    from pypto_op.triton.run.project import Project
    from pypto_op.triton.run.targets import warm

    project = Project.at(verify_dir, op_name, triton_impl_name)
    warm(target)  # before the next line brings torch
    from pypto_op import speaking
    from pypto_op.tuning.triton_tune import tune_triton

    tuned = tune_triton(
        project,
        target=None if target == "auto" else target,
        seconds=wanted["seconds"],
        trials=int(wanted["trials"]),
        seed=int(wanted["seed"]),
        write=not dry_run,
        note=speaking.now,
    )
    if as_json:
        click.echo(json.dumps(asdict(tuned), indent=1))
        return int(ExitCode.OK)
    click.echo(f"{len(tuned.candidates)} candidates on {tuned.target}, {tuned.timings} timings, {tuned.seconds:.0f} s")
    for one in tuned.candidates:
        change = "; ".join(f"{key} = {option}" for key, option in one.assignment.items())
        ratio = "" if one.ratio is None else f"{one.ratio:.3f} of the time, "
        click.echo(f"  {one.number}: {ratio}{one.fate}{': ' + one.reason if one.reason else ''}; {change}")
    if tuned.chosen is None:
        click.echo("the implementation stays as it is")
    else:
        placed = "it lies in the implementation's place, with a PASS" if tuned.written else "it was not written"
        click.echo(f"candidate {tuned.chosen.number} is {tuned.gain or 1.0:.2f} times as fast; {placed}")
    return int(ExitCode.OK)
