"""`pypto-op doctor --target DIR`: what is wrong with an installed workspace, and its repair."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import click

from pypto_op.errors import ContractError
from pypto_op.install import claude_client, steps
from pypto_op.install.target import Target
from pypto_op.vocabulary import ExitCode

_PLACES = {"claude": ".pypto-op/claude/hooks/place.sh", "opencode": ".opencode/pypto-op/hooks/place.sh"}
_SECONDS = 60


def examine(place: Target) -> list[str]:
    """Return what is wrong with an installed workspace, one line each; an empty list when nothing is.

    Raises:
        ContractError: nothing is installed there, or a file of the user's own is in the way.
    """
    if not place.harnesses:
        remedy = f"run `pypto-op install --harness both --target {shlex.quote(str(place.root))}`"
        raise ContractError("pypto-op is not installed in this workspace", file=place.root, remedy=remedy)
    found = [line for harness in place.harnesses for line in _place_problems(place, harness)]
    changes = steps.look(place, list(place.harnesses), files_only=True)
    here = {*_PLACES.values()}
    for path in changes.write:
        if path not in here:
            found.append(f"{path}: {'is not what this bundle writes' if (place.root / path).exists() else 'is missing'}")
    found += [f"{path}: is left from another version" for path in changes.remove]
    return list(dict.fromkeys(found)) + _client_problems(place)


def repair(place: Target) -> None:
    """Write everything that is installed anew, for this bundle and its Python.

    Raises:
        ContractError: files that were changed by hand are in the way.
        InfraError: the target cannot be written, or the client refuses.
    """
    told = place.registered and shutil.which("claude") is not None
    if told:
        place.note(registered=False)  # tell the client again, even where the settings look right
    steps.add(place, [h for h in place.harnesses if h != "claude"], files_only=True, gitignore=".gitignore" in place.edits)
    if "claude" in place.harnesses:
        steps.add(place, ["claude"], files_only=not told, gitignore=False)


def run(target: Path, *, dry_run: bool) -> int:
    """Examine the workspace at `target`, say what was found, and repair it; return the exit code."""
    place = Target(target)
    found = examine(place)
    for line in found:
        click.echo(f"found: {line}")
    if not found:
        click.echo(f"{place.root}: everything is as it was installed, for {' and '.join(place.harnesses)}")
        return int(ExitCode.OK)
    if dry_run:
        return int(ExitCode.CONTRACT)
    repair(place)
    left = examine(Target(target))
    for line in left:
        click.echo(f"left: {line}", err=True)
    click.echo(f"{place.root}: {'repaired' if not left else 'repaired in part'}; start a new session there")
    return int(ExitCode.OK if not left else ExitCode.INFRA)


def _place_problems(place: Target, harness: str) -> list[str]:
    path = place.root / _PLACES[harness]
    if not path.is_file():
        return [f"{_PLACES[harness]}: is missing"]
    named = dict(re.findall(r"^(bundle|python)=(.*)$", path.read_text(encoding="utf-8", errors="replace"), re.MULTILINE))
    bundle, python = ("".join(shlex.split(named.get(key, ""))) for key in ("bundle", "python"))
    if not (Path(bundle) / "hooks" / "hook.py").is_file():
        return [f"{harness}: the bundle at {bundle or 'no place'} is gone"]
    if bundle != steps.own_place()[1]:
        return [f"{harness}: another bundle answers there, {bundle}"]
    return [f"{harness}: {said}"] if (said := _python_problem(python)) else []


def _python_problem(python: str) -> str:
    """Return why an interpreter cannot serve hooks and MCP server, or an empty text."""
    code = "import yaml, libcst, click, mcp, pypto_op.cli, pypto_op_lint.api"
    try:
        done = subprocess.run([python, "-s", "-c", code], capture_output=True, text=True, timeout=_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"the Python {python or '(none)'} does not run ({type(error).__name__})"
    if done.returncode == 0:
        return ""
    return f"the Python {python} cannot serve: {done.stderr.strip().rpartition(chr(10))[2][:160] or 'it ended'}"


def _client_problems(place: Target) -> list[str]:
    if not place.registered or shutil.which("claude") is None:
        return []
    path = claude_client.SETTINGS
    settings = place.root / path
    if not settings.is_file() or path not in place.edits:
        return [f"{path}: does not enable the plugin"]
    marketplace = claude_client.marketplace_name(place.root)
    text = settings.read_text(encoding="utf-8", errors="replace")
    if f'"pypto-op@{marketplace}"' not in text:
        return [f"{path}: does not enable the plugin of this folder"]
    return [] if claude_client.knows(place.root, marketplace) else ["Claude Code: does not know the plugin"]
