"""A state that is complete is the end of a run only where this run has brought it about."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.runner.running import Running, says

from pypto_op.runner.loopback import Answer, Body
from pypto_op.state import service

Complete = Callable[..., None]


@pytest.fixture
def complete(running: Running, monkeypatch: pytest.MonkeyPatch) -> Complete:
    """Begin `soft` in a folder and let the state machine call it complete, with stages up to the one that is named."""

    def begun(workspace: Path, max_stage: int = 6) -> None:
        (workspace / "custom" / "soft").mkdir(parents=True)
        service.transition(workspace / "custom" / "soft", "init", max_stage=max_stage)

    asked = service.status

    def status(op_dir: Path) -> Mapping[str, Any]:
        found = asked(op_dir)
        return {**found, "stage_status": dict.fromkeys(found.get("stage_status", ()), "completed"), "problems": []}

    monkeypatch.setattr(service, "status", status)
    return begun


def test_an_operator_that_was_finished_before_answers_no_request(running: Running, complete: Complete) -> None:
    complete(running.workspace)
    done = running.run([says("All is done.")], "--op", "soft", request="the same with a bias")
    assert done.code == 1 and "every stage was complete before this run began" in done.stderr, done
    assert "nothing was done since" in running.told(1), "the orchestrator is told, and may go on"


def test_one_that_is_fetched_from_elsewhere_answers_none_either(running: Running, complete: Complete, tmp_path: Path) -> None:
    complete(tmp_path / "other")

    def say(number: int, body: Body, headers: Mapping[str, str]) -> Answer:
        if number == 0:  # what a program of an agent could do
            shutil.copytree(tmp_path / "other" / "custom", running.workspace / "custom")
        return says("All is done.")

    done = running.run(say, "--op", "soft")
    assert done.code == 1 and "before this run began" in done.stderr, done


@pytest.mark.parametrize(("words", "max_stage", "code"), [([], 6, 0), (["--target-us", "5"], 6, 1), (["--target-us", "5"], 7, 0)])
def test_a_target_asks_for_the_stage_that_reaches_it(
    running: Running, complete: Complete, words: list[str], max_stage: int, code: int
) -> None:
    def say(number: int, body: Body, headers: Mapping[str, str]) -> Answer:
        if number == 0:
            complete(running.workspace, max_stage)
        return says("All is done.")

    done = running.run(say, "--op", "soft", *words)
    assert done.code == code and ("begun without stage 7" in done.stderr) == bool(code), done
    again = running.run([says("All is done.")], "--resume", "--json", request="")
    assert again.code == code and json.loads(again.stdout)["finished"] == (code == 0), again
