"""A model that follows a script: enough of the Anthropic API for a real harness client to run against it.

Stateless: the actor is named by `[[actor:NAME]]` in the first user message, the turn is the number of the assistant's
messages so far. So retries, subagents and refused stops need no bookkeeping. Requests without tools (titles) get a
fixed text. A step may use what an earlier tool result said: `{{token}}` stands for the latest `"token": "..."`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pypto_op.runner.loopback import Answer, served

Step = dict[str, Any]
Script = dict[str, list[Step]]


class ScriptedModel:
    """The server's log of what it was asked, and questions about it."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.requests: list[dict[str, Any]] = []
        self.port = 0

    def step(self, body: dict[str, Any]) -> tuple[str, int, Step]:
        """Return actor, turn and step for a request."""
        messages = body.get("messages", [])
        found = re.search(r"\[\[actor:(\w+)\]\]", json.dumps(messages[:1]))
        actor = found.group(1) if found else "main"
        turn = sum(1 for message in messages if message["role"] == "assistant")
        steps = self.script.get(actor, [])
        step = steps[turn] if body.get("tools") and turn < len(steps) else {"text": "done"}
        return actor, turn, filled(step, messages)

    def told(self, actor: str, turn: int) -> str:
        """Return everything that `actor` was newly told before its turn number `turn`."""
        for body in self.requests:
            if body.get("tools") and self.step(body)[:2] == (actor, turn):
                messages = body["messages"]
                last = max((i for i, m in enumerate(messages) if m["role"] == "assistant"), default=-1)
                return "\n".join(_texts(messages[last + 1 :]))
        turns = [self.step(body)[:2] for body in self.requests if body.get("tools")]
        raise AssertionError(f"{actor} never came to turn {turn}; there were {turns}")


def filled(step: Step, messages: list[dict[str, Any]]) -> Step:
    """Return a step with each `{{name}}` replaced by the value that the latest tool result gave under that name."""
    text = json.dumps(step)
    told = json.dumps(messages).replace("\\", "")
    for name in set(re.findall(r"\{\{(\w+)\}\}", text)):
        values = re.findall(rf'"{name}":\s*"([^"]+)"', told)
        text = text.replace(f"{{{{{name}}}}}", values[-1] if values else "")
    found: Step = json.loads(text)
    return found


def _texts(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if node.get("is_error"):
            yield "[is_error]"
        for key in ("text", "content"):
            yield from _texts(node.get(key))
    elif isinstance(node, list):
        for item in node:
            yield from _texts(item)
    elif isinstance(node, str):
        yield node


def answer(step: Step, name: str) -> Answer:
    """Return a step as the model's message: text first, then the tool calls."""
    calls = [{"type": "tool_use", "id": f"toolu_{name}_{index}", **call} for index, call in enumerate(step.get("tools", []))]
    return Answer([{"type": "text", "text": step.get("text", "next")}, *calls])


@contextmanager
def scripted_model(script: Script) -> Iterator[ScriptedModel]:
    """Serve `script` on a port of the loopback interface while the context lasts."""
    model = ScriptedModel(script)

    def said(body: dict[str, Any], headers: object) -> Answer:
        model.requests.append(body)
        actor, turn, step = model.step(body)
        return answer(step, f"{actor}_{turn}")

    with served(said) as model.port:
        yield model
