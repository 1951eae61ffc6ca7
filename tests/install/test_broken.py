"""A workspace whose bundle moved, is gone or is broken: what its own hooks, command and server say."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.hooks.conftest import BAD_IMPL, GOOD_IMPL, STATE, make_operator
from tests.install.places import ROOT, copy_bundle, install, pypto_op
from tests.quickly import needs_package

pytestmark = [pytest.mark.slow, needs_package("mcp")]

PLACES = (".pypto-op/claude", ".opencode/pypto-op")


def gone(bundle: Path) -> None:
    bundle.rename(bundle.with_name("renamed"))


def empty(bundle: Path) -> None:
    shutil.rmtree(bundle / "lint")
    shutil.rmtree(bundle / "scripts")


def no_python(bundle: Path) -> None:
    (bundle / ".venv").unlink()


def half_a_venv(bundle: Path) -> None:
    (bundle / ".venv").unlink()
    made = bundle / ".venv/bin/python"
    made.parent.mkdir(parents=True)
    made.write_text("#!/nowhere/python\n")
    made.chmod(0o755)


def dead_python(bundle: Path) -> None:
    (bundle / ".venv").unlink()
    made = bundle / ".venv/bin/python"
    made.parent.mkdir(parents=True)
    made.write_text("#!/bin/sh\necho 'error while loading shared libraries' >&2\nexit 127\n")
    made.chmod(0o755)


def bad_import(bundle: Path) -> None:
    (bundle / "lint/pypto_op_lint/wire.py").write_text("raise RuntimeError('broken\\nin two lines')\n")


def bad_server(bundle: Path) -> None:
    (bundle / "lint/pypto_op_lint/hook_events.py").write_text("import not_there_at_all\n")


FAULTS = [gone, empty, no_python, half_a_venv, dead_python, bad_import, bad_server]


class Workspace:
    """An installed workspace, and events for the programs that lie in it."""

    def __init__(self, root: Path, cache: Path, bundle: Path) -> None:
        self.root, self.cache, self.bundle = root, cache, bundle
        self.tools = "/usr/bin:/bin"

    @property
    def environment(self) -> dict[str, str]:
        return {
            "PATH": self.tools,
            "HOME": str(self.cache),
            "LANG": "C.UTF-8",
            "CLAUDE_PROJECT_DIR": str(self.root),
            "PYPTO_OP_SERVER_IDLE": "5",
        }

    def event(self, kind: str, tool: str, place: str = PLACES[0], agent: str = "", **tool_input: Any) -> dict[str, Any]:
        name = {"pre": "PreToolUse", "post": "PostToolUse", "stop": "Stop", "start": "SessionStart"}[kind]
        event = {"session_id": "s", "cwd": str(self.root), "hook_event_name": name, "tool_name": tool, "tool_input": tool_input}
        event |= {"agent_type": agent} if agent else {}
        done = subprocess.run(
            ["/bin/sh", str(self.root / place / "hooks/hook.sh"), kind], input=json.dumps(event), capture_output=True,
            text=True, env=self.environment, cwd=self.root, check=False,
        )  # fmt: skip
        assert done.returncode == 0 and "Traceback" not in done.stdout + done.stderr, done
        return json.loads(done.stdout) if done.stdout.strip() else {}

    def denied(self, tool: str, **fields: Any) -> str:
        decision = self.event("pre", tool, **fields).get("hookSpecificOutput", {})
        return decision["permissionDecisionReason"] if decision else ""


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    bundle = copy_bundle(tmp_path / "the bundle")
    root = tmp_path / "work"
    make_operator(root / "custom/soft", STATE)
    (root / "src").mkdir()
    (tmp_path / "cache").mkdir()
    install(bundle, root, "--files-only")
    return Workspace(root, tmp_path / "cache", bundle)


def test_a_workspace_in_order_is_guarded_by_its_bundle(workspace: Workspace) -> None:
    for place in PLACES:
        assert "state machine" in workspace.denied("Write", place=place, file_path="custom/soft/.orchestrator_plan.json")
        assert workspace.denied("Write", place=place, file_path="custom/soft/soft_impl.py") == ""
        assert workspace.event("start", "", place) == {}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_what_touches_an_operator_is_refused_and_the_rest_goes_through(
    workspace: Workspace, fault: Callable[[Path], None]
) -> None:
    fault(workspace.bundle)
    root = workspace.root
    free: list[tuple[str, dict[str, Any]]] = [
        ("Bash", {"command": "ls"}), ("Bash", {"command": "git add src && git commit -m 'soft landing'"}),
        ("Bash", {"command": "echo hi > src/a.py"}), ("Read", {"file_path": "src/a.py"}),
        ("Write", {"file_path": str(root / "src/a.py"), "content": 'see "custom/soft/SPEC.md" \\" and more'}),
        ("Edit", {"file_path": "src/a.py", "old_string": '"file_path":"custom/soft/x"', "new_string": "y"}),
        ("Write", {"file_path": "custom/soft/_debug/x.py", "content": "x"}), ("Glob", {"pattern": "*.md"}),
        ("mcp__fs__write_file", {"path": "src/b.py", "content": "custom\n"}), ("Grep", {"pattern": "custom", "path": "src"}),
    ]  # fmt: skip
    touching: list[tuple[str, dict[str, Any]]] = [
        ("Write", {"file_path": "custom/soft/soft_impl.py", "content": "x"}),
        ("Write", {"content": 'a \\" b\\', "file_path": "src/../custom/soft/soft_impl.py"}),
        ("Edit", {"file_path": str(root / "custom/soft/SPEC.md"), "old_string": "a", "new_string": "b"}),
        ("NotebookEdit", {"notebook_path": "custom/soft/x.ipynb"}),
        ("Write", {"file_path": "custom/fresh/SPEC.md", "content": "x"}),
        ("Write", {"file_path": "link.md", "content": "x"}),
        ("Bash", {"command": "echo x > custom/soft/soft_impl.py"}), ("Bash", {"command": "true;\ncustom/soft/x"}),
        ("Bash", {"command": "cd custom; rm soft/soft_impl.py"}), ("Bash", {"command": "rm -rf *"}),
        ("Bash", {"command": "git checkout ."}), ("Bash", {"command": "sed -i s/a/b/ */*/*.py"}),
        ("mcp__fs__write_file", {"path": "custom/soft/soft_impl.py", "content": "x"}),
        ("mcp__fs__delete", {"path": "custom"}), ("apply_patch", {"patchText": "*** Delete File: custom/soft/SPEC.md\n"}),
        ("mcp__plugin_pypto-op_pypto-op__state_transition", {"action": "init", "op_dir": "x"}),
    ]  # fmt: skip
    (root / "link.md").symlink_to(root / "custom/soft/SPEC.md")
    for tool, fields in free:
        assert workspace.denied(tool, **fields) == "", (tool, fields)
        assert workspace.event("post", tool, **fields) == {}, (tool, fields)
    for tool, fields in touching:
        if fault is bad_server and tool == "Bash":
            continue  # whole enough to be judged below
        reason = workspace.denied(tool, **fields)
        assert reason and "\n" not in reason and ("doctor --target" in reason or "make " in reason), (tool, fields, reason)
    blocked = workspace.event("post", "Write", file_path="custom/soft/soft_impl.py", content="x")
    assert blocked["decision"] == "block" and "not checked" in blocked["reason"]
    for place in PLACES:
        assert workspace.denied("Bash", place=place, command="rm custom/soft/SPEC.md")
    assert "uninstall.sh" in workspace.denied("Write", file_path="custom/soft/soft_impl.py")


def test_a_session_is_told_at_its_start_and_at_its_end(workspace: Workspace) -> None:
    gone(workspace.bundle)
    begun = workspace.event("start", "")
    assert "is gone" in begun["systemMessage"] and "doctor --target" in begun["hookSpecificOutput"]["additionalContext"]
    assert "unchecked" in workspace.event("stop", "")["systemMessage"]
    shutil.rmtree(workspace.root / "custom")
    assert workspace.event("stop", "") == {}


def test_an_agent_of_the_team_makes_operators_only(workspace: Workspace) -> None:
    gone(workspace.bundle)
    planner = "pypto-op:pypto-op-planner"
    assert workspace.denied("Write", agent=planner, file_path="custom/fresh/API_REPORT.md")
    assert workspace.denied("Write", file_path="custom/theme/style.css") == ""
    assert workspace.denied("Grep", agent="pypto-op:pypto-op-coder", pattern="x")
    assert workspace.denied("Bash", agent=planner, command="ls") == ""


def test_the_state_machines_file_marks_an_operator_anywhere(workspace: Workspace) -> None:
    gone(workspace.bundle)
    make_operator(workspace.root / "ops/hard", STATE)
    assert workspace.denied("Write", file_path="ops/hard/hard_impl.py")
    assert workspace.denied("Write", file_path="ops/other.py") == ""


def test_big_texts_cost_no_time(workspace: Workspace) -> None:
    gone(workspace.bundle)
    assert workspace.denied("Write", file_path="src/a.py", content='"x\\n" ' * 300_000) == ""
    assert workspace.denied("Write", content='"x\\n" ' * 300_000, file_path="custom/soft/a.py")


def test_without_awk_it_is_coarse_and_not_silent(workspace: Workspace, tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("sh", "cat", "sed"):
        (tools / name).symlink_to(str(shutil.which(name)))
    workspace.tools = str(tools)
    gone(workspace.bundle)
    assert workspace.denied("Write", file_path="custom/soft/soft_impl.py")
    assert workspace.denied("Bash", command="ls") == ""


def test_the_command_and_the_server_name_the_remedy(workspace: Workspace) -> None:
    gone(workspace.bundle)
    asked = [
        {"method": "initialize", "params": {"protocolVersion": "2025-06-18"}, "jsonrpc": "2.0", "id": 0},
        {"method": "notifications/initialized", "jsonrpc": "2.0"},
        {"jsonrpc": "2.0", "id": "a1", "method": "tools/list"},
        {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "verify", "arguments": {"id": 3}}},
    ]
    for place in PLACES:
        command = workspace.root / place / "bin/pypto-op"
        done = subprocess.run([str(command), "doctor"], capture_output=True, text=True, env=workspace.environment, check=False)
        assert done.returncode == 3 and done.stderr.count("\n") == 1 and "doctor --target" in done.stderr
        done = subprocess.run(
            ["sh", str(workspace.root / place / "hooks/server.sh")], env=workspace.environment, capture_output=True, text=True,
            input="".join(json.dumps(line, separators=(",", ":")) + "\n" for line in asked), check=True,
        )  # fmt: skip
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        assert [answer["id"] for answer in answers] == [0, "a1", 7]
        assert "doctor --target" in answers[0]["result"]["instructions"]
        assert answers[1]["result"]["tools"][0]["name"] == "set_up"
        assert answers[2]["result"]["isError"] is True


# -- doctor --target -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", [gone, no_python, half_a_venv], ids=lambda fault: fault.__name__)
def test_the_doctor_of_another_checkout_finds_and_repairs(workspace: Workspace, tmp_path: Path, fault: Any) -> None:
    fault(workspace.bundle)
    other = copy_bundle(tmp_path / "other")
    look = pypto_op(other, "doctor", "--target", str(workspace.root), "--dry-run")
    assert look.returncode == 2 and "found: claude:" in look.stdout and "found: opencode:" in look.stdout
    assert workspace.denied("Write", file_path="custom/soft/soft_impl.py"), "a dry run repairs nothing"
    done = pypto_op(other, "doctor", "--target", str(workspace.root))
    assert done.returncode == 0 and "repaired" in done.stdout, done
    assert workspace.denied("Write", file_path="custom/soft/soft_impl.py") == ""
    (workspace.root / "custom/soft/soft_impl.py").write_text(BAD_IMPL)
    assert "OL01" in workspace.event("post", "Write", file_path="custom/soft/soft_impl.py")["reason"]
    (workspace.root / "custom/soft/soft_impl.py").write_text(GOOD_IMPL)
    again = pypto_op(other, "doctor", "--target", str(workspace.root))
    assert again.returncode == 0 and "as it was installed" in again.stdout


def test_the_doctor_puts_back_what_is_missing_and_keeps_what_was_changed(workspace: Workspace) -> None:
    (workspace.root / ".pypto-op/claude/hooks/touches.awk").unlink()
    (workspace.root / ".opencode/plugins/pypto-op.js").unlink()
    done = pypto_op(workspace.bundle, "doctor", "--target", str(workspace.root))
    assert done.returncode == 0 and "touches.awk: is missing" in done.stdout and "pypto-op.js: is missing" in done.stdout
    assert (workspace.root / ".opencode/plugins/pypto-op.js").is_file()
    agent = workspace.root / ".opencode/agents/pypto-op-coder.md"
    agent.write_text("mine")
    done = pypto_op(workspace.bundle, "doctor", "--target", str(workspace.root))
    assert done.returncode == 2 and "pypto-op-coder.md" in done.stderr and agent.read_text() == "mine"


def test_the_doctor_of_a_folder_without_an_installation_says_so(tmp_path: Path, workspace: Workspace) -> None:
    done = pypto_op(workspace.bundle, "doctor", "--target", str(tmp_path))
    assert done.returncode == 2 and "not installed" in done.stderr and "pypto-op install" in done.stderr


def test_uninstalling_needs_no_bundle(workspace: Workspace) -> None:
    shutil.rmtree(workspace.bundle)
    kept = workspace.root / ".opencode/agents/pypto-op-coder.md"
    kept.write_text("mine")
    done = subprocess.run(
        ["sh", ".pypto-op/uninstall.sh"],
        cwd=workspace.root,
        capture_output=True,
        text=True,
        env=workspace.environment,
        check=False,
    )
    assert done.returncode == 0 and "kept, since it was changed by hand: .opencode/agents/pypto-op-coder.md" in done.stderr
    assert not (workspace.root / ".pypto-op").exists()
    assert [path for path in (workspace.root / ".opencode").rglob("*") if path.is_file()] == [kept]
    assert (workspace.root / "custom/soft/SPEC.md").exists()


def test_a_renamed_checkout_is_set_up_again(tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    (checkout / "scripts").mkdir(parents=True)
    for name in ("Makefile", "pyproject.toml", "scripts/setup.sh"):
        shutil.copy(ROOT / name, checkout / name)

    def what_make_would_do(folder: Path) -> str:
        # Under `make test` an inner make would add a line about the folder it entered.
        words = ["make", "--no-print-directory", "-n", "setup"]
        return subprocess.run(words, cwd=folder, capture_output=True, text=True, check=True).stdout

    before = what_make_would_do(checkout)
    assert "scripts/setup.sh" in before
    (checkout / ".venv").mkdir()
    (checkout / before.split()[-1]).touch()
    assert "scripts/setup.sh" not in what_make_would_do(checkout)
    assert "scripts/setup.sh" in what_make_would_do(checkout.rename(tmp_path / "renamed"))
