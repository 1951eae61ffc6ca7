"""A run that was killed at any moment goes on where it stopped, and repeats no step that was finished."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.runner.running import KEY, Running, calls, says, trouble

from pypto_op.runner import journal
from pypto_op.runner.loopback import Answer, Body, served

SLEEPS = "sleep 617"
"""No other test sleeps that long, so its process is found by its command."""

PLANNER = {"subagent_type": "pypto-op-planner", "prompt": "task: plan", "description": "plan"}
CODER = {"subagent_type": "pypto-op:pypto-op-coder", "prompt": "task: kernel", "description": "kernel"}


def count(name: str) -> tuple[str, dict[str, Any]]:
    """A call whose number of runs can be seen."""
    return "Bash", {"command": f"python3 -c \"open('{name}', 'a').write('x')\"; echo {name}"}


def turns(body: Body) -> int:
    return sum(1 for message in body["messages"] if message["role"] == "assistant")


@pytest.mark.slow
def test_a_run_goes_on_after_each_end_without_repeating_a_step(running: Running) -> None:
    """Two dispatches side by side; the service fails at one place after the other, and each time the run goes on."""
    scripts = {
        "pypto-op-orchestrator": [calls(count("first")), calls(("Agent", PLANNER), ("Agent", CODER)), calls(count("last"))],
        "pypto-op-planner": [calls(count("plan-1")), calls(count("plan-2")), says("planner plan: DONE")],
        "pypto-op-coder": [calls(count("code-1")), says("coder kernel M1: DONE")],
    }
    said: set[tuple[str, int]] = set()
    fails_at = {("pypto-op-planner", 1), ("pypto-op-coder", 1), ("pypto-op-orchestrator", 2)}

    def say(number: int, body: Body, headers: Mapping[str, str]) -> Answer:
        agent, turn = headers["x-pypto-op-agent"], turns(body)
        if (agent, turn) in fails_at:
            fails_at.discard((agent, turn))
            return trouble(401)
        script = scripts[agent]
        if turn < len(script):
            assert (agent, turn) not in said, "a turn that was answered is not asked for again"
            said.add((agent, turn))
        return script[turn] if turn < len(script) else says("done")

    codes, request = [], "an operator"
    for _ in range(5):
        done = running.run(say, *([] if request else ["--resume"]), "--json", request=request)
        codes.append(done.code)
        request = ""
        if done.code == 1:
            break
    assert codes[0] == 3 and codes[-1] == 1 and 3 <= len(codes) <= 4, codes
    for name in ("first", "plan-1", "plan-2", "code-1", "last"):
        assert (running.workspace / name).read_text() == "x", name
    results = {(line["conversation"], line["id"]): line["content"] for line in running.lines if line["kind"] == "result"}
    assert results[("main", "1.0")] == "planner plan: DONE" and results[("main", "1.1")] == "coder kernel M1: DONE"
    assert json.loads(done.stdout)["requests"] == sum(line["kind"] == "reply" for line in running.lines)


@pytest.mark.slow
def test_a_run_whose_budget_was_spent_goes_on_with_a_greater_one(running: Running) -> None:
    """What was paid for counts on, and its calls are not made again."""

    def say(number: int, body: Body, headers: Mapping[str, str]) -> Answer:
        usage = {"input_tokens": 3000, "output_tokens": 500}
        turn = turns(body)
        return calls(count(f"step-{turn}"), usage=usage) if turn < 12 else replace(says("done"), usage=usage)

    first = running.run(say, "--budget", "40000", "--json")
    steps = sorted(path.name for path in running.workspace.glob("step-*"))
    assert first.code == 1 and "the budget is spent" in json.loads(first.stdout)["why"] and 1 <= len(steps) < 12
    same = running.run(say, "--resume", "--json", request="")  # the run's own budget counts on
    assert same.code == 1 and "the budget is spent" in json.loads(same.stdout)["why"] and not running.bodies
    more = running.run(say, "--resume", "--budget", "400000", "--json", request="")
    told = json.loads(more.stdout)
    assert more.code == 1 and "the budget is spent" not in told["why"], told
    assert [(running.workspace / f"step-{n}").read_text() for n in range(12)] == ["x"] * 12
    assert told["tokens"]["input"] == 3000 * told["requests"] and told["requests"] > 12, "earlier requests count on"


@pytest.mark.slow
def test_the_time_is_over_while_a_command_is_at_work(running: Running) -> None:
    """The command dies with the time; a run that goes on does not repeat it, and tells the model to look first."""
    sleeps = "sleep 619"
    slow = calls(("Bash", {"command": f"python3 -c \"open('began', 'a').write('x')\"; {sleeps}"}))
    began = time.monotonic()
    done = running.run(lambda number, body, headers: slow, "--max-minutes", "0.1")
    assert done.code == 1 and "the time is over" in done.stderr and time.monotonic() - began < 300
    assert not [process for process in Path("/proc").glob("[0-9]*") if _command(process) == sleeps]
    again = running.run(lambda number, body, headers: says("done"), "--resume", request="")
    assert again.code == 1 and (running.workspace / "began").read_text() == "x"


def test_dispatches_run_side_by_side(running: Running) -> None:
    """Each agent waits for the other's file: one after the other they would wait for ever."""
    wait = "for i in $(seq 600); do [ -e {0} ] && break; sleep 0.05; done; [ -e {0} ] && echo met"

    def meet(own: str, other: str) -> Answer:
        return calls(("Bash", {"command": f"python3 -c \"open('{own}', 'w')\"; {wait.format(other)}"}))

    def say(number: int, body: Body, headers: Mapping[str, str]) -> Answer:
        if headers["x-pypto-op-agent"].endswith("orchestrator"):
            return calls(("Agent", PLANNER), ("Agent", CODER)) if turns(body) == 0 else says("done")
        own, other = ("p", "c") if headers["x-pypto-op-agent"].endswith("planner") else ("c", "p")
        return meet(own, other) if turns(body) == 0 else says(json.dumps(body["messages"][-1]["content"]))

    running.run(say)
    results = [line["content"] for line in running.lines if line["kind"] == "result" and line["conversation"] == "main"]
    assert len(results) == 2 and all("met" in text for text in results)


