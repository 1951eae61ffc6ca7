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
    """One agent.

    Attributes:
        path: its file.
        name: its name, without a plugin's prefix.
        description: one line that says when to use it.
        mode: `primary` or `subagent`.
        tools: exactly the tools it gets, in Claude Code's names.
        skills: skills that are loaded before it starts.
        on_demand: skills that it may load when a task asks for them.
        role: what the guards enforce (writes, reads_denied, runs, moves_state).
        body: its prompt.
    """

    path: Path
    name: str
    description: str
    mode: str
    tools: tuple[str, ...]
    skills: tuple[str, ...]
    on_demand: tuple[str, ...]
    role: dict[str, Any]
    body: str


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
