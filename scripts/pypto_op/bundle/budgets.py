"""How much context agents and skills take: measured, limited, and shown in docs/budgets.md."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pypto_op.bundle.agents import Agent
from pypto_op.bundle.checks.skills import Skill
from pypto_op.bundle.finding import Finding

PAGE = Path("docs/budgets.md")
BYTES_PER_TOKEN = 3.5
"""English prose with code comes to about four bytes a token; counting with 3.5 errs on the safe side, without a tokenizer."""

SKILL_LINES, SKILL_TOKENS = 500, 5_000
DESCRIPTIONS = 12_000
PROMPT_TOKENS, ROLE_TOKENS = 3_000, 12_000


def tokens(text: str) -> int:
    """Return an upper estimate of the tokens of `text`."""
    return math.ceil(len(text.encode()) / BYTES_PER_TOKEN)


@dataclass(frozen=True)
class Load:
    """What a role has in its context before it begins: prompt, skills that are loaded with it, and both."""

    name: str
    prompt: int
    skills: int

    @property
    def total(self) -> int:
        """Prompt and skills."""
        return self.prompt + self.skills


def loads(agents: list[Agent], skills: list[Skill]) -> list[Load]:
    """Return the load of each role; a skill that does not exist counts nothing (it is a finding of its own)."""
    size = {skill.folder.name: tokens(skill.body) for skill in skills}
    return [Load(agent.name, tokens(agent.body), sum(size.get(name, 0) for name in agent.skills)) for agent in agents]


def check(agents: list[Agent], skills: list[Skill], root: Path) -> Iterator[Finding]:
    """Yield the budgets that are exceeded, and a page that is out of date."""
    for skill in skills:
        name = (skill.folder / "SKILL.md").relative_to(root).as_posix()
        lines, cost = skill.body.count("\n"), tokens(skill.body)
        if lines >= SKILL_LINES:
            yield Finding(name, 0, f"{lines} lines; fewer than {SKILL_LINES} are allowed: move parts to references/")
        if cost >= SKILL_TOKENS:
            yield Finding(name, 0, f"about {cost} tokens; fewer than {SKILL_TOKENS} are allowed: move parts to references/")
    described = _described(agents, skills)
    if described >= DESCRIPTIONS:
        yield Finding(
            "skills", 0, f"all descriptions together have {described} characters; fewer than {DESCRIPTIONS} are allowed"
        )
    for load in loads(agents, skills):
        file = f".agents/{load.name}.md"
        if load.prompt >= PROMPT_TOKENS:
            yield Finding(file, 0, f"a prompt of about {load.prompt} tokens; fewer than {PROMPT_TOKENS} are allowed")
        if load.total >= ROLE_TOKENS:
            yield Finding(file, 0, f"prompt and skills come to about {load.total} tokens; fewer than {ROLE_TOKENS} are allowed")


def render(agents: list[Agent], skills: list[Skill]) -> str:
    """Return the page."""
    lines = [
        "# Budgets",
        "",
        "What agents and skills take of a model's context. Written by `pypto-op bundle write`; `pypto-op bundle check` refuses",
        f"what exceeds a limit. Tokens are an upper estimate: bytes / {BYTES_PER_TOKEN}.",
        "",
        "## Roles",
        "",
        f"| agent | prompt (limit {PROMPT_TOKENS:,}) | skills loaded with it | together (limit {ROLE_TOKENS:,}) |",
        "|---|---:|---:|---:|",
        *(f"| {load.name} | {load.prompt:,} | {load.skills:,} | {load.total:,} |" for load in loads(agents, skills)),
        "",
        "## Skills",
        "",
        f"| skill | lines (limit {SKILL_LINES}) | tokens (limit {SKILL_TOKENS:,}) | description, characters |",
        "|---|---:|---:|---:|",
    ]
    for skill in skills:
        count = skill.body.count("\n")
        lines.append(f"| {skill.folder.name} | {count} | {tokens(skill.body):,} | {len(skill.description)} |")
    lines += [
        "",
        f"All descriptions together, agents' included: {_described(agents, skills):,} characters (limit {DESCRIPTIONS:,}).",
        "",
    ]
    return "\n".join(lines)


def _described(agents: list[Agent], skills: list[Skill]) -> int:
    return sum(len(skill.description) for skill in skills) + sum(len(agent.description) for agent in agents)
