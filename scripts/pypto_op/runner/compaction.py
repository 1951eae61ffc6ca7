"""What becomes of a conversation that grows too long for a request: old results are left out, words and calls stay.

A hard and simple rule: above `MOST_CHARACTERS` every result but those of the newest messages is cut to its beginning. What
was cut can be asked for again. It happens in one step, so that a service's cache seldom begins anew, and it depends on the
messages alone.
"""

from __future__ import annotations

import json
from typing import Any

MOST_CHARACTERS = 450_000
"""About 130 thousand tokens of history: with pages, tools and an answer it fits a window of 200 thousand."""
KEPT_MESSAGES = 12
_KEPT_CHARACTERS = 400
_LEAST_CUT = 600

Message = dict[str, Any]


def size_of(history: list[Message]) -> int:
    """Return how many characters the messages hold as JSON."""
    return sum(len(json.dumps(message)) for message in history)


def compacted(history: list[Message], most: int = MOST_CHARACTERS) -> list[Message]:
    """Return the messages of a request: the same list where they fit, else one with old results cut."""
    if size_of(history) <= most:
        return history
    old, new = history[:-KEPT_MESSAGES], history[-KEPT_MESSAGES:]
    return [*map(_without_results, old), *new]


def _without_results(message: Message) -> Message:
    content = message["content"]
    if message["role"] != "user" or not isinstance(content, list):
        return message
    return {**message, "content": [_cut(block) for block in content]}


def _cut(block: dict[str, Any]) -> dict[str, Any]:
    said = block.get("content")
    if block.get("type") != "tool_result" or not isinstance(said, str) or len(said) <= _LEAST_CUT:
        return block
    left = len(said) - _KEPT_CHARACTERS
    return {
        **block,
        "content": f"{said[:_KEPT_CHARACTERS]}\n[{left} characters of this old result are left out; ask again if needed]",
    }
