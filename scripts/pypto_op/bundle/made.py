"""The files that repeat what agents, skills, commands and lint rules say of themselves: nobody writes them by hand."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from pathlib import Path

from pypto_op.bundle import budgets, command_page, role_table, way_table
from pypto_op.bundle.agents import Agent
from pypto_op.bundle.checks.skills import Skill
from pypto_op.bundle.finding import Finding
from pypto_op_lint import reference

MANIFEST = Path(".claude-plugin/plugin.json")


def made(root: Path, agents: list[Agent], skills: list[Skill]) -> dict[Path, str]:
    """Return what the made files of the bundle at `root` must say, by path relative to it."""
    manifest = json.loads((root / MANIFEST).read_text(encoding="utf-8"))
    manifest["agents"] = [f"./{agent.path.relative_to(root).as_posix()}" for agent in agents]
    table = (root / role_table.TABLE).read_text(encoding="utf-8")
    pages = [path for path in (way_table.LEADER, way_table.MANUAL) if (root / path).is_file()]
    return {
        **{path: way_table.render(path, (root / path).read_text(encoding="utf-8")) for path in pages},
        role_table.TABLE: role_table.render(agents, table),
        MANIFEST: json.dumps(manifest, indent=2, ensure_ascii=False) + "\n",
        budgets.PAGE: budgets.render(agents, skills),
        command_page.PAGE: command_page.render(),
        **reference.pages(),
    }


def left_over(root: Path, wanted: Collection[Path]) -> list[Path]:
    """Return the pages about rules that no longer exist; `wanted`: the paths that `made` returns."""
    return sorted({page.relative_to(root) for page in (root / reference.PAGES).glob("*.md")} - set(wanted))


def check(root: Path, agents: list[Agent], skills: list[Skill]) -> Iterator[Finding]:
    """Yield the made files that differ from their source."""
    wanted = made(root, agents, skills)
    for path, text in wanted.items():
        if not (root / path).is_file() or (root / path).read_text(encoding="utf-8") != text:
            yield Finding(path.as_posix(), 0, "is out of date; run `pypto-op bundle write`")
    for path in left_over(root, wanted):
        yield Finding(path.as_posix(), 0, "is about a rule that is gone; run `pypto-op bundle write`")
