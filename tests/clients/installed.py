"""Where the pinned clients are, and the hermetic environment that they run in."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / ".clients"


def search_path() -> str:
    """Return PATH with the pinned clients in front."""
    return os.pathsep.join([str(FOLDER / "node_modules" / ".bin"), str(FOLDER / "bin"), os.environ.get("PATH", os.defpath)])


def needs(client: str) -> str:
    """Return the client's path; skip where it is not installed, fail where CI demands it."""
    found = shutil.which(client, path=search_path())
    if found:
        return found
    if os.environ.get("CI") == "true":
        pytest.fail(f"{client} is not installed, and CI=true demands it: run `make clients`")
    pytest.skip(f"{client} is not installed: run `make clients` (needs Node)")


def claude_environment(base: dict[str, str], port: int) -> dict[str, str]:
    """Return `base` with what keeps Claude Code to the scripted model on the loopback interface."""
    quiet = "DISABLE_TELEMETRY DISABLE_ERROR_REPORTING DISABLE_AUTOUPDATER CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"
    return {
        **{name: value for name, value in base.items() if name != "CLAUDE_PROJECT_DIR"},
        "PATH": search_path(),
        **dict.fromkeys(quiet.split(), "1"),
        "CLAUDE_CODE_DISABLE_OFFICIAL_MARKETPLACE_AUTOINSTALL": "1",
        "MCP_CONNECTION_NONBLOCKING": "0",
        "MCP_TIMEOUT": "120000",
        # Its first request waits 5 s for the server by default; a busy machine takes longer.
        "MCP_CONNECT_TIMEOUT_MS": "120000",
        "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{port}",
        "ANTHROPIC_API_KEY": "dummy",
    }


def opencode_environment(base: dict[str, str], home: Path) -> dict[str, str]:
    """Return `base` with what keeps OpenCode in a fresh home and off the network."""
    quiet = "AUTOUPDATE MODELS_FETCH SHARE LSP_DOWNLOAD DEFAULT_PLUGINS"
    return {
        **base,
        "PATH": search_path(),
        "HOME": str(home),
        "npm_config_offline": "true",
        **{f"XDG_{name}_HOME": str(home / name) for name in ("CONFIG", "DATA", "STATE")},
        **{f"OPENCODE_DISABLE_{name}": "1" for name in quiet.split()},
    }


def opencode_provider(port: int) -> dict[str, object]:
    """Return the part of opencode.json that names the scripted model as the only one."""
    options = {"baseURL": f"http://127.0.0.1:{port}/v1", "apiKey": "dummy"}
    model = {"name": "m1", "tool_call": True, "limit": {"context": 200000, "output": 8000}}
    provider = {"npm": "@ai-sdk/anthropic", "options": options, "models": {"m1": model}}
    return {
        "model": "scripted/m1",
        "small_model": "scripted/m1",
        "autoupdate": False,
        "share": "disabled",
        "snapshot": False,
        "enabled_providers": ["scripted"],
        "provider": {"scripted": provider},
    }
