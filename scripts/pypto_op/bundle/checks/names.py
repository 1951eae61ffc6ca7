"""Rule ids, agents, skills, MCP tools, actions of the state machine and pypto names that a text speaks of exist."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from pypto_op.bundle.finding import Finding
from pypto_op.bundle.texts import Text
from pypto_op_lint import pypto_names
from pypto_op_lint.registry import all_rules

_RULE = re.compile(r"\b(?:OL|PX)\d{2}\b")
_TEAM = re.compile(r"(?<![\w./-])pypto-[a-z]+(?:-[a-z]+)*(?![\w-])(?!\.\w|/)")
_MCP = re.compile(r"\bmcp__[\w-]+__(\w+)")
_ACTION = re.compile(r"state_transition\(\s*action=[\"'](\w+)[\"']|pypto-op state ([a-z_]+)\b")
_PYPTO = re.compile(r"\bpypto\.[a-zA-Z_][\w.]*(?!\w*[*{<])")
_OTHERS = frozenset({"pypto-op", "pypto-op-lint", "pypto-op-guard"})
"""Names that are neither agent nor skill: the bundle, and the tags that its refusals begin with."""

_READ_ACTIONS = frozenset({"advance", "status", "audit", "replay", "migrate"})


@dataclass(frozen=True)
class Known:
    """What exists in the bundle at `root`."""

    root: Path

    @cached_property
    def team(self) -> frozenset[str]:
        """Agents and skills."""
        agents = {path.stem for path in (self.root / ".agents").glob("*.md")}
        return frozenset(agents | {path.name for path in (self.root / "skills").iterdir() if path.is_dir()} | _OTHERS)

    @cached_property
    def tools(self) -> frozenset[str]:
        """Tools of the MCP server."""
        from pypto_op.documents import schema

        rows = cast("dict[str, Any]", schema.validator("tool_results").schema)["oneOf"]
        return frozenset(row["properties"]["tool"]["const"] for row in rows if "tool" in row["properties"])

    @cached_property
    def actions(self) -> frozenset[str]:
        """Actions of the state machine."""
        from pypto_op import workflow
        from pypto_op.state import commands

        own = frozenset(getattr(commands.state, "commands", {}))
        path = Path(workflow.__file__).with_name("workflow.json")
        return own | _READ_ACTIONS | frozenset(json.loads(path.read_text(encoding="utf-8"))["actions"])


def check(text: Text, known: Known) -> Iterator[Finding]:
    """Yield the names in `text` that nothing bears."""
    names = pypto_names.names()
    rules = all_rules().keys()
    for number, line in enumerate(text.text.split("\n"), 1):
        for rule in _RULE.findall(line):
            if rule not in rules:
                yield Finding(text.name, number, f"there is no rule {rule}")
        for name in _TEAM.findall(line):
            if name not in known.team:
                yield Finding(text.name, number, f"{name} is neither an agent nor a skill")
        for tool in _MCP.findall(line):
            if tool not in known.tools:
                yield Finding(text.name, number, f"the MCP server has no tool {tool}")
        for pair in _ACTION.findall(line):
            action = pair[0] or pair[1]
            if action not in known.actions:
                yield Finding(text.name, number, f"the state machine has no action {action}")
    for piece in text.code():
        for path in () if text.shows_mistakes else _PYPTO.findall(piece.text):
            if path.endswith(("_...", "_")):  # DT_... stands for all of them
                continue
            unknown = names.first_unknown(path.rstrip("."))
            if unknown:
                yield Finding(text.name, piece.line, f"pypto {names.version} has no {unknown}")
