"""`pypto-op diagnose` and `pypto-op triage`: name what a log shows, and the one skill that goes on from there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pypto_op.options import op_dir_argument
from pypto_op.vocabulary import ExitCode
from pypto_op.workspace import typed

if TYPE_CHECKING:
    from pypto_op.diagnose.knowledge import Entry
    from pypto_op.diagnose.search import Hit

NOTHING_FOUND = ExitCode.INFRA
"""Exit code 3: the log shows nothing that is known. The number is the contract; nothing is wrong with the machine."""

_UNKNOWN = "give all that the run printed, as text, or ask `pypto-op triage OP_DIR` which skill goes on"


@click.command("diagnose")
@click.argument("given", required=False, metavar="[WHAT]")
@click.option("--log", "--error-log", "log", metavar="TEXT|PATH", help="The same as WHAT; `-` reads stdin.")
@click.option("--kernel", "--kernel-code", "kernel", metavar="TEXT|PATH", help="The file that ran; decides between causes.")
@click.option("--show", metavar="ID", help="Print an entry instead, with its example, mistaken and mended.")
@click.option("--list", "list_all", is_flag=True, help="List what is known instead.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON (schemas/diagnosis.schema.json).")
def diagnose(given: str | None, log: str | None, kernel: str | None, show: str | None, list_all: bool, as_json: bool) -> int:
    """Name the known mistake that a failed run shows, with its cause, its remedy and the skill that goes on from there.

    WHAT is an operator's folder, a failure folder (custom/OP/_debug/failures/CASE), a log of any size, a report, a folder of
    device logs, or the error text itself.

    Exit status: 0 found, 2 wrong call, no such file or unreadable file, 3 nothing known matches.
    """
    from pypto_op.diagnose import knowledge
    from pypto_op.diagnose.search import explain
    from pypto_op.errors import ContractError

    if list_all:
        for entry in knowledge.entries():
            click.echo(f"{entry.id:28} {entry.title}")
        return 0
    if show:
        _show(knowledge.entry(show))
        return 0
    what = given if log is None else log
    if what is None or (given is not None and log is not None):
        raise ContractError("say once what is to be diagnosed", remedy="a log, a failure folder or an operator; --list shows all")
    found = explain(what, kernel)
    if as_json:
        click.echo(json.dumps(found.as_dict(), indent=2, ensure_ascii=False))
        return int(ExitCode.OK if found.hits else NOTHING_FOUND)
    for hit in found.hits:
        click.echo(_told(hit))
    for note in found.notes:
        click.echo(note, err=True)
    if not found.hits and not found.passed:
        advice = "" if found.pointed else f"; {_UNKNOWN}"  # one remedy: a verdict's own reason is no lack of words
        click.echo(f"nothing known matches ({len(knowledge.entries())} searched){advice}", err=True)
    if found.undecided:
        click.echo(f"give --kernel FILE to decide about: {', '.join(found.undecided)}", err=True)
    return int(ExitCode.OK if found.hits else NOTHING_FOUND)


def _told(hit: Hit) -> str:
    place = f"{hit.file}:{hit.line}: " if hit.line else ""
    lines = [f"{place}{hit.entry.title} [{hit.entry.id}] ({hit.confidence:.0%})"]
    if hit.code:
        lines.append(f"  line   {hit.code}")
    at = f" ({':'.join(str(part) for part in hit.log if part)})" if hit.log[1] else ""
    lines.append(f"  seen   {hit.seen}{at}\n  cause  {hit.entry.cause}\n  fix    {hit.entry.remedy}")
    lines.append(f"  skill  {hit.entry.skill} ({hit.entry.category})")
    if hit.entry.rules:
        lines.append(f"  rules  {', '.join(hit.entry.rules)}")
    return "\n".join(lines)


def _show(found: Entry) -> None:
    rules = f"\nrules:  {', '.join(found.rules)}" if found.rules else ""
    click.echo(f"{found.id}: {found.title}\ncause:  {found.cause}\nfix:    {found.remedy}")
    click.echo(f"skill:  {found.skill} ({found.category}){rules}")
    if found.example:
        click.echo(f"\n# the mistake\n{found.example.mistake}\n# mended\n{found.example.mended}")
    else:
        click.echo(f"source: {found.source}")


@click.command("triage")
@op_dir_argument()
@click.option("--log", metavar="TEXT|PATH", help="What the failed run printed, where no verdict holds it (a device run, say).")
@click.option("--json", "as_json", is_flag=True, help="Print JSON (schemas/triage.schema.json).")
def triage(op_dir: Path, log: str | None, as_json: bool) -> int:
    """Say of OP_DIR's failure which category it is, which fingerprint it has, and which one skill to load, and why.

    Exit status: 0 routed, 2 nothing failed here or a file cannot be read, 3 no verdict is there to go by, and either no --log
    or none that says anything known: what was still found is printed, what is missing is said.
    """
    from pypto_op.diagnose.triage import triage as run
    from pypto_op.workspace import OpWorkspace

    found = run(OpWorkspace.of_files(op_dir), log)
    click.echo(json.dumps(found, indent=2, ensure_ascii=False) if as_json else _routed(found))
    if found["status"] is not None or (log is not None and found["hits"]):
        return 0
    missing = "no verdict is there" if log is None else "no verdict is there, and the words of --log say nothing that is known"
    click.echo(f"{op_dir}: {missing}; run `pypto-op verify {typed(op_dir)}`", err=True)
    return int(NOTHING_FOUND)


def _routed(found: dict[str, Any]) -> str:
    skill = found["skill"] or "none yet"
    page = f", {found['page']}" if found["page"] else ""
    module = f", module boundary M{found['failing_module_boundary']}" if found["failing_module_boundary"] else ""
    lines = [
        f"{found['category']}: load {skill}{page}",
        f"  why         {found['why']}",
        f"  case        {found['case_id'] or '-'} ({found['mode'] or '-'}){module}",
        f"  fingerprint {found['fingerprint'] or '-'}",
    ]
    lines += [f"  {signal['from']:11} {signal['says']}" for signal in found["signals"]]
    lines += [f"  BUT         {words}" for words in found["contradictions"]]
    lines += [f"  note        {words}" for words in found["notes"]]
    return "\n".join([*lines, *(f"next: {command}" for command in found["next"])])
