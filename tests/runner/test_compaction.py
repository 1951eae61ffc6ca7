"""A conversation that grows too long goes on without its old results; a limit of turns is no end for `--resume`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from tests.runner.running import Running, calls, says

from pypto_op.runner import compaction
from pypto_op.runner.loopback import Answer, Body


def message(number: int, size: int) -> list[dict[str, Any]]:
    result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": f"{number}:" + "x" * size, "is_error": False}
    call = {"type": "tool_use", "id": f"t{number}", "name": "Read", "input": {"file_path": "a"}}
    return [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]


def test_old_results_are_cut_and_everything_else_stays() -> None:
    history = [{"role": "user", "content": "the task"}, *(part for number in range(20) for part in message(number, 5000))]
    assert compaction.compacted(history, most=10**6) is history
    shorter = compaction.compacted(history, most=50_000)
    assert len(shorter) == len(history) and shorter[0] == history[0]
    assert shorter[-compaction.KEPT_MESSAGES :] == history[-compaction.KEPT_MESSAGES :]
    cut = shorter[2]["content"][0]
    assert cut["content"].startswith("0:xxx") and "characters of this old result are left out" in cut["content"]
    assert cut["tool_use_id"] == "t0" and shorter[1] == history[1]
    assert compaction.size_of(shorter) < compaction.size_of(history) / 2
    assert compaction.compacted(shorter, most=50_000) == shorter, "what was cut is not cut again"


@pytest.mark.slow
def test_a_run_goes_on_beyond_the_limit(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction.compacted, "__defaults__", (30_000,))
    (running.workspace / "long.txt").write_text("y" * 1500 + "\n")

    def model(number: int, body: Body, headers: Mapping[str, str]) -> Answer:
        return calls(("Bash", {"command": f"cat long.txt; echo {number}"})) if number < 30 else says("done")

    running.run(model)
    sizes = [len(json.dumps(body["messages"])) for body in running.bodies]
    assert len(sizes) > 30 and max(sizes) < 60_000
    last = running.bodies[30]["messages"]
    assert "are left out" in json.dumps(last) and last[-1]["content"][0]["content"].endswith("29")


@pytest.mark.slow
def test_resume_goes_on_after_the_limit_of_turns(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pypto_op.runner.conversation.MOST_TURNS", 8)

    def model(number: int, body: Body, headers: Mapping[str, str]) -> Answer:
        turn = sum(part["role"] == "assistant" for part in body["messages"])
        return calls(("Bash", {"command": f"echo {turn}"})) if turn < 10 else says("done")

    stopped = running.run(model)
    assert stopped.code == 1 and "takes more than 8 turns" in stopped.stderr
    resumed = running.run(model, "--resume", request="")
    assert "takes more than" not in resumed.stderr, resumed.stderr
    assert [line["content"] for line in running.lines if line["kind"] == "result"] == [str(turn) for turn in range(10)]
