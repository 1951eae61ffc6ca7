"""`pypto-op install`: put the bundle into a workspace, or take it out."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pypto_op.bundle_files import extra_remedy
from pypto_op.errors import InfraError

if TYPE_CHECKING:
    from pypto_op.install.target import Changes, Target

OLDEST, NEWEST = (3, 10), (3, 12)


@click.command("install")
@click.option("--harness", type=click.Choice(["claude", "opencode", "both"]), help="Which client to set up.")
@click.option("--target", type=click.Path(path_type=Path), required=True, help="The workspace; made if it is not there.")
@click.option("--uninstall", is_flag=True, help="Remove what was installed, of --harness alone where it is named.")
@click.option("--dry-run", is_flag=True, help="Say what would happen and change nothing.")
@click.option("--files-only", is_flag=True, help="Write the files, but do not look for the client or tell it.")
@click.option("--gitignore", is_flag=True, help="Add what is installed to the workspace's .gitignore.")
@click.option("--json", "as_json", is_flag=True, help="Print what was written and removed as JSON.")
def install(
    harness: str | None, target: Path, uninstall: bool, dry_run: bool, files_only: bool, gitignore: bool, as_json: bool
) -> int:
    """Set up Claude Code, OpenCode or both in the workspace --target.

    Files of yours are never replaced: if one is in the way, nothing is written. Run again after an update; run with
    --uninstall to remove everything that was written and not changed since. Exit status: 0 done, 2 refused, 3 the machine
    cannot do it (client, Python or rights missing).
    """
    from pypto_op.install import steps
    from pypto_op.install.target import Target

    if harness is None and not uninstall:
        raise click.UsageError("Missing option '--harness'. Choose from: claude, opencode, both")
    check_python(sys.version_info[:2])
    place = Target(target, make=not uninstall)
    chosen = ["claude", "opencode"] if harness in (None, "both") else [str(harness)]
    if uninstall:
        return _remove(place, chosen, dry_run, files_only, as_json=as_json)
    found = steps.look(place, chosen, files_only=files_only)
    before = place.manifest.get("version")
    if not as_json and before and (before, place.manifest["bundle"]) != steps.own_place():
        click.echo(f"replaces version {before} from {place.manifest['bundle']}")
    _tell(place, found, "would write" if dry_run else "writes", as_json=as_json)
    if dry_run:
        return 0
    steps.add(place, chosen, files_only=files_only, gitignore=gitignore)
    if not as_json:
        _say_what_now(place, chosen, files_only)
    return 0


def check_python(version: tuple[int, int]) -> None:
    """Raise InfraError when this Python cannot serve hooks and MCP server."""
    if not OLDEST <= version <= NEWEST:
        wanted = f"{OLDEST[0]}.{OLDEST[1]} to {NEWEST[0]}.{NEWEST[1]}"
        raise InfraError(
            f"Python {wanted} is needed and this is {version[0]}.{version[1]}", remedy="run it with the bundle's .venv"
        )
    if importlib.util.find_spec("mcp") is None:
        raise InfraError("this Python lacks the package mcp", remedy=extra_remedy("mcp"))


def _remove(place: Target, chosen: list[str], dry_run: bool, files_only: bool, *, as_json: bool) -> int:
    from pypto_op.install import steps

    if not set(chosen) & set(place.harnesses):
        nothing = f"nothing of pypto-op is installed for {' and '.join(chosen)} in {place.root}"
        click.echo(json.dumps({"target": str(place.root), "write": [], "remove": []}) if as_json else nothing)
        return 0
    found = steps.look_at_removal(place, chosen)
    _tell(place, found, "would write" if dry_run else "writes", as_json=as_json)
    if not dry_run:
        steps.remove(place, chosen, files_only=files_only)
    return 0


def _say_what_now(place: Target, chosen: list[str], files_only: bool) -> None:
    from pypto_op.install.steps import GITIGNORE
    from pypto_op.workspace import check_runnable

    for harness in chosen:
        click.echo(_next_step(harness, place.root, files_only))
    if (place.root / ".git").exists() and ".gitignore" not in place.edits:
        lines = [line for harness in chosen for line in GITIGNORE[harness]]
        click.echo(f"to keep it out of git, run again with --gitignore: it adds {' '.join(dict.fromkeys(lines))}")
    try:
        check_runnable(place.root)
    except InfraError as error:  # no refusal: the team can plan here, and a person may move the folder
        click.echo(f"note: {error.told()}", err=True)


def _tell(place: Target, found: Changes, verb: str, *, as_json: bool) -> None:
    if as_json:
        lists = {"write": sorted(map(str, found.write)), "remove": sorted(map(str, found.remove))}
        click.echo(json.dumps({"target": str(place.root), **lists, "dry_run": verb.startswith("would")}, indent=2))
        return
    removes = "would remove" if verb.startswith("would") else "removes"
    click.echo(
        f"{place.root}: {verb} {len(found.write)} files, {removes} {len(found.remove)}, leaves {len(found.same)} as they are"
    )
    if verb.startswith("would"):
        for sign, paths in (("+", found.write), ("-", found.remove)):
            for path in paths:
                click.echo(f"  {sign} {path}")
    for path in found.keep:
        click.echo(f"  kept, since it was changed by hand: {path}", err=True)


def _next_step(harness: str, root: Path, files_only: bool) -> str:
    from pypto_op.install.render import CLAUDE_PLUGIN

    if harness == "opencode":
        return f"OpenCode: run `opencode --agent pypto-op-orchestrator` in {root}"
    option = f' --plugin-dir "{root / CLAUDE_PLUGIN}"' if files_only else ""
    return f"Claude Code: run `claude{option} --agent pypto-op:pypto-op-orchestrator` in {root}"
