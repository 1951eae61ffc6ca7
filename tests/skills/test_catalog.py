"""The catalog names what lies on disk: no agent or skill is forgotten, none is a ghost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
CATALOG = yaml.safe_load((ROOT / "skills/pypto-orchestration-manual/references/catalog.yaml").read_text())
AGENTS = sorted((ROOT / ".agents").glob("*.md"))
SKILLS = sorted(path.parent for path in (ROOT / "skills").glob("*/SKILL.md"))


def _front_matter(path: Path) -> dict[str, Any]:
    data = yaml.safe_load(path.read_text().split("---")[1])
    assert isinstance(data, dict)
    return data


def test_all_agents_are_listed() -> None:
    assert [ROOT / row["file"] for row in CATALOG["agents"].values()] == AGENTS
    for name, row in CATALOG["agents"].items():
        matter = _front_matter(ROOT / row["file"])
        assert (matter["name"], matter["mode"], matter["skills"]) == (name, row["mode"], row["mandatory"])


def test_all_skills_are_listed() -> None:
    assert CATALOG["skills"] == {skill.name: f"skills/{skill.name}/SKILL.md" for skill in SKILLS}


@pytest.mark.parametrize("kind", ["mandatory", "on_demand"])
def test_agents_name_existing_skills(kind: str) -> None:
    known = {skill.name for skill in SKILLS}
    for name, row in CATALOG["agents"].items():
        assert set(row[kind]) <= known, name


def test_every_skill_has_a_reader() -> None:
    """A skill that no agent may load would never be read."""
    read = {skill for row in CATALOG["agents"].values() for kind in ("mandatory", "on_demand") for skill in row[kind]}
    assert {skill.name for skill in SKILLS} == read


def test_names_and_descriptions_obey_the_standard() -> None:
    """Agent Skills: name = folder, description at most 1024 characters; all of them together below 12,000."""
    total = 0
    for path in [*AGENTS, *(skill / "SKILL.md" for skill in SKILLS)]:
        matter = _front_matter(path)
        assert matter["name"] == (path.stem if path.parent.name == ".agents" else path.parent.name)
        assert 1 <= len(matter["description"]) <= 1024
        total += len(matter["description"])
    assert total < 12_000
