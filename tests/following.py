"""Carries out a page for developers in a copy of the checkout: writes each file that it shows, applies each of its changes."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from markdown_it import MarkdownIt


def follow(page: Path, copy: Path) -> None:
    """Do in `copy` what the fenced blocks of `page` show: `python PATH` is a whole file, `diff` a change.

    Fails, with the page's line and the remedy, where the checkout has gone on and the page has not.
    """
    for block in (token for token in MarkdownIt().parse(page.read_text(encoding="utf-8")) if token.type == "fence"):
        language, _, path = block.info.partition(" ")
        line = f"docs/{page.name}:{block.map[0] + 1 if block.map else 1}"
        if language == "diff":
            done = subprocess.run(
                ["git", "apply", "-"], cwd=copy, input=block.content, text=True, capture_output=True, check=False
            )
            if done.returncode:
                pytest.fail(
                    f"{line}: the change no longer fits ({' '.join(done.stderr.split())}); write its lines as the files now stand"
                )
        elif language == "python":
            if (copy / path).exists():
                pytest.fail(f"{line}: {path} is already there; take the page's example out of your checkout")
            (copy / path).write_text(block.content, encoding="utf-8")
