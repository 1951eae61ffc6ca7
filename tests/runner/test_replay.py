"""Transcripts: what a run recorded and what people wrote are played back, and a replay that leaves its path says where.

The example is played from its first line to its last in `tests/evals/test_replay.py`.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.calling import Answer as Called
from tests.runner.running import Running, calls, says
from tests.telling import told_lines

from pypto_op.bundle_files import bundle_root
from pypto_op.errors import InfraError
from pypto_op.runner import journal, transcript

PAGE = bundle_root() / "examples" / "transcripts" / "rmsnorm.yaml"
ENDS = [{"say": "done"}] * 3
"""An orchestrator that has finished nothing is asked twice more."""


def replay(running: Running, document: dict[str, Any]) -> Called:
    path = running.workspace / "t.yaml"
    path.write_text(json.dumps(document))  # JSON is YAML
    return running.call("--replay", path, key="")


def bash(command: str, **expected: Any) -> dict[str, Any]:
    return {"Bash": {"command": command}, **expected}


@pytest.mark.slow
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


@pytest.mark.slow
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


BROKEN = [
    ("request: x\nturns: [{say: 3}]\n", "turns[0].say"),
    ("request: x\nturns: [{say: a, does: []}]\n", "'does'"),
    ("request: x\nturns: say\n", "turns"),
    ("request: x\nturns: []\n", "turns"),
    ("request: [x]\nturns: [{say: a}]\n", "request"),
    ("request: x\nfiles: 3\nturns: [{say: a}]\n", "files"),
    ("request: x\nturn: 3\nturns: [{say: a}]\n", "'turn'"),
    ("request: x\nturns: [{do: [{Bash: {command: a}, told: {a: b}}]}]\n", "turns[0].do[0].told"),
    ("request: x\nturns: [{do: [{Bash: {command: a}, refused: 'no'}]}]\n", "turns[0].do[0].refused"),
    ("request: x\nturns: [{do: [{Bash: {command: a}, tolled: b}]}]\n", "'tolled'"),
    ("request: x\nturns: [{do: [{told: b}]}]\n", "turns[0].do[0]"),
    ("request: x\nturns: [{do: [{Bash: {command: a}, Read: {file_path: b}}]}]\n", "turns[0].do[0]"),
    ("request: x\nturns: [{do: [{Agent: {prompt: a}, turns: [{say: a}]}]}]\n", "subagent_type"),
    ("request: x\nturns: [{do: [{Agent: {subagent_type: a, prompt: a}}]}]\n", "turns"),
    ("request: x\nturns: [{do: [{Write: {file_path: a, content: {file: [b]}}}]}]\n", "turns[0].do[0].Write.content.file"),
    ("request: x\nturns: [{do: [{Write: {file_path: a, content: {file: b, replace: [c]}}}]}]\n", "content.replace"),
    ("request: x\nturns: [{do: [{Write: {file_path: a, content: {file: nowhere}}}]}]\n", "turns[0].do[0].Write.content"),
    ("request: x\nfiles: /dev\nturns: [{do: [{Write: {file_path: a, content: {file: zero}}}]}]\n", "do[0].Write.content"),
    (
        "request: x\nturns: [{do: [{Agent: {subagent_type: a, prompt: a}, turns: [{do: [{Write: {content: {file: z}}}]}]}]}]\n",
        "turns[0].do[0].turns[0].do[0].Write.content",
    ),
    ("request: x\nturns:\n- say: a\n  say: b\n", "line 4"),
    ("request: x\n3: y\nturns: [{say: a}]\n", "line 2"),
    ("request: x\nturns: [{say: !!python/name:os.system a}]\n", "line 2"),
]


@pytest.mark.parametrize(("text", "place"), BROKEN)
def test_a_slip_in_a_written_transcript_is_told_with_its_place(running: Running, text: str, place: str) -> None:
    (running.workspace / "t.yaml").write_text(text)
    done = running.call("--replay", "t.yaml", key="")
    assert done.code == 2 and done.stderr.startswith("pypto-op: t.yaml: ") and place in done.stderr, done.stderr
    assert len(told_lines(done.stderr)) == 1 and "Error" not in done.stderr, done.stderr


@pytest.mark.parametrize(
    ("line", "place"),
    [
        ({"kind": "run"}, "line 1"),
        ({"kind": "reply", "conversation": "main", "agent": "a", "turn": 0}, "line 2"),
        ({"kind": "reply", "conversation": "main", "agent": "a", "turn": 0, "content": "words"}, "line 2.content"),
        (
            {"kind": "reply", "conversation": "main", "agent": "a", "turn": 0, "content": [{"type": "tool_use"}]},
            "line 2.content[0]",
        ),
        ({"kind": "result", "conversation": "main", "id": "0.0", "content": None, "is_error": False}, "line 2.content"),
    ],
)
def test_a_slip_in_a_recorded_transcript_is_told_with_its_place(running: Running, line: dict[str, Any], place: str) -> None:
    lines = [line] if line["kind"] == "run" else [{"kind": "run", "prompt": "x"}, line]
    (running.workspace / "t.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines))
    done = running.call("--replay", "t.jsonl", key="")
    assert done.code == 2 and f"t.jsonl: {place}" in done.stderr and len(told_lines(done.stderr)) == 1, done.stderr


def test_json_is_told_of_a_replay_that_leaves_its_path_too(running: Running) -> None:
    path = running.workspace / "t.yaml"
    path.write_text(json.dumps({"request": "x", "turns": [{"do": [bash("echo a", told="b")]}, *ENDS]}))
    done = running.call("--replay", path, "--json", key="")
    summary = json.loads(done.stdout)
    assert done.code == 1 and not summary["finished"] and "left its path" in summary["why"] and summary["requests"] >= 1
    assert summary["why"].removeprefix(f"{running.workspace}/") in done.stderr and Path(summary["transcript"]).is_file()


@pytest.mark.slow
def test_an_interrupted_replay_says_what_goes_on(running: Running) -> None:
    """The command of its last line is run as it stands, and the replay comes to its end."""
    path = running.workspace / "a b.yaml"
    path.write_text(json.dumps({"request": "x", "turns": [{"do": [bash("python3 -c \"open('began', 'w')\"; sleep 30")]}, *ENDS]}))
    words = [sys.executable, "-m", "pypto_op.cli", "run", "--replay", "a b.yaml"]
    child = subprocess.Popen(words, cwd=running.workspace, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    while not (running.workspace / "began").exists():
        assert child.poll() is None, child.communicate()
        time.sleep(0.05)
    child.send_signal(signal.SIGINT)
    said = child.communicate(timeout=60)[1]
    assert child.returncode == 130 and "interrupted; `pypto-op run --resume --replay 'a b.yaml'` goes on" in said, said
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    again = subprocess.run(
        ["sh", "-c", said.split("`")[1]], cwd=running.workspace, env=environment, capture_output=True, text=True, check=False
    )
    assert again.returncode == 1 and "ended in the middle of this call" in again.stderr, "it is told, not repeated"


@pytest.mark.slow
def test_a_replay_goes_on_after_an_agent_has_ended(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """The ended agent is not asked again, what its results named is still known, and the replay comes to its end."""
    answer = bash("""echo '{"attempt": "M1.7"}'""")
    dispatch = {
        "Agent": {"subagent_type": "pypto-op-planner", "prompt": "task: plan"},
        "turns": [{"do": [answer]}, {"say": "plan: DONE"}],
    }
    turns = [{"do": [dispatch]}, {"do": [bash("echo second")]}, {"do": [bash("echo {{attempt}}", told="M1.7")]}, *ENDS]
    write, broken = journal.Journal.write, []

    def once(self: journal.Journal, kind: str, **fields: Any) -> None:
        if kind == "call" and fields["input"].get("command") == "echo second" and not broken:
            broken.append(kind)
            raise InfraError("killed here", remedy="go on")
        write(self, kind, **fields)

    monkeypatch.setattr(journal.Journal, "write", once)
    assert replay(running, {"request": "x", "turns": turns}).code == 3 and broken
    done = running.call("--resume", "--replay", running.workspace / "t.yaml", key="")
    assert done.code == 1 and "left its path" not in done.stderr and "the orchestrator ended" in done.stderr, done
    assert sum(line["kind"] == "reply" for line in running.lines) == len(turns) + 2


def _writes_kernel(block: dict[str, Any]) -> bool:
    return block.get("name") == "Write" and block["input"]["file_path"].endswith("_impl.py")


def test_the_example_still_fits_the_files_that_it_names() -> None:
    script = transcript.load(PAGE)
    assert len(script.conversations) == 8
    blocks = [block for _, turns in script.conversations.values() for turn in turns for block in turn.content]
    kernels = [block["input"]["content"] for block in blocks if _writes_kernel(block)]
    assert len(kernels) == 1 and "(tokens // T_TILE" in kernels[0]
