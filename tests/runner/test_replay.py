"""Transcripts: what a run recorded and what people wrote are played back, and a replay that leaves its path says where.

The example is played from its first line to its last in `tests/evals/test_replay.py`.
"""

from __future__ import annotations

import shutil
from typing import Any

import pytest
import yaml
from tests.calling import Answer as Called
from tests.runner.running import Running, calls, says

from pypto_op.bundle_files import bundle_root
from pypto_op.runner import journal, transcript

PAGE = bundle_root() / "examples" / "transcripts" / "rmsnorm.yaml"
ENDS = [{"say": "done"}] * 3
"""An orchestrator that has finished nothing is asked twice more."""


def replay(running: Running, document: dict[str, Any]) -> Called:
    path = running.workspace / "t.yaml"
    path.write_text(yaml.safe_dump(document))
    return running.call("--replay", path, key="")


def bash(command: str, **expected: Any) -> dict[str, Any]:
    return {"Bash": {"command": command}, **expected}


def test_a_written_transcript_with_a_dispatch(running: Running) -> None:
    planner = [{"do": [bash("echo planned", told="planned")]}, {"say": "planner plan: DONE"}]
    dispatch = {"Agent": {"subagent_type": "pypto-op-planner", "prompt": "task: plan"}, "turns": planner, "told": "plan: DONE"}
    answer = """echo '{"attempt": "M1.7"}'"""
    turns = [{"say": "first", "do": [dispatch]}, {"do": [bash(answer)]}, {"do": [bash("echo {{attempt}}", told="M1.7")]}, *ENDS]
    done = replay(running, {"request": "x", "turns": turns})
    assert done.code == 1 and "no operator was begun" in done.stderr, done.stderr
    assert {line.get("agent") for line in running.lines if line["kind"] == "reply"} == {
        "pypto-op-orchestrator",
        "pypto-op-planner",
    }


@pytest.mark.parametrize(
    ("turns", "said"),
    [
        ([{"do": [bash("echo a", told="b")]}, *ENDS], "turn 1 of pypto-op-orchestrator (main): the result of Bash"),
        ([{"do": [bash("echo a", refused=True)]}, *ENDS], "expected a refusal or a failure, got a"),
        ([{"do": [bash("false")]}, *ENDS], "expected success, got [exit code 1]"),
        ([{"do": [bash("seq 300; echo the reason; false")]}, *ENDS], "the reason"),
        (ENDS[:1], "turn 2 of pypto-op-orchestrator (main): the transcript has 1 turns there"),
        ([*ENDS, {"say": "more"}], "turn 4 of pypto-op-orchestrator (main): the run ended before it"),
    ],
)
def test_where_a_replay_leaves_its_path(running: Running, turns: list[dict[str, Any]], said: str) -> None:
    done = replay(running, {"request": "x", "turns": turns})
    assert done.code == 1 and "the replay left its path" in done.stderr and said in done.stderr


def test_a_recorded_run_is_played_back_and_compared(running: Running) -> None:
    def bodies(command: str) -> list[Any]:
        return [calls(("Bash", {"command": command}), ("Read", {"file_path": "a.txt"})), says("done")]

    (running.workspace / "a.txt").write_text("3 of 4 cases, 1.25 s\n")
    running.run(bodies("date +%s; echo same"))
    recorded = running.workspace / "recorded.jsonl"
    shutil.copy(journal.latest_session(running.workspace) / journal.TRANSCRIPT, recorded)
    (running.workspace / "a.txt").write_text("4 of 4 cases, 7.5 s\n")
    assert "no operator was begun" in running.call("--replay", recorded, key="").stderr, "numbers may differ"
    (running.workspace / "a.txt").write_text("no case\n")
    left = running.call("--replay", recorded, key="").stderr
    assert "turn 1 of pypto-op-orchestrator (main): the result of Read" in left and "no case" in left


@pytest.mark.parametrize("text", ["", "[]", "request: x\n", "request: x\nturns: [{do: [{Bash: 3}]}]\n", "{"])
def test_what_is_no_transcript(running: Running, text: str) -> None:
    for name in ("t.yaml", "t.jsonl"):
        (running.workspace / name).write_text(text)
        done = running.call("--replay", name, key="")
        assert done.code == 2 and name in done.stderr, done
    assert running.call("--replay", "nowhere.yaml", key="").code == 2


def _writes_kernel(block: dict[str, Any]) -> bool:
    return block.get("name") == "Write" and block["input"]["file_path"].endswith("_impl.py")


def test_the_example_still_fits_the_files_that_it_names() -> None:
    script = transcript.load(PAGE)
    assert len(script.conversations) == 8
    blocks = [block for _, turns in script.conversations.values() for turn in turns for block in turn.content]
    kernels = [block["input"]["content"] for block in blocks if _writes_kernel(block)]
    assert len(kernels) == 1 and "(tokens // T_TILE" in kernels[0]
