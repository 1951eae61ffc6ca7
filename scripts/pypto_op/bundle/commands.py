"""`pypto-op bundle`: check agents and skills, and write what is made from them."""

from __future__ import annotations

import json
from pathlib import Path

import click

from pypto_op.vocabulary import ExitCode
from pypto_op.workspace import typed

_ROOT = click.option("--root", type=click.Path(path_type=Path), help="The bundle's checkout; default: this one.")
_AS_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group("bundle")
def bundle() -> None:
    """Check the bundle itself: its agents, skills and budgets. For those who change it."""


@bundle.command("check")
@_ROOT
@_AS_JSON
def check(root: Path | None, as_json: bool) -> int:
    """Check that every rule id, path, flag, section, tool, command and agent that the texts name exists.

    Exit status: 0 all well, 1 something is wrong, 2 no bundle there.
    """
    from pypto_op.bundle.check import check as run

    findings = run(_checkout(root))
    if as_json:
        click.echo(json.dumps([finding.as_dict() for finding in findings], indent=2, ensure_ascii=False))
    else:
        for finding in findings:
            click.echo(finding.one_line())
        click.echo(f"{len(findings)} findings" if findings else "all references resolve, all budgets hold", err=True)
    return int(ExitCode.FAIL if findings else ExitCode.OK)


@bundle.command("write")
@_ROOT
@_AS_JSON
def write(root: Path | None, as_json: bool) -> int:
    """Write what is made from agents, skills, commands and rules: the guards' roles, the plugin's agents, tables and pages.

    Exit status: 0 written, 2 no bundle there.
    """
    from pypto_op.bundle.agents import load_agents
    from pypto_op.bundle.checks.skills import read_skills
    from pypto_op.bundle.made import left_over, made

    base = _checkout(root)
    written: dict[str, None] = {}
    for _ in range(2):  # the budgets count the pages, and some pages hold a table that is made
        wanted = made(base, load_agents(base), read_skills(base)[0])
        for path, text in wanted.items():
            file = base / path
            if not file.exists() or file.read_text(encoding="utf-8") != text:
                file.write_text(text, encoding="utf-8")
                written[str(file)] = None
    for path in left_over(base, wanted):
        (base / path).unlink()
    click.echo(json.dumps({"written": [*written]}) if as_json else "\n".join(map(typed, written)) or "nothing was out of date")
    return int(ExitCode.OK)


def _checkout(root: Path | None) -> Path:
    from pypto_op.bundle_files import bundle_root
    from pypto_op.errors import ContractError

    base = (root or bundle_root()).resolve()
    if not (base / ".agents").is_dir() or not (base / "skills").is_dir() or not (base / "lint").is_dir():
        raise ContractError(
            "no checkout of the bundle lies there", file=base, remedy="name the folder with .agents/, skills/, lint/"
        )
    return base
