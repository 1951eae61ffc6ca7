"""The OpenCode plugin, driven by Node the way OpenCode drives it; the hook program behind it is the real one."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.hooks.conftest import BAD_IMPL, GOOD_IMPL, ROOT, Harness

pytestmark = [
    pytest.mark.client,
    pytest.mark.skipif(shutil.which("node") is None, reason="Node is not installed"),
]

PLUGIN = ROOT / "hooks/opencode/pypto-op.js"
DRIVER = Path(__file__).with_name("opencode_driver.mjs")
OP = "custom/soft"
Steps = list[dict[str, Any]]


def drive(harness: Harness, steps: Steps, plugin: Path = PLUGIN, **env: str) -> list[dict[str, Any]]:
    done = subprocess.run(
        ["node", str(DRIVER), str(plugin), str(harness.workspace)],
        input=json.dumps(steps), capture_output=True, text=True, check=False,
        env=harness.environment(**env), cwd=harness.workspace,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert len(told["exports"]) == 1, "OpenCode takes every export for a plugin"
    results: list[dict[str, Any]] = told["results"]
    return results


def before(tool: str, session: str = "s", **args: Any) -> dict[str, Any]:
    call = {"tool": tool, "sessionID": session, "callID": f"{tool}{session}"}
    return {"hook": "tool.execute.before", "input": call, "output": {"args": args}}


def after(tool: str, session: str = "s", **args: Any) -> dict[str, Any]:
    call = {"tool": tool, "sessionID": session, "callID": f"{tool}{session}", "args": args}
    return {"hook": "tool.execute.after", "input": call, "output": {"title": "", "output": "done", "metadata": {}}}


def is_agent(session: str, agent: str) -> dict[str, Any]:
    return {"hook": "chat.message", "input": {"sessionID": session, "agent": agent}, "output": {}}


def created(session: str, parent: str, agent: str) -> dict[str, Any]:
    info = {"id": session, "parentID": parent, "agent": agent}
    return {"hook": "event", "input": {"event": {"type": "session.created", "properties": {"info": info}}}}


def test_refusals_are_errors_that_the_model_reads(harness: Harness) -> None:
    told = drive(
        harness,
        [
            before("write", filePath=f"{OP}/.orchestrator_state.json"),
            before("edit", filePath="/tmp/x"),
            before("bash", command=f"echo x > {OP}/soft_impl.py"),
            before("bash", command="echo x > soft_impl.py", workdir=OP),
            before("apply_patch", patchText=f"*** Begin Patch\n*** Delete File: {OP}/SPEC.md\n*** End Patch"),
            before("pypto-op_state_transition", action="init"),
            before("write", filePath=f"{OP}/soft_impl.py"),
            before("bash", command=f"cat {OP}/soft_impl.py"),
            before("webfetch", url="x"),
        ],
    )
    words = ["state machine", "outside", "past the linter", "past the linter", "frozen", "only pypto-op-orchestrator"]
    assert [word in step.get("error", "") for word, step in zip(words, told, strict=False)] == [True] * 6
    assert ["error" in step for step in told[6:]] == [False] * 3


def test_a_tool_of_another_server_is_judged_by_its_input(harness: Harness) -> None:
    told = drive(
        harness,
        [
            is_agent("coder", "pypto-op-coder"),
            before("filesystem_write_file", path=f"{OP}/SPEC.md", content="x"),
            before("filesystem_edit_file", path="src/a.py", edits=[{"file": f"{OP}/.orchestrator_state.json"}]),
            before("filesystem_read_file", "coder", path=f"{OP}/modules/soft_module1_golden.py"),
            before("pypto-op_verify", "coder", op_dir=OP),
            before("filesystem_write_file", "coder", path=f"{OP}/soft_impl.py", content=BAD_IMPL),
        ],
    )
    words = ["frozen", "state machine", "information barrier"]
    assert [word in step.get("error", "") for word, step in zip(words, told[1:], strict=False)] == [True] * 3
    assert ["error" in step for step in told[4:]] == [False, False]
    (harness.workspace / OP / "soft_impl.py").write_text(BAD_IMPL)
    (told,) = drive(harness, [after("filesystem_write_file", path=f"{OP}/soft_impl.py")])
    assert "OL01" in told["error"]


def test_the_agent_is_known_by_message_and_by_session(harness: Harness) -> None:
    told = drive(
        harness,
        [
            is_agent("main", "pypto-op-orchestrator"),
            created("child", "main", "pypto-op-coder"),
            before("write", "child", filePath=f"{OP}/test_soft.py"),
            before("read", "child", filePath=f"{OP}/modules/soft_module1_golden.py"),
            before("pypto-op_state_transition", "child", action="init"),
            before("pypto-op_state_transition", "main", action="init"),
            before("write", "main", filePath=f"{OP}/soft_impl.py"),
            before("write", "child", filePath=f"{OP}/soft_impl.py"),
        ],
    )
    assert "pypto-op-coder does not own it" in told[2]["error"]
    assert "information barrier" in told[3]["error"]
    assert "only pypto-op-orchestrator" in told[4]["error"]
    assert "error" not in told[5]
    assert "pypto-op-orchestrator does not own it" in told[6]["error"]
    assert "error" not in told[7]


@pytest.mark.parametrize("tool", ["write", "edit", "apply_patch"])
def test_a_bad_write_is_an_error_after_the_tool(harness: Harness, tool: str) -> None:
    (harness.workspace / OP / "soft_impl.py").write_text(BAD_IMPL)
    args = {"patchText": f"*** Update File: {OP}/soft_impl.py\n"} if tool == "apply_patch" else {}
    args = args or {"filePath": f"{OP}/soft_impl.py"}
    (told,) = drive(harness, [after(tool, **args)])
    assert told["error"].startswith("[pypto-op-lint] 产物写入后即时门禁未通过(S0/S1)")
    assert "blocking_rules: OL01" in told["error"]
    assert "fix_hints:" in told["error"]


def test_a_good_write_leaves_the_output_alone(harness: Harness) -> None:
    (harness.workspace / OP / "soft_impl.py").write_text(GOOD_IMPL)
    told = drive(harness, [after("write", filePath=f"{OP}/soft_impl.py"), after("write", filePath="src/a.py")])
    assert [step["output"]["output"].startswith("done") for step in told] == [True, True]
    assert told[1]["output"]["output"] == "done"


def test_a_shell_command_that_got_through_is_seen_afterwards(harness: Harness) -> None:
    drive(harness, [before("bash", command="true")])
    (harness.workspace / OP / "soft_impl.py").write_text(BAD_IMPL)
    (told,) = drive(harness, [after("bash", command="true")])
    assert "OL01" in told["error"]


def test_a_subagent_that_leaves_a_bad_file_is_told_on_with_its_result_kept(harness: Harness) -> None:
    (harness.workspace / OP / "soft_impl.py").write_text(BAD_IMPL)
    told = drive(
        harness,
        [
            created("child", "main", "pypto-op-coder"),
            after("write", "child", filePath=f"{OP}/soft_impl.py"),
            after("task", "main", subagent_type="pypto-op-coder"),
        ],
    )
    assert told[2]["output"]["output"].startswith("done\n\n[pypto-op-lint]")


def test_a_copy_finds_the_bundle_by_the_variable_and_refuses_when_it_cannot(harness: Harness, tmp_path: Path) -> None:
    copy = tmp_path / "x/plugins/pypto-op.js"
    copy.parent.mkdir(parents=True)
    shutil.copy(PLUGIN, copy)
    (copy.parent / "package.json").write_text('{"type": "module"}')
    (harness.workspace / OP / "soft_impl.py").write_text(BAD_IMPL)
    step = after("write", filePath=f"{OP}/soft_impl.py")
    assert "OL01" in drive(harness, [step], copy, PYPTO_OP_ROOT=str(ROOT))[0]["error"]
    alone = drive(harness, [step, before("write", filePath=f"{OP}/x.py"), before("bash", command="ls")], copy)
    assert "doctor --target" in alone[0]["output"]["output"]
    assert "doctor --target" in alone[1]["error"] and "error" not in alone[2]
    link = tmp_path / "link.js"
    link.symlink_to(PLUGIN)
    assert "OL01" in drive(harness, [step], link)[0]["error"]
