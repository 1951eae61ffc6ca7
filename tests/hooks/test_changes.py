"""After a shell command and at the end of a turn: what changed is found by content and linted."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from tests.hooks.conftest import BAD_IMPL, GOOD_IMPL, STATE, Harness

from pypto_op.documents import scaffold

OP = "custom/soft"
BANNER = "[pypto-op-lint]"
ORCHESTRATOR, VERIFIER = "pypto-op:pypto-op-orchestrator", "pypto-op:pypto-op-verifier"


def _bash(harness: Harness, command: str = "python3 something.py", agent: str | None = None) -> str:
    return harness.after("Bash", agent, command=command).blocked


def test_a_write_that_the_parser_could_not_see_is_found_by_content(harness: Harness) -> None:
    assert harness.before("Bash", command="python3 something.py").out == ""
    (harness.workspace / OP / "soft_impl.py").write_text(BAD_IMPL)
    (harness.workspace / OP / "modules/soft_module1_impl.py").write_text(BAD_IMPL)
    reason = _bash(harness)
    assert reason.count(BANNER) == 2
    assert f"file: {harness.workspace / OP / 'soft_impl.py'}" in reason
    assert _bash(harness) == "", "what was told once is not told again until it changes"


def test_a_rewrite_that_keeps_size_and_times_is_still_seen(harness: Harness) -> None:
    harness.before("Bash", command="true")
    path = harness.workspace / OP / "soft_impl.py"
    facts = path.stat()
    path.write_text("#" * facts.st_size)
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    assert path.stat().st_size == facts.st_size
    assert BANNER in _bash(harness)


def test_a_touched_file_with_the_same_content_is_no_change(harness: Harness) -> None:
    path = harness.workspace / OP / "soft_impl.py"
    path.write_text(BAD_IMPL)
    harness.before("Bash", command="true")
    path.write_text(BAD_IMPL)
    os.utime(path)
    assert _bash(harness) == ""


def test_what_lay_there_before_the_first_look_is_not_blamed_on_the_command(harness: Harness) -> None:
    old = harness.workspace / OP / "soft_impl.py"
    old.write_text(BAD_IMPL)
    harness.before("Bash", command="true")
    assert _bash(harness) == ""


def test_without_a_first_look_recent_files_count_as_changed(harness: Harness) -> None:
    (harness.workspace / OP / "soft_impl.py").write_text(BAD_IMPL)
    assert BANNER in _bash(harness)


def test_a_new_operator_and_a_deleted_file_are_seen(harness: Harness) -> None:
    harness.before("Bash", command="true")
    fresh = harness.workspace / "custom/fresh/fresh_impl.py"
    fresh.parent.mkdir()
    fresh.write_text(BAD_IMPL.replace("soft", "fresh"))
    (harness.workspace / OP / "README.md").unlink()
    answer = harness.after("Bash", command="x")
    assert str(fresh) in answer.blocked
    fresh.unlink()
    assert "was deleted" in harness.after("Bash", command="x").context


def test_blank_documents_of_a_new_operator_are_nobody_s_fault(harness: Harness) -> None:
    harness.before("Bash", command="true")
    fresh = harness.workspace / "custom/fresh"
    fresh.mkdir()
    (fresh / "DESIGN.md").write_text("TODO\n")
    assert harness.after("Bash", command="pypto-op new fresh").out == ""
    (fresh / ".orchestrator_state.json").write_text(json.dumps(STATE))
    (fresh / "DESIGN.md").write_text("TODO: later\n")
    assert BANNER in _bash(harness), "once the operator has begun, it is somebody's"


def test_a_frozen_file_that_a_command_changed_is_named(harness: Harness) -> None:
    op = harness.workspace / OP
    state: dict[str, Any] = json.loads(json.dumps(STATE))
    digest = hashlib.sha256((op / "SPEC.md").read_bytes()).hexdigest()
    state["artifact_hashes"] = {"spec_md": {"path": "SPEC.md", "sha256": digest, "stage": 1}}
    (op / ".orchestrator_state.json").write_text(json.dumps(state))
    harness.before("Bash", command="true")
    (op / "SPEC.md").write_text("# another spec\n")
    reason = _bash(harness)
    assert "changed by a shell command though it is frozen: stage 1 is completed" in reason
    (op / "SPEC.md").write_text("# spec\n")
    assert "it is frozen" not in _bash(harness)


CODER = "pypto-op:pypto-op-coder"


def test_a_file_of_another_role_that_a_command_changed_is_named(harness: Harness) -> None:
    """Whatever program wrote it: nothing in the command says that it would."""
    op = harness.workspace / OP
    assert harness.before("Bash", CODER, command="./a.out").out == ""
    (op / "test_soft.py").write_text("import torch  # mine\n")
    (op / "stray.bin").write_bytes(b"x")
    (op / "modules/test_soft_module1.py").unlink()
    reason = _bash(harness, "./a.out", CODER)
    owner = "pypto-op-coder does not own it; it belongs to pypto-op-verifier; undo it"
    assert f"test_soft.py: this file was changed by a shell command: {owner}" in reason
    assert "stray.bin: this file was changed by a shell command: pypto-op-coder does not own it" in reason
    assert "test_soft_module1.py: this file was deleted by a shell command: pypto-op-coder does not own it" in reason


def test_a_file_of_one_s_own_and_those_of_the_bundles_commands_are_no_theft(harness: Harness) -> None:
    op = harness.workspace / OP
    harness.before("Bash", CODER, command="true")
    (op / "README.md").write_text("# soft, again\n")
    for folder in ("output", "modules/output/run", "modules/__pycache__", ".ruff_cache"):  # what tools leave behind
        (op / folder).mkdir(parents=True, exist_ok=True)
        (op / folder / "x.json").write_text("{}")
    assert "does not own it" not in _bash(harness, "./a.out", CODER)
    (op / "test_soft.py").write_text("import torch  # generated\n")
    assert "does not own it" not in _bash(harness, "cd custom && pypto-op tests new soft", "pypto-op:pypto-op-designer")


def test_a_write_of_another_agent_is_not_laid_to_a_command_that_ends_meanwhile(harness: Harness) -> None:
    path = harness.workspace / OP / "test_soft.py"
    harness.before("Bash", CODER, command="sleep 1")
    assert harness.before("Write", "pypto-op:pypto-op-verifier", file_path=str(path), content="").out == ""
    path.write_text("import torch  # the verifier's\n")
    assert "does not own it" not in _bash(harness, "sleep 1", CODER)
    harness.after("Write", "pypto-op:pypto-op-verifier", file_path=str(path), content="")
    path.write_text("import torch  # not the verifier's\n")
    assert "does not own it" in _bash(harness, "sleep 1", CODER)


def test_a_frozen_file_that_changed_unseen_is_named_at_the_end_of_the_turn(harness: Harness) -> None:
    op = harness.workspace / OP
    state: dict[str, Any] = json.loads(json.dumps(STATE))
    digest = hashlib.sha256((op / "SPEC.md").read_bytes()).hexdigest()
    state["artifact_hashes"] = {"spec_md": {"path": "SPEC.md", "sha256": digest, "stage": 1}}
    (op / ".orchestrator_state.json").write_text(json.dumps(state))
    harness.before("Bash", command="sleep 9 &")
    (op / "SPEC.md").write_text("# another spec\n")
    assert "was changed though it is frozen" in harness.event("Stop", stop_hook_active=False).blocked


def test_a_report_of_the_servers_verify_is_nobodys_fault(harness: Harness) -> None:
    """No hook runs after a tool that only looks, so the end of the turn sees first what the judge wrote."""
    harness.before("mcp__plugin_pypto-op_pypto-op__verify", VERIFIER, op_dir=OP)
    (harness.workspace / OP / "eval/evaluation_report.json").write_text("{}")
    assert harness.event("SubagentStop", agent_type=VERIFIER, stop_hook_active=False).out == ""
    (harness.workspace / OP / "eval/test_inputs_2.py").write_text("x = 1\n")
    assert "does not own it" in harness.event("SubagentStop", agent_type=VERIFIER, stop_hook_active=False).blocked


def test_what_pypto_op_new_makes_is_nobodys_fault(harness: Harness) -> None:
    command = "pypto-op new fresh --dtype float32 --p0 N=4"
    harness.before("Bash", ORCHESTRATOR, command=command)
    for name in (Path("SPEC.md"), Path("fresh_golden.py"), scaffold._COMPARE):
        path = harness.workspace / "custom/fresh" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x = 1\n")
    assert harness.after("Bash", ORCHESTRATOR, command=command).blocked == ""


def test_scratch_and_the_state_machine_are_not_linted(harness: Harness) -> None:
    harness.before("Bash", command="true")
    (harness.workspace / OP / "_debug/soft_impl.py").write_text(BAD_IMPL)
    assert harness.after("Bash", command="x").out == ""
    (harness.workspace / OP / ".orchestrator_state.json").write_text("{}")
    told = harness.after("Bash", command="x").blocked
    assert "its seal no longer holds" in told
    assert BANNER not in told


def test_the_end_of_a_turn_is_refused_once(harness: Harness) -> None:
    harness.write(f"{OP}/soft_impl.py", BAD_IMPL)
    reason = harness.event("Stop", stop_hook_active=False).blocked
    assert BANNER in reason
    assert "blocking_rules: OL01" in reason
    again = harness.event("Stop", stop_hook_active=True)
    assert again.blocked == ""
    assert "blocking lint findings" in again.json["systemMessage"]


def test_a_clean_turn_ends(harness: Harness) -> None:
    harness.write(f"{OP}/soft_impl.py", BAD_IMPL)
    harness.write(f"{OP}/soft_impl.py", GOOD_IMPL)
    assert harness.event("Stop", stop_hook_active=False).out == ""
    assert harness.event("SubagentStop", stop_hook_active=False).out == ""


def test_an_agent_is_not_held_for_what_another_left(harness: Harness) -> None:
    harness.write(f"{OP}/soft_impl.py", BAD_IMPL)
    assert harness.event("SubagentStop", agent_type="pypto-op:pypto-op-coder", agent_id="a1").out == ""
    (harness.workspace / OP / "modules/soft_module1_impl.py").write_text(BAD_IMPL)
    assert "module1" in harness.event("SubagentStop", agent_type="pypto-op:pypto-op-coder", agent_id="a1").blocked


def test_the_gate_asks_the_one_who_wrote_it_and_the_main_session(harness: Harness) -> None:
    harness.write(f"{OP}/soft_impl.py", BAD_IMPL, "pypto-op:pypto-op-coder")
    assert harness.event("SubagentStop", agent_type="pypto-op:pypto-op-verifier").out == ""
    assert BANNER in harness.event("SubagentStop", agent_type="pypto-op:pypto-op-coder").blocked
    assert harness.event("SubagentStop", agent_type="general-purpose").out == ""
    assert BANNER in harness.event("Stop", agent_type="pypto-op:pypto-op-orchestrator").blocked
    harness.session = "another"
    assert harness.event("Stop").out == "", "another session is not held for it"


def test_the_end_of_a_turn_sees_what_no_tool_announced(harness: Harness) -> None:
    harness.before("Bash", command="sleep 9 &")
    (harness.workspace / OP / "soft_impl.py").write_text(BAD_IMPL)
    assert BANNER in harness.event("Stop", stop_hook_active=False).blocked


def test_five_times_the_same_finding_is_called_a_loop(harness: Harness) -> None:
    for attempt in range(1, 7):
        reason = harness.write(f"{OP}/soft_impl.py", BAD_IMPL).blocked
        assert ("escalating" in reason) == (attempt >= 5)
    harness.write(f"{OP}/soft_impl.py", GOOD_IMPL)
    assert "escalating" not in harness.write(f"{OP}/soft_impl.py", BAD_IMPL).blocked


def test_the_index_survives_the_server(harness: Harness) -> None:
    harness.write(f"{OP}/soft_impl.py", BAD_IMPL)
    harness.await_server()
    harness.stop_servers()
    assert BANNER in harness.event("Stop").blocked
    (harness.run_dir / "index.json").write_text("{broken")
    harness.stop_servers()
    assert harness.before("Bash", command="true").out == ""


def test_events_are_logged_and_the_log_is_bounded(harness: Harness) -> None:
    harness.write(f"{OP}/soft_impl.py", BAD_IMPL)
    log = harness.run_dir / "events.jsonl"
    last = json.loads(log.read_text().splitlines()[-1])
    assert last["event"] == "PostToolUse"
    assert last["verdict"] == "refuse"
    assert last["milliseconds"] > 0
    log.write_text("x" * (1 << 20) + "y\n")
    harness.write(f"{OP}/soft_impl.py", GOOD_IMPL)
    assert (harness.run_dir / "events.1.jsonl").exists()
    assert log.stat().st_size < 10_000
