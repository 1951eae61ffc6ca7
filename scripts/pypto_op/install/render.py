"""What each harness gets: files made from the single source, as a mapping of path in the target to content."""

from __future__ import annotations

import json
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from pypto_op import __version__
from pypto_op.bundle.agents import MCP_PREFIX, Agent, load_agents
from pypto_op.bundle_files import bundle_root

CLAUDE_PLUGIN = ".pypto-op/claude"
"""Where the Claude Code plugin, a marketplace of its own, lies in the target."""

_OPENCODE_TOOLS = {
    "Read": "read",
    "Grep": "grep",
    "Glob": "glob",
    "Write": "edit",
    "Edit": "edit",
    "Bash": "bash",
    "Skill": "skill",
}
_MCP_SERVER = "pypto-op"
_PROGRAMS = ("find.sh", "hook.sh", "broken.sh", "touches.awk", "server.sh")
"""What finds the bundle and answers without it: a workspace keeps its own copy, so that it survives the bundle."""
_NOT_COPIED = {"__pycache__", ".pytest_cache", "_debug"}


@dataclass(frozen=True)
class File:
    """One file to write."""

    content: bytes
    executable: bool = False


Plan = dict[str, File]


def render(harness: str, *, root: Path | None = None, python: str = sys.executable, marketplace: str = "pypto-op") -> Plan:
    """Return the files of a harness, by path relative to the target.

    Args:
        harness: `claude` or `opencode`.
        root: the bundle; default: this one.
        python: the interpreter that hooks, MCP server and commands use.
        marketplace: name of the marketplace that offers the Claude Code plugin.

    Raises:
        ContractError: an agent's file is broken.
    """
    root = root or bundle_root()
    agents = load_agents(root)
    return _claude(root, agents, python, marketplace) if harness == "claude" else _opencode(root, agents, python)


def _claude(root: Path, agents: list[Agent], python: str, marketplace: str) -> Plan:
    about = json.loads((root / ".claude-plugin" / "plugin.json").read_text(encoding="utf-8"))
    market = json.loads((root / ".claude-plugin" / "marketplace.json").read_text(encoding="utf-8"))
    manifest = {key: about[key] for key in ("name", "description", "author")} | {"version": __version__}
    offer = {**market["plugins"][0], "version": __version__}
    plan: Plan = {
        ".claude-plugin/plugin.json": _json(manifest),
        ".claude-plugin/marketplace.json": _json({**market, "name": marketplace, "plugins": [offer | {"source": "./"}]}),
        "hooks/hooks.json": File((root / "hooks" / "hooks.json").read_bytes()),
        ".mcp.json": _json({"mcpServers": about["mcpServers"]}),
        **_programs(root, python),
    }
    for agent in agents:
        head: dict[str, Any] = {"name": agent.name, "description": agent.description, "tools": ", ".join(agent.tools)}
        if agent.skills:
            head["skills"] = [f"{manifest['name']}:{skill}" for skill in agent.skills]
        plan[f"agents/{agent.name}.md"] = _markdown(head, agent.body)
    plan |= _skills(root) | _commands(root, "")
    return {f"{CLAUDE_PLUGIN}/{path}": file for path, file in plan.items()}


def _opencode(root: Path, agents: list[Agent], python: str) -> Plan:
    plan: Plan = {
        "plugins/pypto-op.js": File((root / "hooks" / "opencode" / "pypto-op.js").read_bytes()),
        **{f"pypto-op/{path}": file for path, file in _programs(root, python).items()},
    }
    for agent in agents:
        head = {"description": agent.description, "mode": agent.mode, "permission": _permissions(agent)}
        names = ", ".join(f"`{skill}`" for skill in agent.skills)
        first = f"Before anything else load with the skill tool: {names}.\n\n" if names else ""
        plan[f"agents/{agent.name}.md"] = _markdown(head, first + agent.body)
    plan |= _skills(root) | _commands(root, "pypto-op:")
    return {f".opencode/{path}": file for path, file in plan.items()}


def _permissions(agent: Agent) -> dict[str, Any]:
    """Return OpenCode's permissions: everything denied but the agent's tools. `ask` would end a headless subagent."""
    allowed: dict[str, Any] = {"*": "deny"}
    for tool in agent.tools:
        if tool.startswith(MCP_PREFIX):
            allowed[f"{_MCP_SERVER}_{tool.removeprefix(MCP_PREFIX)}"] = "allow"
        elif tool == "Agent":
            allowed["task"] = {"*": "deny", "pypto-op-*": "allow"}
        else:
            allowed[_OPENCODE_TOOLS[tool]] = "allow"
    return allowed


def _programs(root: Path, python: str) -> Plan:
    """Return the programs that need no bundle, with the place of this one and its Python in a file of their own."""
    place = (
        "# Written by `pypto-op install`: the bundle that answers here and its Python. `pypto-op doctor` renews it.\n"
        f"bundle={shlex.quote(str(root))}\npython={shlex.quote(python)}\n"
    )
    hooks = root / "hooks"
    return {
        "hooks/place.sh": File(place.encode()),
        "bin/pypto-op": File((hooks / "pypto-op").read_bytes(), executable=True),
        **{f"hooks/{name}": File((hooks / name).read_bytes()) for name in _PROGRAMS},
    }


def _skills(root: Path) -> Plan:
    """Return every file of every skill, as it is."""
    plan: Plan = {}
    for path in sorted((root / "skills").rglob("*")):
        if path.is_file() and not _NOT_COPIED & set(path.parts):
            plan[path.relative_to(root).as_posix()] = File(path.read_bytes(), executable=bool(path.stat().st_mode & 0o100))
    return plan


def _commands(root: Path, prefix: str) -> Plan:
    """Return the commands that a person types; Claude Code puts the plugin's name before theirs, OpenCode does not."""
    return {f"commands/{prefix}{path.name}": File(path.read_bytes()) for path in sorted((root / "commands").glob("*.md"))}


def _markdown(head: dict[str, Any], body: str) -> File:
    text = yaml.safe_dump(head, sort_keys=False, allow_unicode=True, width=10_000)
    return File(f"---\n{text}---\n\n{body}".encode())


def _json(data: dict[str, Any]) -> File:
    return File((json.dumps(data, indent=2, ensure_ascii=False) + "\n").encode())