def test_each_agent_has_its_own_tools_and_files(running: Running) -> None:
    write = ("Write", {"file_path": "custom/soft/soft_impl.py", "content": "import pypto\n"})

    def say(number: int, body: Body, headers: Mapping[str, str]) -> Answer:
        if headers["x-pypto-op-agent"].endswith("orchestrator"):
            return (
                calls(("Agent", PLANNER), ("Agent", {**PLANNER, "subagent_type": "nobody"})) if turns(body) == 0 else says("done")
            )
        return calls(write, ("Agent", CODER)) if turns(body) == 0 else says("planner plan: DONE")

    (running.workspace / "custom/soft").mkdir(parents=True)
    (running.workspace / "custom/soft/SPEC.md").write_text("# spec\n")
    running.run(say)
    planner = running.bodies[running.agents.index("pypto-op-planner")]
    assert {tool["name"] for tool in planner["tools"]} >= {"Read", "Write"}
    assert not {tool["name"] for tool in planner["tools"]} & {"Agent", "mcp__plugin_pypto-op_pypto-op__state_transition"}
    assert "# Planner" in planner["system"][0]["text"] and "# Skill pypto-op-plan" in planner["system"][0]["text"]
    assert planner["system"][0]["cache_control"] == {"type": "ephemeral"} == planner["cache_control"]
    told = {line["id"]: line for line in running.lines if line["kind"] == "result" and line["conversation"] == "main/0.0"}
    assert "pypto-op-planner does not own it" in told["0.0"]["content"] and "no tool 'Agent'" in told["0.1"]["content"]
    assert not (running.workspace / "custom/soft/soft_impl.py").exists()
    assert any("no agent 'nobody'" in line["content"] for line in running.lines if line["kind"] == "result")


