"""`pypto-op doctor`: of a machine, or of a workspace that the bundle was installed in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from pypto_op.vocabulary import ExitCode, Mode

_MARKS = {"ok": ("ok", "green"), "limited": ("limited", "yellow"), "missing": ("missing", "red")}


@click.command()
@click.option("--json", "as_document", is_flag=True, help="print one JSON document (schemas/doctor.schema.json)")
@click.option("--build", is_flag=True, help="build the calculator now if it was never built here")
@click.option("--target", type=click.Path(path_type=Path), help="find and repair what is wrong with an installed workspace")
@click.option("--dry-run", is_flag=True, help="with --target: say what is wrong and change nothing")
def doctor(as_document: bool, build: bool, target: Path | None, dry_run: bool) -> int:
    """Say what this machine can do, what each missing piece costs, and the line that mends it.

    Exit 0 when kernels can be run in sim and their numbers judged, 3 when not. With --target: 0 when the workspace is in
    order (again), 2 when --dry-run found something, nothing is installed there or files changed by hand are in the way, 3
    when the machine cannot repair it.
    """
    if target is not None:
        from pypto_op.install.doctor import run

        return run(target, dry_run=dry_run)
    from pypto_op.backends.doctor import as_json, examine

    if build:
        from pypto_op.backends.sim import prepare

        prepare()
    document = examine()
    if as_document:
        click.echo(as_json(document))
    else:
        _show(document)
    sim = document[Mode.SIM]  # without numbers there is never a PASS: the calculator needs a C++ tool chain
    return int(ExitCode.OK if sim["ok"] and sim["numeric"] else ExitCode.INFRA)


def _show(document: dict[str, Any]) -> None:
    for finding in document["findings"]:
        mark, colour = _MARKS[finding["status"]]
        click.echo(f"{click.style(f'{mark:8}', fg=colour)} {finding['name']:15} {finding['found']}".rstrip())
        if finding["costs"]:
            click.echo(f"{'':24} {finding['costs']}")
        if finding["mend"]:
            click.echo(f"{'':24} -> {finding['mend']}")
    click.echo()
    for mode in Mode:
        found = document[mode]
        numbers = "real numbers" if found["numeric"] else "structure only"
        click.echo(f"{mode}: {numbers if found['ok'] else 'not available: ' + found['reason']}")
