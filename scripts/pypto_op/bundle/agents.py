"""The agents of the team, read from `.agents/*.md`: the single source for every harness and for the guards' role table."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pypto_op.bundle_files import bundle_root
from pypto_op.documents import front_matter, schema
from pypto_op.documents.reading import read_text

FOLDER = ".agents"
MCP_PREFIX = "mcp__plugin_pypto-op_pypto-op__"
"""How Claude Code names a tool of the bundle's MCP server; the agents' `tools` use these names."""


@dataclass(frozen=True)
class Agent:
    """One agent."""

    path: Path  # its file
    name: str  # its name, without a plugin's prefix
    description: str  # one line that says when to use it
    mode: str  # `primary` or `subagent`
    tools: tuple[str, ...]  # exactly the tools it gets, in Claude Code's names
    skills: tuple[str, ...]  # skills that are loaded before it starts
    on_demand: tuple[str, ...]  # skills that it may load when a task asks for them
    role: dict[str, Any]  # what the guards enforce (writes, reads_denied, runs, moves_state)
    body: str  # its prompt


def load_agents(root: Path | None = None) -> list[Agent]:
    """Return the agents of the bundle at `root` (default: this one), in order of name.

    Raises:
        ContractError: a file has no front matter, or one that `schemas/agent.schema.json` refuses.
    """
    return [_agent(path) for path in sorted(((root or bundle_root()) / FOLDER).glob("*.md"))]


def _agent(path: Path) -> Agent:
    head, body, _ = front_matter.split(read_text(path), file=path)
    schema.check(head, "agent", file=path)
    return Agent(
        path=path,
        name=head["name"],
        description=head["description"],
        mode=head["mode"],
        tools=tuple(head["tools"]),
        skills=tuple(head["skills"]),
        on_demand=tuple(head.get("on_demand", ())),
        role=head["role"],
        body=body.strip() + "\n",
    )
