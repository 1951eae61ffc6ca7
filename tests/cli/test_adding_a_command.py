"""docs/adding-a-command.md, followed to the letter in a copy of the checkout: the command runs, and has its row."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.test_given_files import OPERATOR
from tests.following import follow
from tests.own_checkout import ROOT, copied, run


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    copy = copied(tmp_path_factory.mktemp("checkout"))
    follow(ROOT / "docs/adding-a-command.md", copy)
    return copy


@pytest.mark.slow
def test_the_page_is_true(checkout: Path, tmp_path: Path) -> None:
    told = json.loads(run(checkout, "sizes", str(OPERATOR), "--json").stdout)
    assert told["SPEC.md"] == (OPERATOR / "SPEC.md").stat().st_size
    wrong = run(checkout, "sizes", "nowhere")
    assert (wrong.returncode, wrong.stderr.count("\n")) == (2, 1) and "no such operator directory" in wrong.stderr

    assert "docs/commands.md" in run(checkout, "bundle", "check").stdout
    assert run(checkout, "bundle", "write").returncode == 0
    row = "| `sizes` | Say how many bytes each file of OP_DIR has | 0 told, 2 there is no such operator |"
    assert row in (checkout / "docs/commands.md").read_text(encoding="utf-8").splitlines()
    assert run(checkout, "bundle", "check").returncode == 0
