"""Agents that go round and round: each is ended, and so is a run whose orchestrator does."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from tests.runner.running import Running, calls
from tests.runner.test_faults import bash

from pypto_op.runner import conversation
from pypto_op.runner.loopback import Answer, Body


@pytest.mark.slow
def test_the_same_call_again_and_again(running: Running) -> None:
    done = running.run([bash("echo same")])
    assert done.code == 1 and "same call 6 times" in done.stderr and len(running.bodies) == 6
    assert "do something else" in running.told(3)


@pytest.mark.slow
def test_agents_that_dispatch_each_other(running: Running) -> None:
    """An agent has no such tool, whatever it writes into the call; and its end is the same for each of its dispatches."""

    def say(number: int, body: Body, headers: Mapping[str, str]) -> Answer:
        other = "coder" if headers["x-pypto-op-agent"].endswith("planner") else "planner"
        return calls(("Agent", {"subagent_type": f"pypto-op-{other}", "prompt": f"go on {number}", "description": "d"}))

    done = running.run(say)
    assert done.code == 1 and "pypto-op-orchestrator makes the same call 6 times with the same result: Agent" in done.stderr, done
    assert len(running.bodies) == 6 + 6 * 6


@pytest.mark.slow
def test_an_agent_that_never_ends(running: Running) -> None:
    running.patch.setattr(conversation, "MOST_TURNS", 7)
    done = running.run(lambda number, body, headers: bash(f"echo {number}"))
    assert done.code == 1 and "more than 7 turns" in done.stderr and len(running.bodies) == 7
