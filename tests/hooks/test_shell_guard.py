"""The shell guard: what may run, through the real hook program."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.hooks.conftest import Harness
from tests.quickly import read_table

TABLE = read_table(Path(__file__).parent / "shell_commands.yaml")


def _id(row: dict[str, Any]) -> str:
    return f"{row.get('by', '')[9:]} {row['run'][:60]}".strip()


def test_the_table_is_big_and_balanced() -> None:
    assert len(TABLE["refuse"]) >= 60
    assert len(TABLE["allow"]) >= 60


@pytest.mark.parametrize("row", TABLE["refuse"], ids=_id)
def test_a_command_that_writes_past_the_linter_is_refused(shared: Harness, row: dict[str, Any]) -> None:
    answer = shared.before("Bash", row.get("by"), shared.workspace / row.get("in", "."), command=row["run"])
    assert answer.denied.startswith("[pypto-op-guard] "), answer
    assert "; " in answer.denied, "the remedy is missing"
    assert row.get("says", "") in answer.denied


@pytest.mark.parametrize("row", TABLE["allow"], ids=_id)
def test_a_harmless_command_runs(shared: Harness, row: dict[str, Any]) -> None:
    answer = shared.before("Bash", row.get("by"), shared.workspace / row.get("in", "."), command=row["run"])
    assert answer.out == "", answer


def test_the_number_of_a_process_that_leads_a_team(shared: Harness) -> None:
    code = "import time; time.sleep(60)"
    others = [subprocess.Popen([sys.executable, "-c", code, *words]) for words in (["pypto_op.cli", "run", "x"], ["own.py"])]
    try:
        leads, own = others
        for words in (
            f"kill {leads.pid}",
            f"kill -TERM 4194999 {leads.pid}",
            f"kill -9 -{leads.pid}",
            f"kill $(echo {leads.pid})",
        ):
            assert "would end process" in shared.before("Bash", "pypto-op-coder", command=words).denied, words
            assert shared.before("Bash", command=words).out == "", "a person's own session"
        assert shared.before("Bash", "pypto-op-coder", command=f"kill -0 {leads.pid}; kill {own.pid}").out == ""
    finally:
        for other in others:
            other.kill()
            other.wait()


def test_a_coder_sees_a_plain_diff_while_no_golden_is_changed(harness: Harness) -> None:
    (harness.workspace / "custom/soft/soft_impl.py").write_text("import pypto\n")
    assert harness.before("Bash", "pypto-op-coder", command="git diff; git diff HEAD").out == ""
    (harness.workspace / "custom/soft/modules/soft_module1_golden.py").write_text("import torch  # new\n")
    for command in ("git diff", "git diff HEAD", "cd custom/soft && git diff --cached"):
        assert "information barrier" in harness.before("Bash", "pypto-op-coder", command=command).denied
    assert harness.before("Bash", command="git diff").out == ""


@pytest.mark.parametrize(
    ("agent", "command", "owner"),
    [
        ("pypto-op-coder", "pypto-op mutate custom/soft", "verifier"),
        ("pypto-op:pypto-op-coder", "cd custom && pypto-op harness new soft", "verifier"),
        ("pypto-op-verifier", "pypto-op cleanup custom/soft", "coder"),
        ("pypto-op-architect", "python -m pypto_op.cli benchmark custom/soft", "optimizer"),
        ("pypto-op-orchestrator", "env X=1 pypto-op --json verify custom/soft", "verifier"),
    ],
)
def test_a_role_runs_its_own_commands_only(shared: Harness, agent: str, command: str, owner: str) -> None:
    answer = shared.before("Bash", agent, command=command)
    assert f"{agent.rpartition(':')[2]} does not run" in answer.denied
    assert owner in answer.denied


@pytest.mark.parametrize(
    ("agent", "command"),
    [
        ("pypto-op-coder", "pypto-op verify custom/soft --levels L1"),
        ("pypto-op-coder", "pypto-op mutate --help"),
        ("pypto-op-planner", "pypto-op doctor; pypto-op api matmul; pypto-op memory check custom/soft"),
        ("pypto-op-verifier", "pypto-op harness new custom/soft && pypto-op tests new custom/soft"),
        ("general-purpose", "pypto-op mutate custom/soft"),
    ],
)
def test_what_a_role_may_run(shared: Harness, agent: str, command: str) -> None:
    assert shared.before("Bash", agent, command=command).out == ""
