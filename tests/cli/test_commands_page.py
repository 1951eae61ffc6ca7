"""Every command: its help, its JSON, and its row on the page of exit codes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click
import pytest

from pypto_op.bundle import command_page
from pypto_op.cli import root

ROOT = Path(__file__).parents[2]
LEAVES = dict(command_page.leaves(root))
SPEAKS_ITSELF = {"demo", "script", "lsp"}
"""Commands without a result of their own: a story on the screen, somebody's script, a server."""


def test_the_page_is_what_the_commands_say() -> None:
    assert (ROOT / command_page.PAGE).read_text(encoding="utf-8") == command_page.render()


@pytest.mark.parametrize("words", sorted(set(LEAVES) - SPEAKS_ITSELF))
def test_every_result_can_be_had_as_json(words: str) -> None:
    assert any("--json" in option.opts for option in LEAVES[words].params), words


def test_a_word_that_is_no_command_is_told_without_torch() -> None:
    """A typo is told at once: torch takes seconds to load."""
    asked = "import sys, contextlib\nfrom pypto_op.cli import main\nwith contextlib.suppress(SystemExit): main(['nosuch'])\n"
    asked += "sys.exit('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "nosuch" in done.stderr


def test_an_action_of_the_state_machine_takes_its_own_flags_alone() -> None:
    def flags(action: str) -> set[str]:
        return {flag for option in LEAVES[f"state {action}"].params if isinstance(option, click.Option) for flag in option.opts}

    assert flags("complete_stage") == {"--op-dir", "--stage", "--reason", "--token", "--as", "--json"}
    assert flags("status") == {"--op-dir", "--json"}
    assert "--require-token" in flags("init") and "--failure-category" in flags("fail_phase")


def test_a_flag_of_another_action_is_refused_by_name(tmp_path: Path) -> None:
    words = ["state", "complete_stage", "--op-dir", str(tmp_path), "--phase", "M1"]
    done = subprocess.run([sys.executable, "-m", "pypto_op.cli", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "--phase" in done.stderr
