"""The whole bundle, installed by `pypto-op install` into a workspace with a space in its path, in the real clients.

`make clients` installs the clients; where there is none the tests skip and say so. The model is scripted, so what is
shown is the plumbing: that the team, its tools and its skills are there, that a refusal reaches the model and is mended,
that roles hold, and that the state moves for the orchestrator alone.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.clients.installed import claude_environment, needs, opencode_environment, opencode_provider
from tests.hooks.conftest import BAD_IMPL, GOOD_IMPL, Harness, harness
from tests.hooks.scripted_model import Script, ScriptedModel, scripted_model
from tests.quickly import needs_package

from pypto_op.bundle.agents import load_agents
from pypto_op.install.claude_client import SETTINGS
from pypto_op.install.commands import install

pytestmark = [pytest.mark.client, pytest.mark.slow, needs_package("mcp")]

__all__ = ["harness"]  # the fixture of the hooks' tests: a workspace with an operator in stage 5

OP = "custom/soft"
BANNER = "[pypto-op-lint] 产物写入后即时门禁未通过(S0/S1)"


def run_install(workspace: Path, name: str, *words: str, env: dict[str, str]) -> None:
    done = CliRunner().invoke(install, ["--harness", name, "--target", str(workspace), *words], env=env, standalone_mode=False)
    assert done.exception is None and done.return_value == 0, (done.output, done.exception)


def script(names: dict[str, str], path_key: str, state_tool: str, dispatch: dict[str, Any]) -> Script:
    """The orchestrator begins an operator and sends the coder, who tries what it may and what it may not."""

    def call(tool: str, **arguments: Any) -> dict[str, Any]:
        return {"tools": [{"name": names.get(tool, tool), "input": arguments}]}

    impl = f"{OP}/soft_impl.py"
    return {
        "main": [
            call("bash", command="pypto-op new fresh --dtype float32 --p0 R=4,C=8 || mkdir custom/fresh", description="x"),
            call(state_tool, action="init", op_dir="custom/fresh"),
            call(state_tool, action="complete_stage", op_dir="custom/fresh", stage=1, token="{{token}}"),
            {"tools": [dispatch]},
        ],
        "coder": [
            call("write", **{path_key: impl, "content": BAD_IMPL}),
            call("write", **{path_key: impl, "content": GOOD_IMPL}),
            call("read", **{path_key: f"{OP}/modules/soft_module1_golden.py"}),
            call("write", **{path_key: f"{OP}/modules/test_soft_module12.py", "content": "x = 1\n"}),
            call("bash", command=f"cat {OP}/modules/soft_module1_golden.py", description="x"),
            call(state_tool, action="init", op_dir=OP),
        ],
    }


def judge(model: ScriptedModel, workspace: Path) -> None:
    """What must be so in either client."""
    assert "white space" in model.told("main", 1), "no kernel could run in this workspace, and that is said at once"
    assert '"current_stage": 1' in model.told("main", 2) or '"current_stage":1' in model.told("main", 2)
    assert "SPEC.md" in model.told("main", 3), "the gate names the file that is not there or not done"
    assert BANNER in model.told("coder", 1) and "blocking_rules: OL01" in model.told("coder", 1)
    assert BANNER not in model.told("coder", 2)
    assert (workspace / OP / "soft_impl.py").read_text() == GOOD_IMPL
    assert "information barrier" in model.told("coder", 3)
    assert "pypto-op-coder does not own it" in model.told("coder", 4)
    assert "information barrier" in model.told("coder", 5)
    assert "[is_error]" in model.told("coder", 6), "the coder has no such tool"
    state = json.loads((workspace / "custom/fresh/.orchestrator_state.json").read_text())
    assert state["current_stage"] == 1, "a stage is not complete because somebody says so"


def tools_of(model: ScriptedModel, actor: str) -> set[str]:
    """Return the names of the tools that an actor was offered."""
    body = next(body for body in model.requests if body.get("tools") and model.step(body)[0] == actor)
    return {tool["name"] for tool in body["tools"]}


def run_client(command: list[str], workspace: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        command,
        cwd=workspace,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done


def test_claude_code(harness: Harness, tmp_path: Path) -> None:
    claude = needs("claude")
    workspace = harness.workspace
    (workspace / OP / "soft_impl.py").unlink()  # the coder writes it anew
    state_tool = "mcp__plugin_pypto-op_pypto-op__state_transition"
    dispatch = {"description": "x", "prompt": "[[actor:coder]] go", "subagent_type": "pypto-op:pypto-op-coder"}
    names = {"write": "Write", "bash": "Bash", "read": "Read"}
    steps = script(names, "file_path", state_tool, {"name": "Agent", "input": dispatch})
    steps["plain"] = [{"tools": [{"name": state_tool, "input": {"action": "fail_stage", "op_dir": "custom/fresh", "stage": 1}}]}]
    with scripted_model(steps) as model:
        environment = claude_environment(harness.environment(), model.port) | {"PYPTO_OP_KEY_FILE": str(tmp_path / "seal.key")}
        run_install(workspace, "claude", env=environment)
        command = [claude, "-p", "[[actor:main]] go", "--agent", "pypto-op:pypto-op-orchestrator"]
        more = ["--model", "claude-sonnet-4-5", "--permission-mode", "acceptEdits", "--output-format", "stream-json", "--verbose"]
        allowed = ["--allowedTools", f"Bash,Write,Edit,Read,Agent,Skill,{state_tool}"]
        done = run_client([*command, *more, *allowed], workspace, environment)
        run_client([claude, "-p", "[[actor:plain]] go", *more, *allowed], workspace, environment)
    begun = next(line for text in done.stdout.splitlines() if (line := json.loads(text)).get("subtype") == "init")
    team = {f"pypto-op:{agent.name}" for agent in load_agents()}
    assert team <= set(begun["agents"])
    skills = {path.name for path in (workspace / ".pypto-op/claude/skills").iterdir()}
    assert {f"pypto-op:{name}" for name in skills} <= set(begun["skills"])
    judge(model, workspace)
    offered = tools_of(model, "coder")
    assert state_tool not in offered and "mcp__plugin_pypto-op_pypto-op__verify" in offered
    assert "# Writing a kernel file" in model.told("coder", 0), "the mandatory skill is loaded with the agent"
    assert "only pypto-op-orchestrator" in model.told("plain", 1), "a session that is nobody of the team moves nothing"
    run_install(workspace, "claude", "--uninstall", env=environment)
    assert not (workspace / ".pypto-op").exists() and not (workspace / SETTINGS).exists()


def test_opencode(harness: Harness, tmp_path: Path) -> None:
    opencode = needs("opencode")
    workspace = harness.workspace
    (workspace / OP / "soft_impl.py").unlink()  # the coder writes it anew
    dispatch = {"description": "x", "prompt": "[[actor:coder]] go", "subagent_type": "pypto-op-coder"}
    names = {"write": "write", "bash": "bash", "read": "read"}
    steps = script(names, "filePath", "pypto-op_state_transition", {"name": "task", "input": dispatch})
    environment = opencode_environment(harness.environment(), tmp_path / "home")
    environment |= {"OPENCODE_CONFIG": str(tmp_path / "opencode.json"), "PYPTO_OP_KEY_FILE": str(tmp_path / "seal.key")}
    run_install(workspace, "opencode", env=environment)
    with scripted_model(steps) as model:
        (tmp_path / "opencode.json").write_text(json.dumps(opencode_provider(model.port)))
        command = [opencode, "run", "--format", "json", "--agent", "pypto-op-orchestrator", "[[actor:main]]"]
        run_client(command, workspace, environment)
    judge(model, workspace)
    offered = tools_of(model, "coder")
    assert "pypto-op_state_transition" not in offered and "pypto-op_verify" in offered and "task" not in offered
    assert "pypto-op_state_transition" in tools_of(model, "main")
    run_install(workspace, "opencode", "--uninstall", env=environment)
    assert not (workspace / ".opencode/agents").exists() and not (workspace / ".opencode/opencode.json").exists()
