"""`--runner`: the pinned clients lead, the state decides. What they may do themselves is shown in `tests/clients`."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.clients.installed import claude_environment, needs, opencode_environment, opencode_provider
from tests.clients.test_bundle import run_install
from tests.hooks.scripted_model import scripted_model
from tests.runner.running import KEY, Running

BASH = {"command": "pypto-op state status --op-dir custom/none || echo looked", "description": "x"}


def test_a_client_that_is_not_set_up_is_told_so(running: Running) -> None:
    running.patch.setenv("PATH", "/usr/bin:/bin")
    done = running.call("x", "--runner", "claude")
    assert done.code == 3 and "Claude Code is not installed" in done.stderr
    assert running.call("--runner", "claude", "--replay", "t.yaml").code == 2


@pytest.mark.client
@pytest.mark.slow
@pytest.mark.parametrize("client", ["claude", "opencode"])
def test_a_client_leads_and_the_state_decides(running: Running, client: str) -> None:
    needs(client)
    steps = [
        {"text": "I look.", "tools": [{"name": "Bash" if client == "claude" else "bash", "input": BASH}]},
        {"text": "All is done."},
    ]
    home = running.workspace.parent / "home"
    with scripted_model({"main": steps}) as model:
        base = {"PATH": "/usr/bin:/bin", "HOME": str(home), "LANG": "C.UTF-8"}
        environment = claude_environment(base, model.port) if client == "claude" else opencode_environment(base, home)
        for name, value in environment.items():
            running.patch.setenv(name, value)
        if client == "opencode":
            config = running.workspace.parent / "opencode.json"
            config.write_text(json.dumps(opencode_provider(model.port)))
            running.patch.setenv("OPENCODE_CONFIG", str(config))
        run_install(running.workspace, client, env=environment)
        done = running.call("an operator", "--runner", client, "--json")
    assert done.stdout, done
    summary: dict[str, Any] = json.loads(done.stdout)
    assert done.code == 1 and "no operator was begun" in summary["why"], (done, summary)
    assert summary["requests"] >= 2 and KEY not in json.dumps(running.lines)
    calls = json.dumps([line["event"] for line in running.lines if line["kind"] == "client"])
    assert "looked" in calls, "the call and its result are in the transcript"
    told = json.dumps([body["messages"] for body in model.requests])
    assert "Only its records count" in told, "words of success did not end the run"
