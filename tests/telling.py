"""What a command told on standard error, without its lines of progress: on a slow machine there are some."""

from __future__ import annotations

import re

_PROGRESS = re.compile(r"^(pypto-op: .+, \d+ s so far.*|tried .+)$")


def told_lines(stderr: str) -> list[str]:
    """Return the lines of a command's standard error but those that only say what it is at."""
    return [line for line in stderr.splitlines() if not _PROGRESS.match(line)]
