"""The form of a skill: the Agent Skills standard, and the bundle's budgets."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pypto_op.bundle.finding import Finding
from pypto_op.documents import front_matter
from pypto_op.errors import ContractError

NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
KEYS = frozenset({"name", "description", "license", "compatibility", "metadata", "allowed-tools"})
_NAME_LENGTH, _DESCRIPTION_LENGTH, _COMPATIBILITY_LENGTH = 64, 1024, 500


@dataclass(frozen=True)
class Skill:
    """One skill: its folder, the front matter and the body of SKILL.md."""

    folder: Path
    head: dict[str, Any]
    body: str

    @property
    def description(self) -> str:
        """What makes a model load it."""
        return str(self.head.get("description", ""))


def read_skills(root: Path) -> tuple[list[Skill], list[Finding]]:
    """Return the skills of the bundle and what is wrong with those that cannot be read."""
    skills, findings = [], []
    for folder in sorted(path for path in (root / "skills").iterdir() if path.is_dir()):
        page = folder / "SKILL.md"
        name = page.relative_to(root).as_posix()
        if not page.is_file():
            findings.append(Finding(f"skills/{folder.name}", 0, "the skill has no SKILL.md"))
            continue
        try:
            head, body, _ = front_matter.split(page.read_text(encoding="utf-8"), file=name)
        except ContractError as error:
            findings.append(Finding(name, 1, error.problem))
            continue
        skills.append(Skill(folder, head, body))
    return skills, findings


def check(skill: Skill, root: Path) -> Iterator[Finding]:
    """Yield where a skill breaks the standard."""
    name = (skill.folder / "SKILL.md").relative_to(root).as_posix()
    own = str(skill.head.get("name", ""))
    if not NAME.fullmatch(own) or len(own) > _NAME_LENGTH:
        yield Finding(
            name, 1, f"the name {own!r} is not made of lower-case words with single hyphens, at most {_NAME_LENGTH} long"
        )
    if own != skill.folder.name:
        yield Finding(name, 1, f"the name {own!r} is not that of the folder")
    if not 1 <= len(skill.description.strip()) <= _DESCRIPTION_LENGTH:
        yield Finding(name, 1, f"the description has {len(skill.description)} characters; 1 to {_DESCRIPTION_LENGTH} are allowed")
    if len(str(skill.head.get("compatibility", ""))) > _COMPATIBILITY_LENGTH:
        yield Finding(name, 1, f"compatibility is longer than {_COMPATIBILITY_LENGTH} characters")
    for key in sorted(skill.head.keys() - KEYS):
        yield Finding(name, 1, f"the standard has no key {key!r}")
