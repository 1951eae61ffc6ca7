"""A warm Python does what a fresh one does, as far as its user can tell."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests import warm

pytest.importorskip("torch")

SCRIPT = """
import atexit, os, sys
from pathlib import Path
import beside
atexit.register(print, "last words")
print(sys.argv[1:], __name__, Path(__file__).name, os.getcwd(), os.environ.get("ASKED"), beside.ONE, sys.stdin.read())
print("told", file=sys.stderr)
sys.exit(7)
"""


@pytest.mark.parametrize("how", ["file", "-c", "-m"])
def test_a_warm_process_is_what_a_fresh_one_is(how: str, tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("ONE = 1\n")
    (tmp_path / "program.py").write_text(SCRIPT)
    first = {"file": ["program.py"], "-c": ["-c", SCRIPT.replace("Path(__file__).name, ", "")], "-m": ["-m", "program"]}[how]
    words, env = [*first, "a b", "-h"], {**os.environ, "ASKED": "yes"}
    known = warm.python(*words, cwd=tmp_path, env=env)
    fresh = subprocess.run(
        [sys.executable, *words], cwd=tmp_path, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    assert (known.returncode, known.stdout, known.stderr) == (fresh.returncode, fresh.stdout, fresh.stderr)
    assert (known.returncode, known.stderr) == (7, "told\n") and known.stdout.endswith("last words\n")


def test_programs_do_not_see_one_another_and_know_torch() -> None:
    assert warm.python("-c", "import sys; sys.left_behind = 1").returncode == 0
    done = warm.python("-c", "import sys; print(hasattr(sys, 'left_behind'), 'torch' in sys.modules)")
    assert done.stdout == "False True\n"


def test_the_last_words_of_a_program_that_breaks() -> None:
    done = warm.python("-c", "1 / 0")
    assert done.returncode == 1 and done.stderr.endswith("ZeroDivisionError: division by zero\n")
    assert warm.python("-c", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)").returncode == -9


def test_a_program_that_never_ends_is_ended() -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        warm.python("-c", "import time; time.sleep(600)", seconds=0.5)
    assert warm.python("-c", "print(1)").stdout == "1\n"


def test_what_is_read_at_the_start_needs_a_fresh_process(tmp_path: Path) -> None:
    (tmp_path / "far.py").write_text("import sys\nprint('torch' in sys.modules)\n")
    done = warm.python("-c", "import far", env={**os.environ, "PYTHONPATH": str(tmp_path)})
    assert (done.returncode, done.stdout) == (0, "False\n"), done.stderr
