"""Plays a transcript's words through the loopback server, and says where the run leaves the transcript's path."""

from __future__ import annotations

import json
import re
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pypto_op.bundle.budgets import tokens
from pypto_op.bundle_files import bundle_root
from pypto_op.errors import PyptoOpError
from pypto_op.runner.conversation import INTERRUPTED
from pypto_op.runner.journal import Line
from pypto_op.runner.loopback import Answer, Body
from pypto_op.runner.transcript import Expected, Script, Turn
from pypto_op.vocabulary import ExitCode

LEFT = "replay_left_its_path"
_SHOWN = 160


class ReplayLeft(PyptoOpError):
    """What happened is not what the transcript says (exit 1)."""

    exit_code = ExitCode.FAIL


class Replay:
    """A model that says what a transcript says.

    Args:
        script: the transcript.
        workspace: where it is replayed; a recorded transcript's own place is replaced by it.
        past: what an earlier part of the run has written: what was played then is not asked for again.
    """

    def __init__(self, script: Script, workspace: Path, past: Sequence[Line] = ()) -> None:
        self._script, self._workspace = script, str(workspace)
        self._lock = threading.Lock()
        self._values: dict[str, str] = {"bundle": str(bundle_root())}
        played = Counter(line["conversation"] for line in past if line["kind"] == "reply")
        self._played = {name: played[name] for name in script.conversations}
        self._remember([{"content": line["content"]} for line in past if line["kind"] == "result"])
        self._asked: list[list[str]] = []
        self.left = ""

    def __call__(self, body: Body, headers: Mapping[str, str]) -> Answer:
        """Answer one request."""
        with self._lock:
            self._remember(body["messages"][-1:])
            left, answer = self._answer(body, headers)
            if left:
                self.left = self.left or left
                return Answer(status=422, kind=LEFT, error=self.left)
        return answer

    def check_end(self) -> None:
        """Raise ReplayLeft when the run left the path, or ended before the transcript did."""
        for name, (agent, turns) in self._script.conversations.items():
            if not self.left and self._played[name] < len(turns):
                self.left = f"{_place(self._played[name], agent, name)}: the run ended before it"
        if self.left:
            raise ReplayLeft(f"the replay left its path: {self.left}", file=self._script.path)

    def _answer(self, body: Body, headers: Mapping[str, str]) -> tuple[str, Answer]:
        agent, name = headers.get("x-pypto-op-agent", "?"), headers.get("x-pypto-op-conversation", "?")
        messages = body["messages"]
        number = sum(1 for message in messages if message["role"] == "assistant")
        place = _place(number, agent, name)
        speaker, turns = self._script.conversations.get(name, ("", []))
        if not turns or speaker != agent:
            return f"{place}: the transcript has {f'{speaker} there' if turns else 'no such conversation'}", Answer()
        if number:
            differs = self._difference(turns[number - 1], messages[-1])
            if differs:
                return f"{_place(number - 1, agent, name)}: {differs}", Answer()
        if number >= len(turns):
            return f"{place}: the transcript has {len(turns)} turns there", Answer()
        self._played[name] = max(self._played[name], number + 1)
        content = self._filled(turns[number].content)
        return "", Answer(content, usage=self._usage(body, content))

    def _usage(self, body: Body, content: list[dict[str, Any]]) -> dict[str, int]:
        """Return an estimate of what a service would count: it caches what an earlier request of the run began with."""
        parts = [json.dumps(part) for part in (body.get("tools"), body.get("system"), *body["messages"])]
        cached = max((_same(parts, earlier) for earlier in self._asked), default=0)
        self._asked.append(parts)
        counts = [tokens(part) for part in parts]
        return {
            "input_tokens": 0,
            "cache_creation_input_tokens": sum(counts[cached:]),
            "cache_read_input_tokens": sum(counts[:cached]),
            "output_tokens": sum(tokens(json.dumps(block)) for block in content),
        }

    def _difference(self, turn: Turn, message: dict[str, Any]) -> str:
        """Return how the results of a turn's calls differ from what is expected, or an empty text."""
        content = message["content"] if isinstance(message["content"], list) else []
        results = [block for block in content if block.get("type") == "tool_result"]
        calls = [block for block in turn.content if block["type"] == "tool_use"]
        if len(results) != len(calls):
            return f"{len(results)} results for {len(calls)} calls"
        for call, result, expected in zip(calls, results, turn.expected, strict=True):
            said = "".join(_texts(result.get("content")))
            differs = self._differs(expected, said, bool(result.get("is_error")))
            if differs:
                return f"the result of {call['name']} {_short(json.dumps(call['input'], ensure_ascii=False))}: {differs}"
        return ""

    def _differs(self, expected: Expected, said: str, is_error: bool) -> str:
        if is_error and said == INTERRUPTED:
            return (
                "the run was ended in the middle of this call, and no transcript can look what it did; begin in an empty folder"
            )
        if expected.refused is not None and is_error != expected.refused:
            wanted = "a refusal or a failure" if expected.refused else "success"
            return f"expected {wanted}, got {_short(said, end=is_error)}"
        for text in expected.told:
            if text not in said:
                return f"expected {text!r} in it, got {_short(said)}"
        if expected.whole is not None and self._plain(expected.whole) != self._plain(said):
            return f"expected {_short(expected.whole)}, got {_short(said)}"
        return ""

    def _plain(self, text: str) -> str:
        """Return a text without what differs from run to run: places, numbers, hashes, white space."""
        for place in filter(None, (self._workspace, self._script.workspace)):
            text = text.replace(place, "<workspace>")
        return " ".join(re.sub(r"\b[0-9a-f]{8,}\b|\d+(\.\d+)?(e[-+]?\d+)?", "#", text).split())

    # -- values that a run makes ---------------------------------------------------------------------------------

    def _remember(self, messages: list[dict[str, Any]]) -> None:
        """Keep the newest value of every key that a result named; later turns ask for it as `{{key}}`."""
        for text in _texts([message["content"] for message in messages]):
            for key, value in re.findall(r'"(\w+)":\s*"([^"]+)"', text.replace("\\", "")):
                self._values[key] = value

    def _filled(self, content: list[dict[str, Any]]) -> list[dict[str, Any]]:
        text = json.dumps(content)
        if self._script.workspace:
            text = text.replace(json.dumps(self._script.workspace)[1:-1], json.dumps(self._workspace)[1:-1])
        filled: list[dict[str, Any]] = json.loads(
            re.sub(r"\{\{(\w+)\}\}", lambda found: json.dumps(self._values.get(found[1], found[0]))[1:-1], text)
        )
        return filled


def _same(parts: list[str], earlier: list[str]) -> int:
    """Return how many parts two requests have in common at their beginning."""
    pairs = zip(parts, earlier, strict=False)
    return next((count for count, (one, other) in enumerate(pairs) if one != other), min(len(parts), len(earlier)))


def _place(number: int, agent: str, name: str) -> str:
    return f"turn {number + 1} of {agent} ({name})"


def _texts(node: Any) -> Iterator[str]:
    """Yield the texts of a message's content, in order."""
    if isinstance(node, str):
        yield node
    elif isinstance(node, list):
        for item in node:
            yield from _texts(item)
    elif isinstance(node, dict):
        for key in ("text", "content"):
            yield from _texts(node.get(key))


def _short(text: str, *, end: bool = False) -> str:
    """Return the beginning of a text, or its end: where a failed command says why."""
    words = " ".join(text.split())
    if len(words) <= _SHOWN:
        return words
    return "…" + words[1 - _SHOWN :] if end else words[: _SHOWN - 1] + "…"
