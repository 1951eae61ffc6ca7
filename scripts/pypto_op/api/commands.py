"""`pypto-op api`: ask what the installed pypto offers."""

from __future__ import annotations

import json
from typing import Any

import click


@click.command("api")
@click.argument("name", required=False)
@click.option("--search", metavar="WORDS", help="Find operations by what they do.")
@click.option("--list", "list_all", is_flag=True, help="List every public name.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON (schemas/api_entry.schema.json).")
@click.option("--pypto", "release", metavar="VERSION", help="Ask this pypto instead of the installed one: names and parameters.")
def api(name: str | None, search: str | None, list_all: bool, as_json: bool, release: str | None) -> int:
    """Describe NAME: signature, constraints, dtypes and an example that runs.

    NAME is `exp`, `pypto.exp`, `Tensor.view`, `frontend.jit`, ... Exit status: 0 done, 2 no such name (the nearest
    ones are named) or a wrong call, 3 pypto is not installed.
    """
    from pypto_op.api import index
    from pypto_op.errors import ContractError

    if sum((bool(name), bool(search), list_all)) != 1:
        raise ContractError("say one of NAME, --search WORDS, --list", remedy="for example `pypto-op api matmul`")
    if name:
        entry = index.describe(name, release)
        click.echo(json.dumps(entry, indent=2) if as_json else _page(entry))
        return 0
    found = index.load(release)
    rows = list(found.entries.values()) if list_all else found.search(search or "")
    if as_json:
        told = [way.how for way in index.ways(search or "")]
        kept = [{key: row[key] for key in ("name", "kind", "signature", "summary")} for row in rows]
        click.echo(json.dumps({"schema_version": 1, "pypto_version": found.version, "ways": told, "names": kept}, indent=2))
    else:
        for way in index.ways(search or ""):
            click.echo(f"{', '.join(way.words)}: {way.how}")
        for row in rows:
            click.echo(f"{row['name'].removeprefix('pypto.'):26} {row['summary'] or row['signature'][:90]}".rstrip())
        if not rows:
            click.echo("nothing fits; try other words, or --list", err=True)
    return 0


def _page(entry: dict[str, Any]) -> str:
    title = f"{entry['name']}  ({entry['kind']}, pypto {entry['pypto_version']})"
    lines = [title, f"  {entry['signature']}" if entry["signature"] else ""]
    lines += [entry["summary"], f"  members: {', '.join(entry['members'])}" if entry["members"] else ""]
    if entry["parameters"]:
        lines += ["parameters:", *(f"  {row['name']}: {row['type']}  {row['text']}".rstrip() for row in entry["parameters"])]
    if entry["returns"]:
        lines.append(f"returns: {entry['returns']}")
    for title, key in (("constraints", "constraints"), ("notes", "notes"), ("raises", "raises")):
        if entry[key]:
            lines += [f"{title}:", *(f"  - {text}" for text in entry[key])]
    documented = ", ".join(entry["dtypes_documented"]) or "the docstring names none"
    ran = f"; run in the example: {', '.join(entry['dtypes_run'])}" if entry["dtypes_run"] else ""
    if entry["kind"] in ("function", "method"):
        lines.append(f"dtypes: {documented}{ran}")
    if entry["example"]:
        lines += [f"example (runs, equals {entry['equals']}):", *(f"  {line}" for line in entry["example"].splitlines())]
    return "\n".join(line.rstrip() for line in lines if line)
