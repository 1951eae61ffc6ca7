"""The shell guard: what may run, through the real hook program."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.hooks.conftest import Harness

TABLE = yaml.safe_load((Path(__file__).parent / "shell_commands.yaml").read_text(encoding="utf-8"))


def _id(row: dict[str, Any]) -> str:
    return row["run"][:60]


def test_the_table_is_big_and_balanced() -> None:
    assert len(TABLE["refuse"]) >= 60
    assert len(TABLE["allow"]) >= 60


@pytest.mark.parametrize("row", TABLE["refuse"], ids=_id)
def test_a_command_that_writes_past_the_linter_is_refused(shared: Harness, row: dict[str, Any]) -> None:
    answer = shared.before("Bash", cwd=shared.workspace / row.get("in", "."), command=row["run"])
    assert answer.denied.startswith("[pypto-op-guard] "), answer
    assert "; " in answer.denied, "the remedy is missing"


@pytest.mark.parametrize("row", TABLE["allow"], ids=_id)
def test_a_harmless_command_runs(shared: Harness, row: dict[str, Any]) -> None:
    answer = shared.before("Bash", cwd=shared.workspace / row.get("in", "."), command=row["run"])
    assert answer.out == "", answer
