"""What pages say of defaults, templates and contracts is what the code does."""

from __future__ import annotations

import re
from pathlib import Path

from pypto_op.documents import interfaces
from pypto_op.documents.policy import get_policy

ROOT = Path(__file__).parents[2]
SKILLS = ROOT / "skills"


def test_the_wide_tolerances_are_those_that_new_writes() -> None:
    """Right column: the policy's numbers. Left column: never wider."""
    page = (SKILLS / "pypto-intent-understand/SKILL.md").read_text()
    rows = re.findall(r"^\| (\w*float\w*) \| ([\d.e-]+), ([\d.e-]+) \| ([\d.e-]+), ([\d.e-]+) \|$", page, re.MULTILINE)
    assert [row[0] for row in rows] == ["float32", "float16", "bfloat16"]
    for dtype, *numbers in rows:
        tight_atol, tight_rtol, atol, rtol = map(float, numbers)
        written = get_policy().for_dtype(dtype)
        assert (atol, rtol) == (written["atol"], written["rtol"]), dtype
        assert tight_atol <= atol and tight_rtol <= rtol, dtype


def test_the_contract_that_the_planner_copies_is_clean() -> None:
    assert interfaces.check(SKILLS / "pypto-op-plan/references/example-module_interfaces.yaml") == []


def test_the_blank_specification_has_the_headings_of_the_worked_one() -> None:
    blank = ROOT / "scripts/pypto_op/documents/templates/SPEC.md.j2"
    worked = SKILLS / "pypto-intent-understand/references/example-SPEC.md"
    assert _headings(blank) == _headings(worked)


def _headings(page: Path) -> list[str]:
    return re.findall(r"^## .*$", page.read_text(), re.MULTILINE)
