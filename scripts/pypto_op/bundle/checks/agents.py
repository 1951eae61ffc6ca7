"""The agents: the whole team is there, its skills exist, its commands are those it may run, the tables agree."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from pypto_op import __version__
from pypto_op.bundle import role_table
from pypto_op.bundle.agents import Agent
from pypto_op.bundle.checks import command_lines
from pypto_op.bundle.finding import Finding
from pypto_op.bundle.texts import Text
from pypto_op.vocabulary import Role

_MANIFEST = ".claude-plugin/plugin.json"
_MARKET = ".claude-plugin/marketplace.json"


def check(agents: list[Agent], texts: list[Text], root: Path) -> Iterator[Finding]:
    """Yield what is wrong with the team."""
    names = {agent.name for agent in agents}
    for role in Role:
        if role not in names:
            yield Finding(".agents", 0, f"{role} is missing")
    for agent in agents:
        yield from _agent(agent, next(text for text in texts if text.path == agent.path), root)
    yield from _table(agents, root)
    yield from _manifests(agents, root)


def _agent(agent: Agent, text: Text, root: Path) -> Iterator[Finding]:
    from pypto_op.cli import root as cli

    file = text.name
    if agent.path.stem != agent.name:
        yield Finding(file, 1, f"the name {agent.name!r} is not that of the file")
    if agent.name not in {str(role) for role in Role}:
        yield Finding(file, 1, f"the vocabulary has no role {agent.name}")
    for skill in agent.skills:
        if not (root / "skills" / skill / "SKILL.md").is_file():
            yield Finding(file, 1, f"there is no skill {skill}")
    commands = set(cli.list_commands(None))  # type: ignore[arg-type]
    for command in agent.role["runs"]:
        if command not in commands:
            yield Finding(file, 1, f"role.runs: there is no command {command}")
    for line, command in command_lines.commands_in(text):
        if command in commands and command not in agent.role["runs"]:
            yield Finding(file, line, f"calls `pypto-op {command}`, which role.runs does not list")


def _table(agents: list[Agent], root: Path) -> Iterator[Finding]:
    path = role_table.table_path(root)
    table = path.read_text(encoding="utf-8")
    file = path.relative_to(root).as_posix()
    if role_table.render(agents, table) != table:
        yield Finding(file, 0, "differs from the agents' front matter; run `pypto-op bundle roles`")
    if role_table.writers_in(table) != role_table.movers(agents):
        yield Finding(file, 0, f"state_tool.writers is not who may move the state: {', '.join(role_table.movers(agents))}")


def _manifests(agents: list[Agent], root: Path) -> Iterator[Finding]:
    manifest = json.loads((root / _MANIFEST).read_text(encoding="utf-8"))
    market = json.loads((root / _MARKET).read_text(encoding="utf-8"))
    listed = [f"./{agent.path.relative_to(root).as_posix()}" for agent in agents]
    if manifest["agents"] != listed:
        yield Finding(_MANIFEST, 0, "`agents` does not list exactly the files of .agents/, in order")
    for file, version in ((_MANIFEST, manifest["version"]), (_MARKET, market["plugins"][0]["version"])):
        if version != __version__:
            yield Finding(file, 0, f"the version is {version}, and the package's is {__version__}")