@pytest.mark.slow
def test_kill_in_the_middle_of_a_call(running: Running) -> None:
    """The command as a user starts it, killed while a call with effects is at work: what the call did is not repeated."""
    slow = calls(("Bash", {"command": f"python3 -c \"open('began', 'a').write('x')\"; {SLEEPS}"}))

    def say(body: Body, headers: Mapping[str, str]) -> Answer:
        running.bodies.append(body)
        return slow if turns(body) == 0 else says("done")

    with served(say) as port:
        environment = {**os.environ, "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{port}", "ANTHROPIC_API_KEY": KEY}
        command = [sys.executable, "-m", "pypto_op.cli", "run"]
        child = subprocess.Popen([*command, "an operator"], cwd=running.workspace, env=environment, start_new_session=True)
        began = running.workspace / "began"
        sleeping: list[Path] = []
        while not sleeping:
            time.sleep(0.05)
            assert child.poll() is None
            sleeping = [p for p in Path("/proc").glob("[0-9]*") if _command(p) == SLEEPS and _group_of(p) != child.pid]
        assert KEY.encode() not in Path(f"/proc/{child.pid}/environ").read_bytes(), "an agent could read it there"
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
        running.bodies.clear()
        done = subprocess.run(
            [*command, "--resume"], cwd=running.workspace, env=environment, capture_output=True, text=True, check=False
        )
    assert done.returncode == 1 and began.read_text() == "x"
    assert "may have taken effect" in running.told(0)
    assert not any(_command(path) == SLEEPS for path in sleeping), "what a call started dies with the run"


@pytest.mark.slow
@pytest.mark.parametrize(("number", "words", "code"), [(2, [], 130), (15, [], 130), (0, ["--max-minutes", "0.1"], 1)])
def test_its_object_is_printed_when_it_is_interrupted(running: Running, number: int, words: list[str], code: int) -> None:
    """Whatever ends the process at once: Ctrl-C, SIGTERM, or the end of the time while the service is silent."""

    def say(body: Body, headers: Mapping[str, str]) -> Answer:
        running.bodies.append(body)
        if turns(body) == 0 and number:
            return calls(("Bash", {"command": "pypto-op new soft"}))
        time.sleep(120 if not number else 3600)
        return says("done")

    with served(say) as port:
        environment = {**os.environ, "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{port}", "ANTHROPIC_API_KEY": KEY}
        command = [sys.executable, "-m", "pypto_op.cli", "run", "an operator", "--op", "soft", "--json", *words]
        child = subprocess.Popen(command, cwd=running.workspace, env=environment, stdout=subprocess.PIPE, text=True)
        while number and len(running.bodies) < 2:
            time.sleep(0.05)
            assert child.poll() is None
        if number:
            child.send_signal(number)
        said = child.communicate(timeout=120)[0]
    summary = json.loads(said)
    assert child.returncode == code and not summary["finished"] and summary["goes_on"] == "pypto-op run --resume", summary
    assert (
        summary["state"] == ("soft: no stage was begun" if number else "no operator was begun")
        and Path(summary["transcript"]).is_file()
    )
    assert summary["why"] == ("interrupted" if number else "the time is over, and a call was still at work")


