"""kill -9 around a line of the journal, with two agents side by side: `--resume` makes the run whole and repeats nothing."""

from __future__ import annotations

import itertools
import json
import os
import signal
import threading
from collections import Counter
from collections.abc import Mapping
from typing import Any

import psutil
import pytest
from tests.runner.running import Running, calls, says
from tests.runner.test_resume import CODER, PLANNER, count, turns

from pypto_op.runner import journal
from pypto_op.runner.loopback import Answer, Body, served

SCRIPTS = {
    "pypto-op-orchestrator": [calls(count("first")), calls(("Agent", PLANNER), ("Agent", CODER)), calls(count("last"))],
    "pypto-op-planner": [calls(count("plan-1"), ("Read", {"file_path": "first"})), calls(count("plan-2")), says("plan: DONE")],
    "pypto-op-coder": [calls(count("code-1")), says("kernel M1: DONE")],
}
FILES = {
    "first": ("main", "0.0"),
    "plan-1": ("main/1.0", "0.0"),
    "plan-2": ("main/1.0", "1.0"),
    "code-1": ("main/1.1", "0.0"),
    "last": ("main", "2.0"),
}
"""By file, the call that makes it; each is written once, or its call is told to be unsure."""
COST = {"input_tokens": 1000, "output_tokens": 10}
_asked: Counter[tuple[str, int]] = Counter()
_lock = threading.Lock()


def say(body: Body, headers: Mapping[str, str]) -> Answer:
    agent, turn = headers["x-pypto-op-agent"], turns(body)
    with _lock:
        _asked[agent, turn] += 1
    script = SCRIPTS[agent]
    found = script[turn] if turn < len(script) else says("done")
    return Answer(found.content, usage=COST)


def lives(running: Running, when: str, number: int, *words: str) -> tuple[int, str]:
    """Run the command in a process of its own, which ends itself before or after a line of its journal; -9, or how it ended."""
    said = running.workspace.parent / "said"
    pid = os.fork()
    if not pid:
        code = 99
        try:
            _dies(when, number)
            done = running.call(*words)
            said.write_text(done.stdout or done.stderr)
            code = done.code
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), said.read_text() if said.exists() else ""


def _dies(when: str, number: int) -> None:
    lines, write = itertools.count(), journal.Journal.write

    def writes(self: journal.Journal, kind: str, **fields: Any) -> None:
        here = next(lines) == number
        if here and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        write(self, kind, **fields)
        if here:
            os.kill(os.getpid(), signal.SIGKILL)

    journal.Journal.write = writes  # type: ignore[method-assign]


def killed_and_gone_on(running: Running, when: str, number: int) -> bool:
    """Kill a run at a line, let it go on, look at everything; say whether the line was reached."""
    _asked.clear()
    with served(say) as port:
        running.patch.setenv("ANTHROPIC_BASE_URL", f"http://127.0.0.1:{port}")
        first = lives(running, when, number, "an operator", "--json")
        reached = first[0] == -9
        done = lives(running, "after", 10**6, "--resume", "--json") if reached and (number or when == "after") else first
    if reached and done is first:
        return True  # not even its first line was written: there is nothing to go on with
    assert done[0] == 1, done
    summary, lines = json.loads(done[1]), running.lines
    assert summary["why"].startswith("the orchestrator ended"), summary
    replies = Counter((line["conversation"], line["turn"]) for line in lines if line["kind"] == "reply")
    assert set(replies.values()) == {1}, "no message is there twice"
    assert summary["tokens"]["input"] == COST["input_tokens"] * len(replies), "what was paid for is counted once"
    assert sum(_asked.values()) <= len(replies) + 2, "at most what was under way is asked for again, for each agent at work"
    results = {(line["conversation"], line["id"]): line for line in lines if line["kind"] == "result"}
    assert len(results) == sum(line["kind"] == "result" for line in lines) == 8, sorted(results)
    unsure = [key for key, line in results.items() if "may have taken effect" in line["content"]]
    assert len(unsure) <= 2
    for name, key in FILES.items():
        path = running.workspace / name
        times = len(path.read_text()) if path.exists() else 0
        assert times == 1 or (times == 0 and key in unsure), (name, times)
    here = (one for one in psutil.process_iter(["cwd"]) if one.info["cwd"] == str(running.workspace) and one.pid != os.getpid())
    left = [one.cmdline() for one in here]
    assert not [line for line in left if "server" not in " ".join(line)], left
    return reached


@pytest.mark.slow
@pytest.mark.parametrize(("when", "numbers"), [("before", [0, 4, 9, 14, 22, 33]), ("after", [0, 3, 8, 12, 17, 25])])
def test_killed_at_a_line(running: Running, when: str, numbers: list[int]) -> None:
    for number in numbers:
        for name in FILES:
            (running.workspace / name).unlink(missing_ok=True)
        assert killed_and_gone_on(running, when, number), number
