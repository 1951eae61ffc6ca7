"""Near misses are judged by what a model calls first; the requests name agents and skills that exist."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

import pytest
from tests import quickly
from tests.calling import command

from pypto_op.bundle.agents import load_agents
from pypto_op.bundle.checks.skills import read_skills
from pypto_op.bundle_files import bundle_root
from pypto_op.runner.loopback import Answer, Body, served

quickly.skip_without("anthropic")
LEADER = "pypto-op-orchestrator"


@pytest.fixture
def triggers() -> ModuleType:
    """It brings the client's library, which takes seconds: not at collection."""
    from pypto_op.evals import triggers

    return triggers


def call(name: str, **given: str) -> Answer:
    return Answer([{"type": "tool_use", "id": "toolu_1", "name": name, "input": given}])


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-test-1234567")


def test_every_request_names_what_exists(triggers: ModuleType) -> None:
    known = {agent.name for agent in load_agents()} | {skill.folder.name for skill in read_skills(bundle_root())[0]}
    asked = triggers.load()
    assert {name for one in asked for name in one.wanted} <= known
    assert sum(bool(one.wanted) for one in asked) >= 8 and sum(not one.wanted for one in asked) >= 8
    assert len({one.id for one in asked}) == len(asked)


@pytest.mark.slow
def test_the_model_sees_what_a_harness_shows(monkeypatch: pytest.MonkeyPatch, triggers: ModuleType) -> None:
    seen: list[Body] = []

    def always_the_team(body: Body, headers: Mapping[str, str]) -> Answer:
        seen.append(body)
        return call("Agent", subagent_type=f"pypto-op:{LEADER}", prompt="task")

    with served(always_the_team) as port:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", f"http://127.0.0.1:{port}")
        done = command("eval", "--near-misses", "--json")
    found = json.loads(done.stdout)
    asked = triggers.load()
    assert done.code == 0 and len(found["rows"]) == len(seen) == len(asked)
    assert found["leaves_alone"]["hits"] == 0
    assert found["triggers"]["hits"] == sum(LEADER in one.wanted for one in asked)
    told = {tool["name"]: tool["description"] for tool in seen[0]["tools"]}
    assert all(agent.description in told["Agent"] for agent in load_agents())
    assert all(skill.description in told["Skill"] for skill in read_skills(bundle_root())[0])
    assert seen[0]["messages"][0]["content"] == asked[0].words


def test_a_model_that_calls_nobody_leaves_everything_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    with served(lambda body, headers: Answer([{"type": "text", "text": "Here it is."}])) as port:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", f"http://127.0.0.1:{port}")
        done = command("eval", "--near-misses")
    assert done.code == 0 and "WRONG" in done.stdout and "keeps out of" in done.stdout.splitlines()[-1]
    assert "sk-test-1234567" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("content", "chosen"),
    [
        ([{"type": "tool_use", "name": "Skill", "input": {"skill": "pypto-op:pypto-api-explore"}}], "pypto-api-explore"),
        ([{"type": "text", "text": "pypto-op-orchestrator"}], "nobody"),
        ([{"type": "tool_use", "name": "Bash", "input": {"command": "pypto-op new x"}}], "nobody"),
        ([{"type": "tool_use", "name": "Skill", "input": {"skill": 3}}], "nobody"),
    ],
)
def test_the_first_call_counts(content: list[dict[str, object]], chosen: str, triggers: ModuleType) -> None:
    assert triggers.choice(content) == chosen


def test_what_is_no_list_of_near_misses(tmp_path: Path, triggers: ModuleType) -> None:
    path = tmp_path / "near.yaml"
    path.write_text("schema_version: 1\nrequests: [{id: a, wanted: []}, {id: b, wanted: []}]\n")
    with pytest.raises(Exception, match="words"):
        triggers.load(path)


def test_without_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    done = command("eval", "--near-misses")
    assert done.code == 3 and "ANTHROPIC_API_KEY" in done.stderr
