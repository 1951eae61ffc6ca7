"""Skill: what a page of the bundle teaches, read when a task asks for it."""

from __future__ import annotations

from typing import Any

from pypto_op.bundle_files import bundle_root
from pypto_op.runner.tools.table import CallFailed, Place, Tool, object_of, text


def skill_text(name: str) -> str:
    """Return a skill's page, and the folder that its paths are relative to.

    Raises:
        CallFailed: there is no such skill.
    """
    plain = name.removeprefix("pypto-op:")
    folder = bundle_root() / "skills" / plain
    page = folder / "SKILL.md"
    if "/" in plain or not page.is_file():
        known = ", ".join(sorted(path.parent.name for path in folder.parent.glob("*/SKILL.md")))
        raise CallFailed(f"there is no skill {name[:60]!r}; there are {known}")
    _, _, body = page.read_text(encoding="utf-8").removeprefix("---").partition("\n---\n")
    return f"# Skill {plain}\nIts paths are relative to {folder}\n\n{body.strip()}\n"


def skill_tool(names: tuple[str, ...]) -> Tool:
    """Return the tool for an agent that may load these skills.

    Args:
        names: the skills of its page, `on_demand` ones included.
    """

    def work(place: Place, given: dict[str, Any]) -> str:
        if given["skill"].removeprefix("pypto-op:") not in names:
            raise CallFailed(f"your page names no skill {given['skill'][:60]!r}; it names {', '.join(names)}")
        return skill_text(given["skill"])

    said = f"Load a skill that your page names: {', '.join(names)}."
    return Tool("Skill", said, object_of("skill", skill=text("Its name."), args=text("Unused.")), work, effects=False)
