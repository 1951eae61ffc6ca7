"""A page that its checkout has left behind is told with its line and the remedy."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.following import follow

FENCE = "`" * 3


def page(folder: Path, *blocks: str) -> Path:
    path = folder / "page.md"
    path.write_text("".join(f"{FENCE}{block}\n{FENCE}\n" for block in blocks))
    return path


def test_a_file_that_is_there_and_a_change_that_does_not_fit_are_told(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\n")
    with pytest.raises(pytest.fail.Exception, match=r"docs/page.md:1: a.py is already there; take"):
        follow(page(tmp_path, "python a.py\ny = 2"), tmp_path)
    change = "diff\n--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-{}\n+x = 2"
    with pytest.raises(pytest.fail.Exception, match=r"docs/page.md:4: the change no longer fits .*a.py.*; write its lines"):
        follow(page(tmp_path, "python b.py\ny = 2", change.format("x = 0")), tmp_path)
    follow(page(tmp_path, "console\n$ true", change.format("x = 1")), tmp_path)
    assert ((tmp_path / "a.py").read_text(), (tmp_path / "b.py").read_text()) == ("x = 2\n", "y = 2\n")
