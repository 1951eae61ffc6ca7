"""`pypto-op install`: put the bundle into a workspace, or take it out."""

from __future__ import annotations

import importlib.util
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
@click.option("--harness", type=click.Choice(["claude", "opencode", "both"]), required=True, help="Which client to set up.")
@click.option("--target", type=click.Path(path_type=Path), required=True, help="The workspace that holds, or will hold, custom/.")
@click.option("--uninstall", is_flag=True, help="Remove what was installed.")
@click.option("--dry-run", is_flag=True, help="Say what would happen and change nothing.")
@click.option("--files-only", is_flag=True, help="Write the files, but do not look for the client or tell it.")
def install(harness: str, target: Path, uninstall: bool, dry_run: bool, files_only: bool) -> int:
    """Set up Claude Code, OpenCode or both in the workspace --target.

    Files of yours are never replaced: if one is in the way, nothing is written. Run again after an update; run with
    --uninstall to remove everything that was written and not changed since. Exit status: 0 done, 2 refused, 3 the machine
    cannot do it (client, Python or rights missing).
    """
    from pypto_op.install.target import Target

    check_python(sys.version_info[:2])
    place = Target(target)
    chosen = ["claude", "opencode"] if harness == "both" else [harness]
    return _remove(place, chosen, dry_run, files_only) if uninstall else _add(place, chosen, dry_run, files_only)


def check_python(version: tuple[int, int]) -> None:
    """Raise InfraError when this Python cannot serve hooks and MCP server."""
    if not OLDEST <= version <= NEWEST:
        wanted = f"{OLDEST[0]}.{OLDEST[1]} to {NEWEST[0]}.{NEWEST[1]}"
        raise InfraError(
            f"Python {wanted} is needed and this is {version[0]}.{version[1]}", remedy="run it with the bundle's .venv"
        )
    if importlib.util.find_spec("mcp") is None:
        raise InfraError("this Python lacks the package mcp", remedy=extra_remedy("mcp"))


def _add(place: Target, chosen: list[str], dry_run: bool, files_only: bool) -> int:
    from pypto_op.bundle_files import bundle_root
    from pypto_op.install import claude_client
    from pypto_op.install.render import Plan, render
    from pypto_op.workspace import check_runnable

    if not files_only:
        for client in chosen:
            claude_client.find(client)
    harnesses = sorted({*place.harnesses, *chosen})
    marketplace = claude_client.marketplace_name(place.root)
    plan: Plan = {}
    for harness in harnesses:
        plan |= render(harness, marketplace=marketplace)
    found = place.changes(plan)
    if "claude" in chosen:
        _refuse_own_agents(place)
    before = place.manifest.get("version")
    if before and (before, place.manifest["bundle"]) != (_own_version(), str(bundle_root())):
        click.echo(f"replaces version {before} from {place.manifest['bundle']}")
    _tell(place, found, "would write" if dry_run else "writes")
    if dry_run:
        return 0
    place.check_writable()
    if found.write or found.remove or harnesses != place.harnesses:
        place.apply(plan, found, harnesses, bundle_root(), marketplace)
    if not files_only and "claude" in chosen:
        claude_client.register(place.root, marketplace)
    for harness in chosen:
        click.echo(_next_step(harness, place.root, files_only))
    try:
        check_runnable(place.root)
    except InfraError as error:  # no refusal: the team can plan here, and a person may move the folder
        click.echo(f"note: {error.one_line()}", err=True)
    return 0


def _remove(place: Target, chosen: list[str], dry_run: bool, files_only: bool) -> int:
    from pypto_op.bundle_files import bundle_root
    from pypto_op.install import claude_client
    from pypto_op.install.render import Plan, render

    if not set(chosen) & set(place.harnesses):
        click.echo(f"nothing of pypto-op is installed for {' and '.join(chosen)} in {place.root}")
        return 0
    left = [harness for harness in place.harnesses if harness not in chosen]
    marketplace = place.manifest["marketplace"]
    if left:
        plan: Plan = {}
        for harness in left:
            plan |= render(harness, marketplace=marketplace)
        found = place.changes(plan)
    else:
        plan, found = {}, place.removal()
    _tell(place, found, "would write" if dry_run else "writes")
    if dry_run:
        return 0
    place.check_writable()
    if "claude" in chosen and not files_only:
        claude_client.unregister(place.root, marketplace, made_settings=place.made_settings)
    if left:
        place.apply(plan, found, left, bundle_root(), marketplace)
    else:
        place.uninstall(found)
    return 0


def _refuse_own_agents(place: Target) -> None:
    """Refuse agents of the team's names in the project: the guards could not tell them from the team's."""
    from pypto_op.bundle.agents import load_agents
    from pypto_op.errors import ContractError

    own = [name for agent in load_agents() if (place.root / (name := f".claude/agents/{agent.name}.md")).exists()]
    if own:
        raise ContractError(
            f"agents of the same name are there: {', '.join(own)}", file=place.root, remedy="rename them; nothing was written"
        )


def _own_version() -> str:
    from pypto_op import __version__

    return __version__


def _tell(place: Target, found: Changes, verb: str) -> None:
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
