"""`make test` runs what failed once more, alone: chance is told from a fault, and neither is hidden."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "test.sh"
ONCE = """
from pathlib import Path

def test_once():
    seen = Path(__file__).with_name("seen")
    before = seen.exists()
    seen.touch()
    assert before
"""
ALWAYS = "def test_always():\n    assert False\n"
FINE = "def test_fine():\n    pass\n"
MANY = "import pytest\n\n@pytest.mark.parametrize('n', range(11))\ndef test_many(n):\n    assert False\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        (FINE, 0, "1 passed"),
        (ONCE + FINE, 0, "the 1 that failed above passed alone"),
        (ONCE + ALWAYS, 1, "2 failed beside others"),
        (MANY, 1, "11 tests failed, more than 10, so none is run again"),
        ("def broken(:\n", 1, "1 failed beside others"),
        ("", 5, "no tests ran"),
    ],
    ids=["fine", "by chance", "a fault", "many faults", "no module", "no test"],
)
def test_what_failed_runs_once_more(tmp_path: Path, text: str, code: int, said: str) -> None:
    (tmp_path / "test_it.py").write_text(text)
    command = ["bash", str(SCRIPT), "1", str(tmp_path), "--rootdir", str(tmp_path), "-c", "/dev/null"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    assert said in done.stdout + done.stderr
