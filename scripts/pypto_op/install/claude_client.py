"""Tells the Claude Code client of the plugin, through the client's own commands."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path

from pypto_op.errors import InfraError
from pypto_op.install.render import CLAUDE_PLUGIN

SETTINGS = ".claude/settings.json"
"""Where the client notes, in the target, that the plugin is enabled."""

_SECONDS = 120
_PLUGIN = "pypto-op"


def marketplace_name(target: Path) -> str:
    """Return the marketplace's name: one for each target, since the client keeps them by name for the whole account."""
    return f"pypto-op-{hashlib.sha256(str(target).encode()).hexdigest()[:8]}"


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
    """Enable the plugin for the project at `target`.

    Raises:
        InfraError: the client refuses.
    """
    _run(target, "marketplace", "add", str(target / CLAUDE_PLUGIN))
    _run(target, "install", f"{_PLUGIN}@{marketplace}", "--scope", "project")


def unregister(target: Path, marketplace: str, *, made_settings: bool) -> None:
    """Disable the plugin again; what the client does not know any more is no error.

    Args:
        target: the workspace.
        marketplace: the marketplace's name.
        made_settings: the settings file came with the installation, so it goes when nothing else is in it.
    """
    _run(target, "uninstall", f"{_PLUGIN}@{marketplace}", "--scope", "project", must=False)
    _run(target, "marketplace", "remove", marketplace, must=False)
    settings = target / SETTINGS
    if made_settings and settings.is_file() and json.loads(settings.read_text(encoding="utf-8")) == {"enabledPlugins": {}}:
        settings.unlink()
        with contextlib.suppress(OSError):  # not empty: the user keeps something there
            settings.parent.rmdir()


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
