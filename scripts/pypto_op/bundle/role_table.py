"""The guards' role table, made from the agents' front matter: `lint/pypto_op_lint/guard/roles.yaml`, section `roles`.

The guard reads one small file instead of nine prompts, and an installed wheel has it beside the linter. The agents stay
the source: `pypto-op bundle write` writes the section, `pypto-op bundle check` refuses a table that differs.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from pypto_op.bundle.agents import Agent
from pypto_op.vocabulary import Role

TABLE = Path("lint/pypto_op_lint/guard/roles.yaml")
_SECTION = "\nroles:\n"
_WRITERS = re.compile(r"^(  writers: ).*$", re.MULTILINE)


def render(agents: list[Agent], table: str) -> str:
    """Return `table` with its section `roles` and the writers of the state made anew, in the order of the workflow."""
    head, found, _ = table.partition(_SECTION)
    assert found, "the table has a section `roles`"
    order = [str(role) for role in Role]
    rows = sorted(agents, key=lambda agent: order.index(agent.name) if agent.name in order else len(order))
    movers = [agent.name for agent in agents if agent.role.get("moves_state")]
    head, found_too = _WRITERS.subn(rf"\g<1>{_flow(movers)}", head)
    assert found_too == 1, "the table names once who may move the state"
    return head + _SECTION + "".join(_row(agent) for agent in rows)


def _row(agent: Agent) -> str:
    role = agent.role
    lines = [f"  {agent.name}:", f"    purpose: {_text(role['purpose'])}", "    writes:" if role["writes"] else "    writes: []"]
    lines += [f"      - {_flow(rule)}" for rule in role["writes"]]
    lines += [f"    reads_denied: {_flow(role['reads_denied'])}", f"    runs: {_flow(role['runs'])}"]
    return "\n".join(lines) + "\n"


def _text(value: str) -> str:
    return json.dumps(value) if ": " in value or "#" in value else value


def _flow(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_flow(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_flow(item) for item in value) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return json.dumps(value) if isinstance(value, str) and not value.replace("-", "").replace("_", "").isalnum() else str(value)
