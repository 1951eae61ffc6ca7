"""The hooks inside the real Claude Code and OpenCode, with a scripted model: what the model really receives.

`make clients` installs the clients; where there is none the tests skip and say so. Only our own words are asserted,
never a client's.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.clients.installed import claude_environment, needs, opencode_environment, opencode_provider
from tests.hooks.conftest import BAD_IMPL, ROOT, Harness
from tests.hooks.scripted_model import Script, scripted_model

pytestmark = [pytest.mark.client, pytest.mark.slow]

OP = "custom/soft"
BANNER = "[pypto-op-lint] 产物写入后即时门禁未通过(S0/S1)"
HIDDEN_WRITE = (
    "import base64\n"
    "path = base64.b64decode('Y3VzdG9tL3NvZnQvbW9kdWxlcy9zb2Z0X21vZHVsZTFfaW1wbC5weQ==').decode()\n"
    "open(path, 'a').write('import pypto as q\\n')\n"
)
"""A script whose target the guard cannot read before it runs: what it wrote must be found afterwards."""


def _script(names: dict[str, str], path_key: str, dispatch: dict[str, Any]) -> Script:
    def call(tool: str, **tool_input: Any) -> dict[str, Any]:
        return {"tools": [{"name": names[tool], "input": tool_input}]}

    new = "custom/fresh/fresh_impl.py"
    return {
        "main": [
            call("write", **{path_key: new, "content": BAD_IMPL.replace("soft", "fresh")}),
            call("write", **{path_key: f"{OP}/.orchestrator_plan.json", "content": "{}"}),
            call("bash", command=f"echo x > {OP}/soft_impl.py", description="x"),
            call("bash", command="python3 src/hidden.py", description="x"),
            {"tools": [dispatch]},
        ],
        "coder": [
            call("write", **{path_key: f"{OP}/notes.md", "content": "x"}),
            call("read", **{path_key: f"{OP}/modules/soft_module1_golden.py"}),
            call("write", **{path_key: f"{OP}/modules/soft_module12_impl.py", "content": "x"}),
            call("bash", command=f"pypto-op state init --op-dir {OP}", description="x"),
        ],
    }


def _bundle(folder: Path) -> Path:
    """Return a plugin in a folder with a space in its name: our hooks, one agent."""
    bundle = folder / "the bundle"
    (bundle / ".claude-plugin").mkdir(parents=True)
    (bundle / "agents").mkdir()
    for room in ("hooks", "lint", "scripts", ".venv"):
        (bundle / room).symlink_to(ROOT / room)
    about = {"name": "pypto-op", "version": "0.0.1", "description": "x", "author": {"name": "x"}}
    (bundle / ".claude-plugin/plugin.json").write_text(json.dumps(about))
    agent = "---\nname: pypto-op-coder\ndescription: codes\ntools: Read, Write, Bash\n---\nYou code.\n"
    (bundle / "agents/pypto-op-coder.md").write_text(agent)
    return bundle


def _told_as_expected(told: Any) -> None:
    """What both harnesses must hand to the model."""
    assert BANNER in told("main", 1)
    assert "blocking_rules: OL01" in told("main", 1)
    assert "fix_hints:" in told("main", 1)
    assert "belongs to the state machine" in told("main", 2)
    assert "[is_error]" in told("main", 2)
    assert "past the linter" in told("main", 3)
    assert "soft_module1_impl.py" in told("main", 4)
    assert BANNER in told("main", 4)
    assert "pypto-op-coder does not own it" in told("coder", 1)
    assert "information barrier" in told("coder", 2)
    assert "the active phase is M1" in told("coder", 3)
    assert "only pypto-op-orchestrator" in told("coder", 4)


def test_claude_code(harness: Harness, tmp_path: Path) -> None:
    claude = needs("claude")
    (harness.workspace / "src/hidden.py").write_text(HIDDEN_WRITE)
    names = {"write": "Write", "bash": "Bash", "read": "Read"}
    dispatch = {"description": "x", "prompt": "[[actor:coder]] go", "subagent_type": "pypto-op:pypto-op-coder"}
    script = _script(names, "file_path", {"name": "Agent", "input": dispatch})
    with scripted_model(script) as model:
        environment = claude_environment(harness.environment(), model.port)
        command = [claude, "-p", "[[actor:main]] go", "--model", "claude-sonnet-4-5", "--plugin-dir"]
        command += [str(_bundle(tmp_path)), "--permission-mode", "acceptEdits"]
        command += ["--allowedTools", "Bash,Write,Edit,Read,Agent"]
        done = subprocess.run(
            command, cwd=harness.workspace, env=environment, stdin=subprocess.DEVNULL, capture_output=True,
            check=False,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    _told_as_expected(model.told)
    assert BANNER in model.told("main", 6), "the end of the turn is refused once"
    with pytest.raises(AssertionError):
        model.told("main", 7)


def test_opencode(harness: Harness, tmp_path: Path) -> None:
    opencode = needs("opencode")
    (harness.workspace / "src/hidden.py").write_text(HIDDEN_WRITE)
    names = {"write": "write", "bash": "bash", "read": "read"}
    dispatch = {"description": "x", "prompt": "[[actor:coder]] go", "subagent_type": "pypto-op-coder"}
    script = _script(names, "filePath", {"name": "task", "input": dispatch})
    config, home = tmp_path / "config", tmp_path / "home"
    (config / "agents").mkdir(parents=True)
    (config / "plugins").mkdir()
    (config / "agents/pypto-op-coder.md").write_text("---\ndescription: codes\nmode: subagent\n---\nYou code.\n")
    (config / "plugins/pypto-op.js").symlink_to(ROOT / "hooks/opencode/pypto-op.js")
    environment = opencode_environment(harness.environment(OPENCODE_CONFIG_DIR=str(config)), home)
    with scripted_model(script) as model:
        (tmp_path / "opencode.json").write_text(json.dumps(opencode_provider(model.port)))
        environment["OPENCODE_CONFIG"] = str(tmp_path / "opencode.json")
        done = subprocess.run(
            [opencode, "run", "--format", "json", "[[actor:main]]"], cwd=harness.workspace, env=environment,
            stdin=subprocess.DEVNULL, capture_output=True, check=False,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    _told_as_expected(model.told)
    assert model.told("main", 1).startswith("[is_error]")
