"""docs/adding-an-agent.md, carried out in a copy of the checkout: the agent it shows is accepted and installed."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml
from tests.own_checkout import ROOT, copied, run

from pypto_op.documents.markdown import Markdown

PAGE = Markdown((ROOT / "docs/adding-an-agent.md").read_text(encoding="utf-8"))
PRINTED, COMMANDS = (fence.text for fence in PAGE.fences)
NAME = "pypto-op-somebody"
"""A name of the test's own: the printed one may be taken by whoever followed the page."""
SHOWN = re.sub(r"(?m)^name: \S+", f"name: {NAME}", PRINTED)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory) -> Path:
    return copied(tmp_path_factory.mktemp("checkout"))


@pytest.mark.slow
def test_the_page_is_true(checkout, tmp_path):
    (checkout / f".agents/{NAME}.md").write_text(SHOWN + "\n")
    before = run(checkout, "bundle", "check")
    assert before.returncode == 1
    stale = {line.split(":")[0] for line in before.stdout.splitlines()}
    assert stale == {".claude-plugin/plugin.json", "docs/budgets.md", "lint/pypto_op_lint/guard/roles.yaml"}

    for line in COMMANDS.splitlines():
        done = run(checkout, *line.removeprefix("$ pypto-op ").split())
        assert done.returncode == 0, done.stdout + done.stderr

    roles = yaml.safe_load((checkout / "lint/pypto_op_lint/guard/roles.yaml").read_text())
    assert roles["roles"][NAME]["runs"] == ["lint", "verify"]
    assert f"./.agents/{NAME}.md" in json.loads((checkout / ".claude-plugin/plugin.json").read_text())["agents"]

    done = run(checkout, "install", "--harness", "both", "--target", str(tmp_path), "--files-only")
    assert done.returncode == 0, done.stderr
    installed = {path.relative_to(tmp_path).parts[0]: path.read_text() for path in tmp_path.rglob(f"agents/{NAME}.md")}
    assert set(installed) == {".pypto-op", ".opencode"} and all("# Reviewer" in text for text in installed.values())
