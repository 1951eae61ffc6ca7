"""pypto's own log lines in a worker's output: told apart from what the candidate prints, and read for causes."""

from __future__ import annotations

import re

_LINE = re.compile(r"^\[(?:DEBUG|INFO |WARN |ERROR|EVENT)\] PYPTO\(\d+\):\S+ \S+ \[(?P<place>[^\]]*)\]\[\w+\]:(?P<words>.*)$")

_EMITTED_BY_GOOD_RUNS = (
    # Three pairs at every simulated launch of every kernel, with nothing wrong.
    re.compile(r"^\[ERROR\] .*\[dev_encode_types\.h:1(?:48|50)\]"),
)


def without_log(text: str) -> str:
    """Return `text` without pypto's log lines."""
    return "\n".join(line for line in text.split("\n") if not _LINE.match(line))


def without_noise(text: str) -> str:
    """Return `text` without the errors that pypto also logs when all is well."""
    lines = text.split("\n")
    return "\n".join(line for line in lines if not any(noise.match(line) for noise in _EMITTED_BY_GOOD_RUNS))


def first_error(text: str) -> str:
    """Return the words of the first error in the log; later ones only follow from it. Empty if there is none."""
    for line in without_noise(text).split("\n"):
        found = _LINE.match(line)
        if found and line.startswith("[ERROR]"):
            return " ".join(found["words"].split())[:300]
    return ""
