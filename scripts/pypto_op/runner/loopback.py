"""A server on the loopback interface that speaks enough of the Messages API, with streaming, for any client of it.

What it answers comes from a function; a replay's transcript and the tests' scripts are such functions. Nothing but the
model's words is made up: whoever asks does everything else itself.
"""

from __future__ import annotations

import functools
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Body = dict[str, Any]


@dataclass(frozen=True)
class Answer:
    """One answer of the model, or of a service in trouble."""

    # the blocks of the message, as the API returns them: text and tool_use
    content: list[dict[str, Any]] = field(default_factory=list)
    status: int = 200  # another HTTP status than 200 is an error of the service, with `error` as its message
    error: str = ""  # the message of such an error
    kind: str = "api_error"  # the error's type, such as `rate_limit_error`
    headers: Mapping[str, str] = field(default_factory=dict)  # further headers, such as `retry-after`
    cut_after: int | None = None  # end the stream after this many events, without a word; None sends it all
    stop_reason: str | None = None  # why the model stopped; None takes it from the content
    # tokens that the message says it cost
    usage: Mapping[str, int] = field(default_factory=lambda: {"input_tokens": 1, "output_tokens": 1})
    # text sent in place of a tool's input, by the number of its block
    raw_inputs: Mapping[int, str] = field(default_factory=dict)
    page: str | None = None  # a page for a browser, sent in place of everything else; None sends none

    def events(self, name: str) -> Iterator[dict[str, Any]]:
        """Yield the stream of this answer; `name` makes the message's id."""
        message = {"id": f"msg_{name}", "type": "message", "role": "assistant", "model": "loopback", "content": []}
        start = {**message, "stop_reason": None, "stop_sequence": None, "usage": {**self.usage, "output_tokens": 1}}
        yield {"type": "message_start", "message": start}
        for index, block in enumerate(self.content):
            begun, delta = _block(block, self.raw_inputs.get(index))
            yield {"type": "content_block_start", "index": index, "content_block": begun}
            yield {"type": "content_block_delta", "index": index, "delta": delta}
            yield {"type": "content_block_stop", "index": index}
        calls = any(block["type"] == "tool_use" for block in self.content)
        reason = self.stop_reason or ("tool_use" if calls else "end_turn")
        yield {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": dict(self.usage)}
        yield {"type": "message_stop"}


def _block(block: dict[str, Any], raw: str | None) -> tuple[dict[str, Any], dict[str, Any]]:
    if block["type"] == "text":
        return {"type": "text", "text": ""}, {"type": "text_delta", "text": block["text"]}
    text = json.dumps(block["input"]) if raw is None else raw
    return {**block, "input": {}}, {"type": "input_json_delta", "partial_json": text}


Model = Callable[[Body, Mapping[str, str]], Answer]
"""From a request's body and its headers, in lower case, to the answer."""


class _Handler(BaseHTTPRequestHandler):
    """Answers the requests of one connection with what the model says."""

    protocol_version = "HTTP/1.1"

    def __init__(self, model: Model, *connection: Any) -> None:
        self._model = model
        super().__init__(*connection)  # which serves the connection to its end

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: the terminal belongs to the run."""

    def _plain(self, body: bytes = b"", status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_HEAD(self) -> None:
        self._plain()

    do_GET = do_HEAD

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
        if "count_tokens" in self.path:
            self._plain(b'{"input_tokens": 1}')
            return
        answer = self._model(body, {name.lower(): value for name, value in self.headers.items()})
        if answer.page is not None:
            self._plain(answer.page.encode(), answer.status, {"Content-Type": "text/html", **answer.headers})
            return
        if answer.status != 200:
            error = {"type": "error", "error": {"type": answer.kind, "message": answer.error}}
            self._plain(json.dumps(error).encode(), answer.status, answer.headers)
            return
        self._stream(answer, str(id(answer)))

    def _stream(self, answer: Answer, name: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        for number, event in enumerate(answer.events(name)):
            if number == answer.cut_after:
                return
            self.wfile.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())


@contextmanager
def served(model: Model) -> Iterator[int]:
    """Serve `model` on a port of the loopback interface while the context lasts; the value is the port."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Handler, model))
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
