"""A model that follows a script: enough of the Anthropic API for a real harness client to run against it.

Stateless: the actor is named by `[[actor:NAME]]` in the first user message, the turn is the number of the assistant's
messages so far. So retries, subagents and refused stops need no bookkeeping. Requests without tools (titles) get a
fixed text. A step may use what an earlier tool result said: `{{token}}` stands for the latest `"token": "..."`.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

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


def _events(step: Step, name: str) -> Iterator[dict[str, Any]]:
    """Yield the stream of one answer: text first, then the tool calls."""
    message = {"id": f"msg_{name}", "type": "message", "role": "assistant", "model": "scripted", "content": []}
    usage = {"input_tokens": 1, "output_tokens": 1}
    yield {"type": "message_start", "message": {**message, "stop_reason": None, "stop_sequence": None, "usage": usage}}
    blocks = [({"type": "text", "text": ""}, {"type": "text_delta", "text": step.get("text", "next")})]
    for index, call in enumerate(step.get("tools", [])):
        start = {"type": "tool_use", "id": f"toolu_{name}_{index}", "name": call["name"], "input": {}}
        blocks.append((start, {"type": "input_json_delta", "partial_json": json.dumps(call["input"])}))
    for index, (start, delta) in enumerate(blocks):
        yield {"type": "content_block_start", "index": index, "content_block": start}
        yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    reason = "tool_use" if step.get("tools") else "end_turn"
    yield {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": usage}
    yield {"type": "message_stop"}


@contextmanager
def scripted_model(script: Script) -> Iterator[ScriptedModel]:
    """Serve `script` on a port of the loopback interface while the context lasts."""
    model = ScriptedModel(script)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: object) -> None:
            pass

        def _plain(self, body: bytes = b"") -> None:
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_HEAD = do_GET = _plain

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
            if "count_tokens" in self.path:
                self._plain(b'{"input_tokens": 1}')
                return
            model.requests.append(body)
            actor, turn, step = model.step(body)
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Connection", "close")
            self.end_headers()
            for event in _events(step, f"{actor}_{turn}"):
                self.wfile.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())
            self.close_connection = True

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    model.port = server.server_port
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield model
    finally:
        server.shutdown()
        server.server_close()
