"""Tells the Claude Code client of the plugin, through the client's own commands, for this workspace alone."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

from pypto_op.errors import InfraError
from pypto_op.install.edits import Tables
from pypto_op.install.render import CLAUDE_PLUGIN

SETTINGS = ".claude/settings.local.json"
"""Where the client notes that the plugin is enabled: the file for one machine, which a project does not share."""

_SECONDS = 120
_PLUGIN = "pypto-op"


def marketplace_name(target: Path) -> str:
    """Return the marketplace's name: one for each target, since the client keeps them by name for the whole account."""
    return f"pypto-op-{hashlib.sha256(str(target).encode()).hexdigest()[:8]}"


def entries(target: Path, marketplace: str) -> Tables:
    """Return what the settings file must say for the client to load the plugin."""
    source = {"source": "directory", "path": str(target / CLAUDE_PLUGIN)}
    return {"extraKnownMarketplaces": {marketplace: {"source": source}}, "enabledPlugins": {f"{_PLUGIN}@{marketplace}": True}}


def find(name: str) -> str:
    """Return the path of a harness client.

    Raises:
        InfraError: it is not installed.
    """
    found = shutil.which(name)
    if found is None:
        word = {"claude": "Claude Code", "opencode": "OpenCode"}[name]
        raise InfraError(f"{word} is not installed", remedy=f"install it, so that `{name}` is on PATH, or add --files-only")
    return found


def register(target: Path, marketplace: str) -> None:
    """Let the client know the plugin at `target`. It lays its settings file out anew: the caller puts that right.

    Raises:
        InfraError: the client refuses.
    """
    _run(target, "marketplace", "add", str(target / CLAUDE_PLUGIN), "--scope", "local")
    _run(target, "install", f"{_PLUGIN}@{marketplace}", "--scope", "local")


def unregister(target: Path, marketplace: str) -> None:
    """Let the client forget the plugin; what it does not know any more is no error, nor is a client that is gone."""
    if shutil.which("claude") is None:
        return
    _run(target, "uninstall", f"{_PLUGIN}@{marketplace}", "--scope", "local", must=False)
    _run(target, "marketplace", "remove", marketplace, must=False)


def knows(target: Path, marketplace: str) -> bool:
    """Say whether the client has the plugin of this target in its list."""
    command = [find("claude"), "plugin", "list", "--json"]
    try:
        done = subprocess.run(
            command, cwd=target, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_SECONDS,
            env={**os.environ, "DISABLE_AUTOUPDATER": "1"}, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return False
    return f"{_PLUGIN}@{marketplace}" in done.stdout


def _run(target: Path, *words: str, must: bool = True) -> None:
    command = [find("claude"), "plugin", *words]
    try:
        done = subprocess.run(
            command, cwd=target, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_SECONDS,
            env={**os.environ, "DISABLE_AUTOUPDATER": "1"}, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InfraError(f"`claude plugin {words[0]}` did not run ({type(error).__name__})") from None
    if must and done.returncode:
        said = " ".join((done.stderr or done.stdout).split())[-200:]
        raise InfraError(f"`claude plugin {' '.join(words[:2])}` failed: {said}", remedy="run it by hand, or add --files-only")
