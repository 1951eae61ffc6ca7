"""The tables of steps on the pages of the team, made from `workflow.json`: who works, and what the state tool does afterwards."""

from __future__ import annotations

import re
from pathlib import Path

from pypto_op.workflow import workflow
from pypto_op.workspace import OpWorkspace

LEADER = Path(".agents/pypto-op-orchestrator.md")
MANUAL = Path("skills/pypto-orchestration-manual/SKILL.md")
_PLACE = "(<!-- {} -->\n).*?(<!-- end -->)"


def render(path: Path, page: str) -> str:
    """Return a page with its table made anew.

    Args:
        path: `LEADER` or `MANUAL`.
    """
    name, table = ("the way", _way()) if path == LEADER else ("the stages", _stages())
    made, found = re.subn(_PLACE.format(name), lambda place: place[1] + table + place[2], page, flags=re.DOTALL)
    assert found == 1, f"{path} has the place <!-- {name} -->"
    return made


def _way() -> str:
    rows = ["| # | dispatch | `advance` then takes |", "|---|---|---|"]
    for number, row in enumerate(workflow().way, 1):
        steps = ", ".join(f"`{words}`" for words in row.then)
        rows.append(f"| {number} | {row.agent.removeprefix('pypto-op-')}, `task: {row.task}` | {steps} |")
    return "\n".join(rows) + "\n"


def _stages() -> str:
    table = workflow()
    rows = ["| stage | owner | files that must be there | ends with |", "|---|---|---|---|"]
    for row in table.stages.values():
        files = ", ".join(f"`{_shown(table.artifacts[name].at)}`" for name in row.needs)
        owner = row.owner.removeprefix("pypto-op-")
        rows.append(f"| {row.number} {row.name} | {owner} | {files} | `complete_stage` {row.number} |")
    return "\n".join(rows) + "\n"


def _shown(at: str) -> str:
    """Return where an artefact lies in an operator's folder."""
    ws = OpWorkspace(Path("/custom/any_name"), "any_name")
    path: Path = getattr(ws, at)
    return path.relative_to(ws.root).as_posix().replace(ws.name, "<op>")
