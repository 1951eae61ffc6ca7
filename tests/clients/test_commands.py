"""`/pypto-op:status` and the like, typed in the real clients."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.clients.installed import claude_environment, needs, opencode_environment, opencode_provider
from tests.clients.test_bundle import run_client
from tests.hooks.scripted_model import scripted_model
from tests.install.places import ROOT, install
from tests.quickly import needs_package

pytestmark = [pytest.mark.client, pytest.mark.slow, needs_package("mcp")]

NAMES = {path.stem for path in (ROOT / "commands").glob("*.md")}
TYPED = "soft [[actor:main]]"
TOLD = "run `pypto-op state status --op-dir custom/NAME`"


def test_claude_code(tmp_path: Path) -> None:
    claude = needs("claude")
    (tmp_path / "home").mkdir()
    with scripted_model({}) as model:
        environment = claude_environment({"HOME": str(tmp_path / "home"), "LANG": "C.UTF-8"}, model.port)
        install(ROOT, tmp_path / "work", harness="claude", env=environment)
        command = [claude, "-p", f"/pypto-op:status {TYPED}", "--model", "claude-sonnet-4-5"]
        done = run_client([*command, "--output-format", "stream-json", "--verbose"], tmp_path / "work", environment)
    begun = next(line for text in done.stdout.splitlines() if (line := json.loads(text)).get("subtype") == "init")
    assert {f"pypto-op:{name}" for name in NAMES} <= set(begun["slash_commands"])
    asked = model.told("main", 0)
    assert TOLD in asked and f"stands: {TYPED}" in asked


def test_opencode(tmp_path: Path) -> None:
    opencode = needs("opencode")
    (tmp_path / "home").mkdir()
    environment = opencode_environment({"HOME": str(tmp_path / "home"), "LANG": "C.UTF-8"}, tmp_path / "home")
    environment["OPENCODE_CONFIG"] = str(tmp_path / "opencode.json")
    install(ROOT, tmp_path / "work", harness="opencode", env=environment)
    with scripted_model({}) as model:
        (tmp_path / "opencode.json").write_text(json.dumps(opencode_provider(model.port)))
        command = [opencode, "run", "--format", "json", "--command", "pypto-op:status", TYPED]
        run_client(command, tmp_path / "work", environment)
    asked = model.told("main", 0)
    assert TOLD in asked and f'stands: "{TYPED}"' in asked, "the client quotes its arguments"
