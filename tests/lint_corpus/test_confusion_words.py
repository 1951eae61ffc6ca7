"""`python tests/lint_corpus/confusion.py` refuses a slip of its user's in one line, and before the minutes that judging takes."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def ask(root: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(root / "tests/lint_corpus/confusion.py"), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def test_words_that_it_cannot_follow() -> None:
    for words, said in ((("OL06", "--write"), "needs the whole corpus"), (("OL6",), "is called OL6")):
        ended = ask(ROOT, *words)
        assert ended.returncode == 2 and said in ended.stderr.splitlines()[-1], ended
        assert "snippets" not in ended.stderr, "nothing was judged"


def test_a_slip_in_a_page_is_named_with_its_line(tmp_path: Path) -> None:
    for part in ("corpus/lint", "lint_corpus", "markdown_cases"):
        shutil.copytree(ROOT / "tests" / part, tmp_path / "tests" / part, ignore=shutil.ignore_patterns("__pycache__"))
    page = tmp_path / "tests/corpus/lint/PX13.md"
    page.write_text(page.read_text().replace("artifact: ", "artefact: ", 1))
    ended = ask(tmp_path)
    assert ended.returncode == 2 and "PX13.md:" in ended.stderr.splitlines()[-1] and "Traceback" not in ended.stderr, ended
    assert "snippets" not in ended.stderr, "nothing was judged"