def _command(process: Path) -> str:
    try:
        return (process / "cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
    except OSError:
        return ""


def _group_of(process: Path) -> int:
    try:
        return os.getpgid(int(process.name))
    except OSError:
        return 0


@pytest.mark.slow
def test_a_line_that_a_kill_cut_is_left_out(running: Running) -> None:
    running.run([calls(count("once")), says("done")])
    path = journal.latest_session(running.workspace) / journal.TRANSCRIPT
    path.write_bytes(path.read_bytes() + b'{"kind": "reply", "conv')
    assert running.run([says("done")], "--resume", request="").code == 1
    assert (running.workspace / "once").read_text() == "x" and all("kind" in line for line in running.lines)


def test_a_disk_that_is_full_leaves_whole_lines(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """A write that takes a part and then fails: the part is taken back, and the run goes on when there is room."""
    writes, full = os.write, []

    def short(descriptor: int, data: bytes) -> int:
        if b'"kind": "result"' not in bytes(data) and not full:
            return writes(descriptor, data)
        if full:
            raise OSError(errno.ENOSPC, "No space left on device")
        full.append(True)
        return writes(descriptor, bytes(data)[:9])

    monkeypatch.setattr(journal.os, "write", short)
    done = running.run([calls(count("once")), says("done")])
    monkeypatch.setattr(journal.os, "write", writes)
    assert done.code == 3 and "No space left" in done.stderr and "--resume" in done.stderr
    assert running.run([says("done")], "--resume", request="").code == 1
    assert (running.workspace / "once").read_text() == "x" and all("kind" in line for line in running.lines)


def test_a_transcript_that_somebody_broke(running: Running) -> None:
    running.run([says("done")])
    path = journal.latest_session(running.workspace) / journal.TRANSCRIPT
    path.write_text("no json\n" + path.read_text())
    done = running.run([says("done")], "--resume", request="")
    assert done.code == 2 and "line 1" in done.stderr


def test_two_processes_are_not_at_one_run(running: Running) -> None:
    running.run([says("done")])
    ended: list[Path] = []
    running.patch.setattr("pypto_op.runner.commands.resident.end", ended.append)
    with journal.alone(running.workspace):
        done = running.run([says("done")], "--resume", request="")
        again = running.run([says("done")])
    assert done.code == again.code == 2 and "another process" in done.stderr and "another process" in again.stderr
    assert not ended, "the judge of the run that is at work goes on"


@pytest.mark.slow
def test_a_refused_run_is_not_the_last_one(running: Running) -> None:
    running.run([calls(count("once")), says("done")])
    refused = running.run([says("done")], "--budget", "$5", "--model", "somebodys-model")
    assert refused.code == 2 and "no price is known" in refused.stderr
    assert running.run([says("done")], "--resume", request="").code == 1
    assert (running.workspace / "once").read_text() == "x" and any("once" in str(line) for line in running.lines)


@pytest.mark.slow
def test_a_text_that_calls_itself_a_token_garbles_nothing(running: Running) -> None:
    """A word of the journal's own form would be replaced in it, and a finished call be made again."""
    shown = calls(("Bash", {"command": 'echo \'{"token": "conversation"} {"token": "result"}\''}))
    running.run([shown, calls(count("once")), says("done")])
    assert {line["kind"] for line in running.lines} >= {"reply", "result"}
    assert sum("conversation" in line for line in running.lines) > 4
    running.run([says("done")], "--resume", request="")
    assert (running.workspace / "once").read_text() == "x"


def test_the_model_alone_has_files_a_shell_and_a_probe(running: Running) -> None:
    (running.workspace / "p.py").write_text("print('probed', 2 + 3)\n")
    shell = calls(("Bash", {"command": "python p.py; command -v probe; command -v pypto-op || echo none"}))
    done = running.run([shell, says("ended")], "--bare")
    assert done.code == 1, done.stderr
    assert {tool["name"] for tool in running.bodies[0]["tools"]} == {"Bash", "Read", "Write", "Edit", "Glob", "Grep"}
    assert "probed 5" in running.told(1) and "/programs/" in running.told(1) and "none" in running.told(1)
    assert len(running.bodies) == 2, "nobody reminds it: it has no state"
    assert running.call("x", "--bare", "--runner", "claude").code == 2


def test_a_run_of_the_model_alone_is_not_gone_on_with_by_the_team(running: Running) -> None:
    running.run([trouble(401)], "--bare")
    done = running.run([says("done")], "--resume", request="")
    assert done.code == 2 and "`pypto-op run --resume --bare`" in done.stderr and not running.bodies, done.stderr
    done = running.run([says("done")], "--resume", "--bare", request="")
    assert done.code == 1 and "`pypto-op run --resume --bare` goes on" in done.stderr, done.stderr


def test_json_tells_what_ended_a_run(running: Running) -> None:
    done = running.run([calls(count("first")), trouble(401, "no")], "--json")
    summary = json.loads(done.stdout)
    assert done.code == 3 and summary["finished"] is False and "refuses the key" in summary["why"] and summary["requests"] == 2


@pytest.mark.parametrize("key", ["", KEY])
def test_resume_where_no_run_was_begun(running: Running, monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    """As a user starts it: a key would not help, so none is asked for, and nothing is begun."""
    monkeypatch.delenv("ANTHROPIC_AUTH_TOKEN", raising=False)
    monkeypatch.setenv("ANTHROPIC_API_KEY", key)
    words = [sys.executable, "-m", "pypto_op.cli", "run", "--resume"]
    done = subprocess.run(words, cwd=running.workspace, capture_output=True, text=True, check=False)
    told = [line for line in done.stderr.splitlines() if " s so far" not in line]
    assert done.returncode == 2 and len(told) == 1 and "no run was begun in this folder" in told[0], done
    assert not list(running.workspace.iterdir()) and not journal.sessions_folder(running.workspace).exists()
