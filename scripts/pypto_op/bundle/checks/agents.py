"""The agents: the whole team is there, its skills exist, its commands are those it may run, the tables agree."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from pypto_op import __version__
from pypto_op.bundle.agents import Agent
from pypto_op.bundle.checks import command_lines
from pypto_op.bundle.finding import Finding
from pypto_op.bundle.texts import Text
from pypto_op.documents import markdown
from pypto_op.vocabulary import Role
from pypto_op.workflow import workflow

_RETURNS = "skills/pypto-orchestration-manual/references/agents.md"
_MANIFEST = ".claude-plugin/plugin.json"
_MARKET = ".claude-plugin/marketplace.json"


def check(agents: list[Agent], skills: list[str], texts: list[Text], root: Path) -> Iterator[Finding]:
    """Yield what is wrong with the team; `skills` are the names of those that lie in the bundle."""
    names = {agent.name for agent in agents}
    for role in Role:
        if role not in names:
            yield Finding(".agents", 0, f"{role} is missing")
    for agent in agents:
        yield from _agent(agent, next(text for text in texts if text.path == agent.path), root)
    yield from _unread(agents, skills)
    yield from _undescribed(root)
    yield from _versions(root)


def _agent(agent: Agent, text: Text, root: Path) -> Iterator[Finding]:
    from pypto_op.cli import root as cli

    file = text.name
    if agent.path.stem != agent.name:
        yield Finding(file, 1, f"the name {agent.name!r} is not that of the file")
    for skill in (*agent.skills, *agent.on_demand):
        if not (root / "skills" / skill / "SKILL.md").is_file():
            yield Finding(file, 1, f"there is no skill {skill}")
    commands = set(cli.list_commands(None))  # type: ignore[arg-type]
    for command in agent.role["runs"]:
        if command not in commands:
            yield Finding(file, 1, f"role.runs: there is no command {command}")
    for line, command in command_lines.commands_in(text):
        if command in commands and command not in agent.role["runs"]:
            yield Finding(file, line, f"calls `pypto-op {command}`, which role.runs does not list")


def _unread(agents: list[Agent], skills: list[str]) -> Iterator[Finding]:
    read = {skill for agent in agents for skill in (*agent.skills, *agent.on_demand)}
    for skill in skills:
        if skill not in read:
            yield Finding(f"skills/{skill}", 0, "no agent names it under `skills` or `on_demand`, so nobody would read it")


def _undescribed(root: Path) -> Iterator[Finding]:
    """Yield the agents that the orchestrator dispatches and whose answers its manual does not give."""
    page = root / _RETURNS
    told = {row[0] for table in markdown.tables(page.read_text(encoding="utf-8")) for row in table.rows}
    for name in workflow().dispatch:
        if name not in told:
            yield Finding(_RETURNS, 0, f"the table has no row of {name}, which the orchestrator dispatches")


def _versions(root: Path) -> Iterator[Finding]:
    manifest = json.loads((root / _MANIFEST).read_text(encoding="utf-8"))
    market = json.loads((root / _MARKET).read_text(encoding="utf-8"))
    for file, version in ((_MANIFEST, manifest["version"]), (_MARKET, market["plugins"][0]["version"])):
        if version != __version__:
            yield Finding(file, 0, f"the version is {version}, and the package's is {__version__}")
