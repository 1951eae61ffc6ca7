"""Near misses: does a request reach the team when it should, and is it left alone otherwise?

The model gets what a harness shows at the start of a session, the descriptions of agents and skills, and one request. Its first
message is judged: which agent or skill of the bundle it calls. Nothing is run.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pypto_op.bundle.agents import load_agents
from pypto_op.bundle.checks.skills import read_skills
from pypto_op.bundle_files import bundle_root
from pypto_op.documents import schema
from pypto_op.documents.reading import parse_yaml, read_text
from pypto_op.evals.statistics import Share
from pypto_op.runner.budget import Budget, Limits
from pypto_op.runner.reading import Reply
from pypto_op.runner.service import Question, Service
from pypto_op.runner.session import DEFAULT_MODEL, Access
from pypto_op.runner.tools import files, shell
from pypto_op.runner.tools.table import object_of, text

NOBODY = "nobody"
_SYSTEM = """You are a coding assistant in a terminal. You have tools, agents that you may dispatch, and skills that you may load.
Use an agent or a skill where its description fits the user's request, and only there; otherwise use the other tools, or answer.
"""


@dataclass(frozen=True)
class Asked:
    """One request of `evals/near_misses.yaml`."""

    id: str  # its name
    words: str  # what a user types
    wanted: tuple[str, ...]  # agents and skills of which any is right; empty where none is


def load(path: Path | None = None) -> list[Asked]:
    """Read the requests.

    Raises:
        ContractError: the file is missing or malformed.
    """
    file = path or bundle_root() / "evals" / "near_misses.yaml"
    data = parse_yaml(read_text(file), file=file)
    schema.check(data, "near_misses", file=file)
    return [Asked(row["id"], row["words"], tuple(row["wanted"])) for row in data["requests"]]


def run(requests: list[Asked], *, model: str | None, limits: Limits, repeat: int, tell: Callable[[str], None]) -> dict[str, Any]:
    """Ask the model each request and judge its first message.

    Args:
        model: None is ANTHROPIC_MODEL, or the runner's default.
        repeat: how often each is asked.
        tell: called with a line for each.

    Returns:
        model, rows (request, wanted, chosen, right) and the shares of both kinds.

    Raises:
        InfraError, ContractError, LimitReached: as `Service.converse`.
    """
    name = model or os.environ.get("ANTHROPIC_MODEL") or DEFAULT_MODEL
    access = Access(
        os.environ.get("ANTHROPIC_API_KEY"), os.environ.get("ANTHROPIC_AUTH_TOKEN"), os.environ.get("ANTHROPIC_BASE_URL") or None
    )
    secrets = [secret for secret in (access.key, access.bearer) if secret]
    budget = Budget(limits, name)
    rows: list[dict[str, Any]] = []
    with access.client() as client:
        service = Service(client, name, budget, tell, lambda said: _without(said, secrets))
        for asked in requests:
            for number in range(1, repeat + 1):
                chosen = _first_choice(service, asked, f"{asked.id}.{number}")
                right = chosen in asked.wanted if asked.wanted else chosen == NOBODY
                rows.append({"request": asked.id, "wanted": list(asked.wanted), "chosen": chosen, "right": right})
                tell(f"{asked.id}: {chosen}, {'right' if right else 'WRONG'}")
    ours, others = ([row["right"] for row in rows if bool(row["wanted"]) is kind] for kind in (True, False))
    shares = {"triggers": Share(sum(ours), len(ours)).as_dict(), "leaves_alone": Share(sum(others), len(others)).as_dict()}
    return {"model": name, "rows": rows, **shares, "tokens": vars(budget.spent), "dollars": budget.dollars}


def _first_choice(service: Service, asked: Asked, conversation: str) -> str:
    replies: list[Reply] = []

    def take(reply: Reply) -> None:
        replies.append(reply)

    system = [{"type": "text", "text": _SYSTEM, "cache_control": {"type": "ephemeral"}}]
    question = Question("near-miss", conversation, system, definitions())
    service.converse(question, [{"role": "user", "content": asked.words}], take)
    return choice(replies[0].content)


def choice(content: Sequence[Mapping[str, Any]]) -> str:
    """Return the agent or skill that a message calls first, or NOBODY."""
    for block in content:
        given = block.get("input", {}) if block.get("type") == "tool_use" else {}
        named = given.get("subagent_type") if block.get("name") == "Agent" else given.get("skill")
        if block.get("name") in ("Agent", "Skill") and isinstance(named, str):
            return named.removeprefix("pypto-op:")
    return NOBODY


def definitions() -> list[dict[str, Any]]:
    """Return the tools of a session: dispatch and skills with the bundle's own descriptions, files and a shell."""
    agents = "\n".join(f"- {agent.name}: {agent.description}" for agent in load_agents())
    skills = "\n".join(f"- {skill.folder.name}: {skill.description}" for skill in read_skills(bundle_root())[0])
    named = {"subagent_type": text("The agent's name."), "prompt": text("Its task.")}
    return [
        {
            "name": "Agent",
            "description": f"Dispatch an agent.\n{agents}",
            "input_schema": object_of("subagent_type prompt", **named),
        },
        {"name": "Skill", "description": f"Load a skill.\n{skills}", "input_schema": object_of("skill", skill=text("Its name."))},
        *(tool.definition for tool in (*files.TOOLS, *shell.TOOLS)),
    ]


def _without(said: str, secrets: list[str]) -> str:
    for secret in secrets:
        said = said.replace(secret, "<key>")
    return said
