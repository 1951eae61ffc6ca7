"""Run `python WORDS` as a process of its own; where the process does not matter, `tests.calling` is quicker."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path


def python(*words: object, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run it with an empty standard input and return what it said, as text; pytest's clock is the only limit."""
    line = [sys.executable, *map(str, words)]
    return subprocess.run(line, cwd=cwd, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
