"""`pypto-op diagnose`: name the known mistake that a log shows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pypto_op.vocabulary import ExitCode

if TYPE_CHECKING:
    from pypto_op.diagnose.knowledge import Entry

NOTHING_FOUND = ExitCode.INFRA
"""Exit code 3: the log shows none of the known mistakes. The number is the contract; nothing is wrong with the machine."""


@click.command("diagnose")
@click.option("--log", "log", type=click.Path(path_type=Path), help="What the run printed, or a report; `-` reads stdin.")
@click.option("--kernel", type=click.Path(path_type=Path), help="The file that ran; decides between causes.")
@click.option("--show", metavar="ID", help="Print an entry with its example instead, mistaken and mended.")
@click.option("--list", "list_all", is_flag=True, help="List the known mistakes instead.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON (schemas/diagnosis.schema.json).")
def diagnose(log: Path | None, kernel: Path | None, show: str | None, list_all: bool, as_json: bool) -> int:
    """Name the known mistake that a log shows, with its cause and its remedy.

    Exit status: 0 found, 2 wrong call or unreadable file, 3 nothing known matches.
    """
    from pypto_op.diagnose import knowledge
    from pypto_op.diagnose.kernel_text import read_kernel
    from pypto_op.diagnose.log_text import read_log
    from pypto_op.diagnose.search import asked_rules
    from pypto_op.diagnose.search import diagnose as search
    from pypto_op.errors import ContractError

    if list_all:
        for entry in knowledge.entries():
            click.echo(f"{entry.id:28} {entry.title}")
        return 0
    if show:
        _show(knowledge.entry(show))
        return 0
    if log is None:
        raise ContractError("no log given", remedy="say --log FILE, or --list for what is known")
    text = read_log(log)
    found = search(text, read_kernel(kernel, asked_rules()) if kernel else None)
    if as_json:
        click.echo(json.dumps(found.as_dict(), indent=2, ensure_ascii=False))
    else:
        for hit in found.hits:
            place = f"{hit.file}:{hit.line}: " if hit.line else ""
            click.echo(f"{place}{hit.entry.title} [{hit.entry.id}]")
            if hit.code:
                click.echo(f"  line   {hit.code}")
            click.echo(f"  seen   {hit.seen}\n  cause  {hit.entry.cause}\n  remedy {hit.entry.remedy}")
            if hit.entry.rules:
                click.echo(f"  rules  {', '.join(hit.entry.rules)}")
        if not found.hits:
            click.echo(f"no known mistake matches ({len(knowledge.entries())} searched)", err=True)
        if found.undecided:
            click.echo(f"give --kernel FILE to decide about: {', '.join(found.undecided)}", err=True)
    return int(ExitCode.OK if found.hits else NOTHING_FOUND)


def _show(found: Entry) -> None:
    rules = f"\nrules:  {', '.join(found.rules)}" if found.rules else ""
    click.echo(f"{found.id}: {found.title}\ncause:  {found.cause}\nremedy: {found.remedy}{rules}")
    click.echo(f"\n# the mistake\n{found.example.mistake}\n# mended\n{found.example.mended}")
