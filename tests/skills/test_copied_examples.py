"""Worked examples lie beside the skills that show them: an installed workspace does not have the bundle's examples."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FLASH = "examples/ops/flash_attention_fwd"
COPIES = {
    "skills/pypto-intent-understand/references/example-SPEC.md": "examples/ops/softmax/SPEC.md",
    "skills/pypto-api-explore/references/example-API_REPORT.md": "examples/ops/rmsnorm/API_REPORT.md",
    "skills/pypto-op-design/references/example-vector-DESIGN.md": "examples/ops/rmsnorm/DESIGN.md",
    "skills/pypto-op-design/references/example-mixed-DESIGN.md": f"{FLASH}/DESIGN.md",
    "skills/pypto-op-develop/examples/softmax_impl.py": "examples/ops/softmax/softmax_impl.py",
    "skills/pypto-op-develop/examples/flash_attention_fwd_impl.py": f"{FLASH}/flash_attention_fwd_impl.py",
}


@pytest.mark.parametrize("copy", COPIES)
def test_the_copy_is_the_example_that_is_judged(copy: str) -> None:
    source = ROOT / COPIES[copy]
    assert (ROOT / copy).read_bytes() == source.read_bytes(), f"renew it: cp {COPIES[copy]} {copy}"


def test_no_skill_sends_its_reader_to_the_bundle() -> None:
    """Neither agents nor skills name a file that only a checkout has."""
    pages = [page for glob in (".agents/*.md", "skills/*/SKILL.md", "skills/*/references/*.md") for page in ROOT.glob(glob)]
    assert [str(page) for page in pages if "examples/ops" in page.read_text()] == []
