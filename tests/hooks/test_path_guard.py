"""The guard for tools that name a path: workspace, state machine, frozen files, roles, the state tool."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.hooks.conftest import STATE, Harness

OP = "custom/soft"
CODER, VERIFIER = "pypto-op:pypto-op-coder", "pypto-op:pypto-op-verifier"
EDITORS = ("Write", "Edit", "MultiEdit")


@pytest.mark.parametrize("tool", EDITORS)
@pytest.mark.parametrize("path", ["/tmp/x.py", "/etc/x", "~/x.py", "../x.py", f"{OP}/../../../x.py", "/dev/shm/x"])
def test_a_write_outside_the_workspace_is_refused(shared: Harness, tool: str, path: str) -> None:
    reason = shared.before(tool, file_path=path).denied
    assert f"keep every file under {shared.workspace}" in reason
    assert "outside the workspace" in reason


@pytest.mark.parametrize("agent", [None, "general-purpose", CODER, "pypto-op:pypto-op-orchestrator"])
@pytest.mark.parametrize("name", [".orchestrator_state.json", ".orchestrator_journal.jsonl", ".orchestrator_plan.json"])
def test_the_files_of_the_state_machine_are_closed_to_every_tool(shared: Harness, agent: str | None, name: str) -> None:
    for tool in EDITORS:
        assert "belongs to the state machine" in shared.before(tool, agent, file_path=f"{OP}/{name}").denied


def test_a_plain_session_may_edit_an_operator_and_the_workspace(shared: Harness) -> None:
    for path in (f"{OP}/soft_impl.py", f"{OP}/MEMORY.md", f"{OP}/_debug/x.py", "src/a.py", "notes.md", "custom/new/SPEC.md"):
        assert shared.before("Write", file_path=path).out == ""


def test_a_notebook_and_a_missing_path_are_seen(shared: Harness) -> None:
    assert shared.before("NotebookEdit", notebook_path="/tmp/x.ipynb").denied
    assert "names no file" in shared.before("Write", content="x").denied
    assert "no file can have its path" in shared.before("Write", file_path="custom/soft/a\0b").denied


def test_a_link_does_not_lead_around_the_guard(harness: Harness) -> None:
    (harness.workspace / "link.json").symlink_to(harness.workspace / OP / ".orchestrator_state.json")
    (harness.workspace / "away").symlink_to("/tmp")
    (harness.workspace / "loop").symlink_to("loop")
    assert "state machine" in harness.before("Write", file_path="link.json").denied
    assert "temporary folder" in harness.before("Write", file_path="away/x").denied
    assert harness.before("Write", file_path="loop/x").code == 0


@pytest.mark.parametrize("name", ["SPEC.md", "API_REPORT.md", "soft_golden.py", "DESIGN.md", "eval/test_inputs.py"])
def test_a_file_of_a_completed_stage_is_frozen(shared: Harness, name: str) -> None:
    reason = shared.before("Edit", file_path=f"{OP}/{name}").denied
    assert "frozen: stage" in reason
    assert "rollback_to_stage" in reason


def test_frozen_follows_the_state_file(harness: Harness) -> None:
    state = json.loads(json.dumps(STATE))
    state["stage_status"]["1"] = "pending"
    state["stage5_phases"]["phase_status"]["M1"]["status"] = "verified"
    state["artifact_hashes"] = {"readme_md": {"path": "README.md", "sha256": "0" * 64, "stage": 5}}
    (harness.workspace / OP / ".orchestrator_state.json").write_text(json.dumps(state))
    assert harness.before("Write", file_path=f"{OP}/SPEC.md").out == ""
    assert "phase M1 is verified" in harness.before("Write", file_path=f"{OP}/modules/soft_module1_impl.py").denied
    assert "records its hash" in harness.before("Write", file_path=f"{OP}/README.md").denied


@pytest.mark.parametrize("text", ["", "[]", "{", '{"stage_status": 3, "current_stage": "x", "stage5_phases": []}', "\xff"])
def test_a_senseless_state_file_freezes_nothing_and_breaks_nothing(harness: Harness, text: str) -> None:
    (harness.workspace / OP / ".orchestrator_state.json").write_bytes(text.encode("latin-1"))
    assert harness.before("Write", CODER, file_path=f"{OP}/soft_impl.py").out == ""
    assert harness.before("Write", file_path=f"{OP}/SPEC.md").out == ""


MAY = [
    ("planner", "SPEC.md", 1), ("planner", "API_REPORT.md", 1), ("mathematician", "soft_golden.py", 2),
    ("planner", "soft_golden.py", 1), ("planner", "DESIGN.md", 1), ("architect", "DESIGN.md", 3),
    ("designer", "eval/module_interfaces.yaml", 4),
    ("coder", "soft_impl.py", 5), ("coder", "README.md", 5), ("coder", "modules/soft_module1_impl.py", 5),
    ("coder", "MEMORY.md", 5), ("coder", "_debug/a/b.py", 5), ("verifier", "modules/soft_module1_golden.py", 5),
    ("verifier", "modules/test_soft_module1.py", 5), ("verifier", "test_soft.py", 6),
    ("verifier", "eval/adversarial_suite.json", 4), ("verifier", "eval/_debug/x.py", 5),
    ("debugger", "_debug/x.py", 5), ("debugger", "MEMORY.md", 5), ("optimizer", "soft_impl.py", 7),
    ("optimizer", "soft_tuning_report.md", 7), ("orchestrator", "MEMORY.md", 5),
]  # fmt: skip
MAY_NOT = [
    ("planner", "DESIGN.md", 2), ("planner", "soft_golden.py", 2), ("planner", "soft_impl.py", 1),
    ("planner", "MEMORY.md", 1), ("mathematician", "soft_golden.py", 3), ("architect", "DESIGN.md", 4),
    ("mathematician", "soft_impl.py", 2),
    ("architect", "soft_impl.py", 3), ("designer", "modules/soft_module1_impl.py", 4),
    ("coder", "test_soft.py", 5), ("coder", "soft_golden.py", 5), ("coder", "eval/test_inputs.py", 5),
    ("coder", "modules/soft_module1_golden.py", 5), ("coder", "modules/test_soft_module1.py", 5),
    ("coder", "modules/soft_module12_impl.py", 5), ("coder", "modules/soft_module2_impl.py", 5),
    ("coder", "soft_impl.py", 7), ("coder", "notes.md", 5), ("verifier", "soft_impl.py", 5),
    ("verifier", "modules/soft_module1_impl.py", 5), ("verifier", "soft_golden.py", 5),
    ("verifier", "eval/evaluation_report.json", 5), ("debugger", "soft_impl.py", 5), ("debugger", "test_soft.py", 5),
    ("optimizer", "soft_impl.py", 5), ("optimizer", "soft_golden.py", 7), ("orchestrator", "soft_impl.py", 5),
]  # fmt: skip


def _at_stage(harness: Harness, stage: int) -> None:
    state = json.loads(json.dumps(STATE))
    state["current_stage"] = stage
    state["stage_status"] = {}
    (harness.workspace / OP / ".orchestrator_state.json").write_text(json.dumps(state))


@pytest.mark.slow
def test_each_role_may_write_its_own_files(harness: Harness) -> None:
    for role, name, stage in MAY:
        _at_stage(harness, stage)
        answer = harness.before("Write", f"pypto-op:pypto-op-{role}", file_path=f"{OP}/{name}")
        assert answer.out == "", (role, name, answer.denied)


@pytest.mark.slow
def test_each_role_is_kept_from_the_others_files(harness: Harness) -> None:
    for role, name, stage in MAY_NOT:
        _at_stage(harness, stage)
        reason = harness.before("Edit", f"pypto-op:pypto-op-{role}", file_path=f"{OP}/{name}").denied
        assert f"pypto-op-{role}" in reason or "phase" in reason or "suffix" in reason, (role, name, reason)


def test_the_triton_role_writes_its_own_folder_of_the_workspace_only(shared: Harness) -> None:
    kernelgen, own = "pypto-op:triton-op-kernelgen", "triton_ops/relu/iter_0"
    assert shared.before("Write", kernelgen, file_path=f"{own}/generated_code.py").out == ""
    assert shared.before("Bash", kernelgen, command=f"mkdir -p {own}/verify && cp task.py {own}/verify/relu_torch.py").out == ""
    for path in ("src/a.py", "triton_ops/notes.md", f"{own}/../../../a.py"):
        assert "triton_ops/<op>/** only" in shared.before("Write", kernelgen, file_path=path).denied
    for path in (f"{OP}/soft_impl.py", f"{OP}/MEMORY.md", "custom/triton_ops/relu/a.py"):
        assert shared.before("Write", kernelgen, file_path=path).denied
    assert "does not run" in shared.before("Bash", kernelgen, command=f"pypto-op verify {OP}").denied
    assert "inside custom/<op>/ only" in shared.before("Write", CODER, file_path=f"{own}/generated_code.py").denied


def test_a_role_writes_nothing_outside_operators(shared: Harness) -> None:
    assert "inside custom/<op>/ only" in shared.before("Write", CODER, file_path="src/a.py").denied
    assert "inside custom/<op>/ only" in shared.before("Bash", CODER, command="echo x > notes.txt").denied
    assert shared.before("Bash", CODER, command=f"echo x > {OP}/_debug/notes.txt").out == ""


@pytest.mark.parametrize(
    "command",
    [
        f"cat {OP}/modules/soft_module1_golden.py",
        f"cat {OP}/modules/*.py",
        f"cd {OP}/modules && head -5 soft_module1_g*",
        f"cp {OP}/modules/soft_module1_golden.py {OP}/_debug/x.py",
        f"grep -rn matmul {OP}",
        f"rg matmul {OP}/modules",
        f"find {OP} -name '*golden*' -exec cat {{}} +",
        f"python3 -c \"print(open('{OP}/modules/soft_module1_golden.py').read())\"",
        f"python3 - < {OP}/modules/soft_module1_golden.py",
        f"git show HEAD:{OP}/modules/soft_module1_golden.py",
        f"tar c {OP}/modules | tar t",
        f"x=module1; cat {OP}/modules/soft_${{x}}_golden.py",
        f"cat {OP}/modules/soft_$(echo module1)_golden.py",
        f"cat {OP}/modules/$x",
    ],
)
def test_the_coder_cannot_read_the_judges_goldens(shared: Harness, command: str) -> None:
    reason = shared.before("Bash", CODER, command=command).denied
    assert "golden" in reason, command
    assert shared.before("Bash", VERIFIER, command=command).out == ""


def test_the_barrier_holds_for_the_read_tools_and_lets_the_rest_through(shared: Harness) -> None:
    golden = f"{OP}/modules/soft_module1_golden.py"
    assert "information barrier" in shared.before("Read", CODER, file_path=golden).denied
    assert "information barrier" in shared.before("Read", "pypto-op:pypto-op-debugger", file_path=golden).denied
    assert "goldens" in shared.before("Grep", CODER, pattern="x", path=OP).denied
    assert "goldens" in shared.before("Grep", CODER, pattern="x").denied
    assert shared.before("Read", VERIFIER, file_path=golden).out == ""
    assert shared.before("Read", CODER, file_path=f"{OP}/modules/soft_module1_impl.py").out == ""
    assert shared.before("Grep", CODER, pattern="x", path=f"{OP}/soft_impl.py").out == ""
    assert shared.before("Read", file_path=golden).out == ""


TOOL = "mcp__plugin_pypto-op_pypto-op__state_transition"


@pytest.mark.parametrize("agent", [None, CODER, "general-purpose", "evil:pypto-op-orchestrator2"])
@pytest.mark.parametrize("tool", [TOOL, "pypto-op_state_transition"])
def test_only_the_orchestrator_moves_the_state(shared: Harness, agent: str | None, tool: str) -> None:
    reason = shared.before(tool, agent, action="complete_stage", stage=1).denied
    assert "only pypto-op-orchestrator" in reason
    assert "--agent pypto-op:pypto-op-orchestrator" in reason
    assert shared.before(tool, agent, action="status").out == ""


def test_the_orchestrator_may_move_the_state(shared: Harness) -> None:
    orchestrator = "pypto-op:pypto-op-orchestrator"
    assert shared.before(TOOL, orchestrator, action="complete_stage", stage=1).out == ""
    assert shared.before("Bash", orchestrator, command=f"pypto-op state start_phase --op-dir {OP}").out == ""
    assert shared.before("Bash", CODER, command=f"pypto-op state start_phase --op-dir {OP}").denied


@pytest.mark.parametrize("tool", ["apply_patch", "patch"])
def test_a_patch_is_judged_by_every_file_it_names(shared: Harness, tool: str) -> None:
    patch = "*** Begin Patch\n*** Update File: {}\n@@\n-a\n+b\n*** Add File: {}\n+x\n*** End Patch\n"
    good, bad = f"{OP}/soft_impl.py", f"{OP}/.orchestrator_state.json"
    assert "state machine" in shared.before(tool, patchText=patch.format(good, bad)).denied
    assert "outside" in shared.before(tool, patchText=f"*** Update File: {good}\n*** Move to: ../x.py\n").denied
    assert "names no file" in shared.before(tool, patchText="diff --git a/x b/x").denied
    assert shared.before(tool, patchText=patch.format(good, "src/b.py")).out == ""


def test_a_folder_without_operators_is_left_alone(tmp_path: Path) -> None:
    harness = Harness(tmp_path / "plain", tmp_path / "cache")
    harness.workspace.mkdir()
    assert harness.before("Write", file_path="/tmp/x").out == ""
    assert harness.before("Bash", command="t=$(mktemp); echo x > /tmp/y").out == ""
    assert harness.before("Bash", CODER, command="mktemp /tmp/x.XXXXXX").denied
    assert harness.before("Write", CODER, file_path="/tmp/x").denied
    harness.stop_servers()


def test_a_shell_that_left_the_project_does_not_take_the_workspace_along(harness: Harness, tmp_path: Path) -> None:
    away = tmp_path / "away"
    away.mkdir()
    assert "outside the workspace" in harness.before("Bash", cwd=away, command="echo x > y").denied
    assert "outside the workspace" in harness.before("Write", cwd=away, file_path="y").denied
    (away / "custom").mkdir()
    assert harness.before("Bash", cwd=away, command="echo x > y").out == ""
