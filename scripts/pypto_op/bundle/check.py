"""The check of the whole bundle: every reference resolves, every form is kept, every budget holds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pypto_op.bundle import budgets, made
from pypto_op.bundle.agents import load_agents
from pypto_op.bundle.checks import agents as team
from pypto_op.bundle.checks import code_blocks, command_lines, names, paths, skills
from pypto_op.bundle.finding import Finding
from pypto_op.bundle.texts import Text, read_texts


def check(root: Path) -> list[Finding]:
    """Return everything that is wrong with the bundle at `root`, in order of file and line.

    Raises:
        ContractError: an agent's front matter is so broken that the rest cannot be judged.
    """
    agents = load_agents(root)
    found_skills, findings = skills.read_skills(root)
    texts = read_texts(root)
    known = names.Known(root)
    for text in texts:
        findings.extend(check_text(text, known))
    for skill in found_skills:
        findings.extend(skills.check(skill, root))
    findings.extend(code_blocks.check_files(root))
    findings.extend(team.check(agents, [skill.folder.name for skill in found_skills], texts, root))
    findings.extend(budgets.check(agents, found_skills, root))
    findings.extend(made.check(root, agents, found_skills))
    return sorted(set(findings))


def check_text(text: Text, known: names.Known) -> Iterator[Finding]:
    """Yield what does not resolve in one text."""
    yield from command_lines.check(text)
    yield from names.check(text, known)
    yield from paths.check(text)
    yield from code_blocks.check(text)
