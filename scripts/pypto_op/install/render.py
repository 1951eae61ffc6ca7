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

HARNESSES = ("claude", "opencode")
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
_MCP_SERVER = "state"
_TOOL_MILLISECONDS = 3_600_000
"""OpenCode gives up on a tool after 60 s by default; `verify`, and a gate that judges, may need many minutes."""
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
    hooks = (root / "hooks" / "hooks.json").read_text(encoding="utf-8")
    command = f"PYPTO_OP_PYTHON={shlex.quote(python)} sh {shlex.quote(str(root / 'hooks' / 'hook.sh'))}"
    plan: Plan = {
        ".claude-plugin/plugin.json": _json(manifest),
        ".claude-plugin/marketplace.json": _json({**market, "name": marketplace, "plugins": [offer]}),
        "hooks/hooks.json": _json(_with_command(json.loads(hooks), command)),
        ".mcp.json": _json({"mcpServers": {_MCP_SERVER: {"command": python, "args": [str(root / "scripts" / "mcp_server.py")]}}}),
        "bin/pypto-op": File(_launcher(python), executable=True),
    }
    for agent in agents:
        head: dict[str, Any] = {"name": agent.name, "description": agent.description, "tools": ", ".join(agent.tools)}
        if agent.skills:
            head["skills"] = [f"{manifest['name']}:{skill}" for skill in agent.skills]
        plan[f"agents/{agent.name}.md"] = _markdown(head, agent.body)
    plan |= _skills(root)
    return {f"{CLAUDE_PLUGIN}/{path}": file for path, file in plan.items()}


def _opencode(root: Path, agents: list[Agent], python: str) -> Plan:
    server = {
        "type": "local",
        "command": [python, str(root / "scripts" / "mcp_server.py")],
        "timeout": _TOOL_MILLISECONDS,
    }
    guarded = {f"{_MCP_SERVER}_state_transition": "deny"}
    plan: Plan = {
        "opencode.json": _json(
            {"$schema": "https://opencode.ai/config.json", "mcp": {_MCP_SERVER: server}, "permission": guarded}
        ),
        "plugins/pypto-op.js": File(_opencode_plugin(root, python).encode()),
        "pypto-op-bin/pypto-op": File(_launcher(python), executable=True),
    }
    for agent in agents:
        head = {"description": agent.description, "mode": agent.mode, "permission": _permissions(agent)}
        names = ", ".join(f"`{skill}`" for skill in agent.skills)
        first = f"Before anything else load with the skill tool: {names}.\n\n" if names else ""
        plan[f"agents/{agent.name}.md"] = _markdown(head, first + agent.body)
    plan |= _skills(root)
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


def _with_command(hooks: dict[str, Any], command: str) -> dict[str, Any]:
    """Return hooks.json with the bundle's own place and Python written out: the plugin is a copy elsewhere."""
    for groups in hooks["hooks"].values():
        for group in groups:
            for hook in group["hooks"]:
                hook["command"] = f"{command} {hook['command'].split()[-1]}"
    return hooks


def _opencode_plugin(root: Path, python: str) -> str:
    plugin = (root / "hooks" / "opencode" / "pypto-op.js").as_uri()
    return (
        "// Written by `pypto-op install`: names the bundle and its Python, then hands over to the bundle's plugin.\n"
        'import path from "node:path"\n'
        'import { fileURLToPath } from "node:url"\n\n'
        f"process.env.PYPTO_OP_ROOT ??= {json.dumps(str(root))}\n"
        f"process.env.PYPTO_OP_PYTHON ??= {json.dumps(python)}\n"
        'const bin = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "..", "pypto-op-bin")\n'
        'process.env.PATH = [process.env.PATH, bin].filter(Boolean).join(":")\n\n'
        f"export {{ PyptoOp }} from {json.dumps(plugin)}\n"
    )


def _launcher(python: str) -> bytes:
    return f'#!/bin/sh\nexec {shlex.quote(python)} -m pypto_op.cli "$@"\n'.encode()


def _skills(root: Path) -> Plan:
    """Return every file of every skill, as it is."""
    plan: Plan = {}
    for path in sorted((root / "skills").rglob("*")):
        if path.is_file() and not _NOT_COPIED & set(path.parts):
            plan[path.relative_to(root).as_posix()] = File(path.read_bytes(), executable=bool(path.stat().st_mode & 0o100))
    return plan


def _markdown(head: dict[str, Any], body: str) -> File:
    text = yaml.safe_dump(head, sort_keys=False, allow_unicode=True, width=10_000)
    return File(f"---\n{text}---\n\n{body}".encode())


def _json(data: dict[str, Any]) -> File:
    return File((json.dumps(data, indent=2, ensure_ascii=False) + "\n").encode())
