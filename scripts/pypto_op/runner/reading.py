"""From a service's stream to a reply that can be acted upon, and that the service takes back in the next request.

A service is no part of this program: whatever its stream holds, it becomes a reply, or `Cut`, which is asked for again.
"""

from __future__ import annotations

import contextlib
import json
import re
import socket
import threading
import time
import uuid
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

import anthropic
import httpx2

from pypto_op.runner.budget import Usage, tokens_of

WHOLE = "tool_use"
"""The one reason to stop with which the calls of a message are whole."""
_NO_WORDS = "(no words)"
_NO_NAME = "unnamed"
_STREAM = "text/event-stream"
_IDENTITY = re.compile(r"[A-Za-z0-9_-]{1,64}")
_NO_PART_OF_A_NAME = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST_NAME = 128
IDLE_SECONDS = 600.0
"""A stream of which no part of a message came for so long is cut: pings keep a connection open, and say nothing."""


class Cut(Exception):
    """The stream ended before the message did, or holds what nobody can read.

    Args:
        said: what is wrong with it, in a few words.
        usage: what the part that came has cost.
    """

    def __init__(self, said: str, usage: Usage) -> None:
        super().__init__(said)
        self.usage = usage


@dataclass(frozen=True)
class Reply:
    """One message of the model."""

    content: list[dict[str, Any]]  # its blocks, as the API wants them back
    stop_reason: str  # why it stopped
    usage: Usage = field(default_factory=Usage)  # what it cost
    broken: dict[int, str] = field(default_factory=dict)  # by the number of a block, why the input of that call is no JSON object
    mended: bool = False  # the content is not quite what came

    @property
    def text(self) -> str:
        """What it says, without its calls."""
        return "\n".join(block["text"] for block in self.content if block["type"] == "text")

    @property
    def calls(self) -> list[tuple[int, dict[str, Any]]]:
        """Its calls, each with the number of its block."""
        return [(index, block) for index, block in enumerate(self.content) if block["type"] == "tool_use"]


class _Idle(threading.Thread):
    """Cuts a response of which nothing comes but pings, which the SDK keeps to itself.

    Args:
        response: the response; its socket is shut, which another thread may do while one reads.
    """

    def __init__(self, response: Any) -> None:
        super().__init__(daemon=True)
        self._response, self._over, self._last = response, threading.Event(), time.monotonic()
        self.said = ""  # what was wrong; "" as long as nothing is

    def heard(self) -> None:
        """Note that a part of the message came."""
        self._last = time.monotonic()

    def end(self) -> None:
        """Stop looking."""
        self._over.set()

    def run(self) -> None:
        while not self._over.wait(max(0.0, left := self._last + IDLE_SECONDS - time.monotonic())):
            if left <= 0.0:
                self.said = f"nothing but silence came for {IDLE_SECONDS:g} s"
                network = self._response.extensions.get("network_stream")
                line = network.get_extra_info("socket") if network is not None else None
                with contextlib.suppress(OSError):
                    if line is not None:
                        line.shutdown(socket.SHUT_RDWR)
                return


def encodable(value: Any) -> Any:
    """Return a text, or data that hold texts, in a form that UTF-8 has bytes for: half a character is written as `\\udcff`.

    Such a half comes from a file's name that is no UTF-8, or from JSON that names it.
    """
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, dict):
        return {encodable(key): encodable(one) for key, one in value.items()}
    return [encodable(one) for one in value] if isinstance(value, list) else value


def received(stream: Any, asked: int, taken: Collection[str]) -> Reply:
    """Read a stream of the SDK to its end.

    Args:
        stream: what the SDK's tool runner yields.
        asked: about how many tokens the request held; it counts where the service names no number.
        taken: the identities of the calls that the conversation holds already.

    Raises:
        Cut: it ended early, or holds what cannot be read at all.
        anthropic.APIError: the service says in the stream what is wrong; `usage` is what the part that came has cost.
    """
    raw: dict[int, str] = {}
    idle = _Idle(stream.response)
    try:
        idle.start()
        for event in stream:
            idle.heard()
            if event.type == "content_block_delta" and event.delta.type == "input_json_delta":
                raw[event.index] = raw.get(event.index, "") + event.delta.partial_json
        message = stream.get_final_message()
        came = [block.to_dict(mode="json") if hasattr(block, "to_dict") else {} for block in message.content]
        content, broken = _taken_back(encodable(came), raw, taken)
        spent = _usage(message, asked, json.dumps(content))
    except anthropic.APIError as error:
        error.usage = _spent_on(stream, asked)  # type: ignore[attr-defined]
        raise
    except httpx2.HTTPError as error:
        raise Cut(idle.said or f"the stream was cut ({type(error).__name__})", _spent_on(stream, asked)) from error
    except Exception as error:  # the SDK trusts a stream's form: whatever does not fit comes out as some error of Python
        raise Cut(idle.said or _wrong(stream, error), _spent_on(stream, asked)) from error
    finally:
        idle.end()
    if message.stop_reason is None:
        raise Cut(idle.said or "the stream was cut", _spent_on(stream, asked))
    return Reply(content, str(message.stop_reason), spent, broken, content != came)


def _wrong(stream: Any, error: Exception) -> str:
    """Return what is wrong with a stream that cannot be read, in a few words."""
    kind = stream.response.headers.get("content-type", "").partition(";")[0].strip()
    if kind and kind != _STREAM:
        return f"the service answers with {kind[:40]}, not with a stream of events"
    if isinstance(error, ValueError) and "tool parameter" in str(error):
        return "a call whose input is no JSON"
    # the SDK has no word for an empty stream, or for a block out of turn
    return "the stream was cut" if isinstance(error, (AssertionError, RuntimeError, IndexError)) else "the stream cannot be read"


# -- what it costs -------------------------------------------------------------------------------------------------


def _usage(message: Any, asked: int, said: str) -> Usage:
    """Return what a message cost; where the service names no number, the size of the request and of what was said counts."""
    told: Any = getattr(message, "usage", None)
    found = Usage.of(told.to_dict() if hasattr(told, "to_dict") else {})
    if not found.input + found.cache_write + found.cache_read:
        found.input = asked
    found.output = found.output or tokens_of(said)
    return found


def _spent_on(stream: Any, asked: int) -> Usage:
    """Return what the part of a message that came has cost, as a service counts it; nothing where nothing came."""
    try:
        message = stream.current_message_snapshot
        said = "".join(block.to_json() for block in message.content)
        found = _usage(message, asked, said)
        found.output = max(found.output, tokens_of(said))  # it names what was said at the end only
    except Exception:  # nothing came, or nothing that can be read
        return Usage()
    return found


# -- what goes back ------------------------------------------------------------------------------------------------


def _taken_back(
    came: list[dict[str, Any]], raw: dict[int, str], taken: Collection[str]
) -> tuple[list[dict[str, Any]], dict[int, str]]:
    """Return a message's blocks in a form that the API takes back, and why calls among them are broken.

    It would refuse a message without blocks, a text without words, a call whose input is no object, whose name has other
    characters than names have, or whose identity another call has, and it would refuse it at every later try.
    """
    known = set(taken)
    content: list[dict[str, Any]] = []
    broken: dict[int, str] = {}
    for index, block in enumerate(came):
        kind, said = block.get("type"), block.get("text")
        if kind == "tool_use":
            if why := _broken(raw.get(index, ""), block.get("input")):
                broken[len(content)] = why
            content.append(_call(block, known))
            known.add(content[-1]["id"])
        elif kind == "text":
            content.append({**block, "text": said if isinstance(said, str) and said.strip() else _NO_WORDS})
        elif isinstance(kind, str):
            content.append(block)
    return content or [{"type": "text", "text": _NO_WORDS}], broken


def _call(block: dict[str, Any], known: Collection[str]) -> dict[str, Any]:
    given, name, identity = (block.get(key) for key in ("input", "name", "id"))
    right = isinstance(identity, str) and _IDENTITY.fullmatch(identity) and identity not in known
    return {
        **block,
        "id": identity if right else f"toolu_{uuid.uuid4().hex}",
        "name": _NO_PART_OF_A_NAME.sub("_", name)[:_LONGEST_NAME] if isinstance(name, str) and name else _NO_NAME,
        "input": given if isinstance(given, dict) else {},
    }


def _broken(text: str, given: object) -> str:
    """Return why a call's input is no JSON object, or an empty text; the SDK completes what was cut off."""
    try:
        value = json.loads(text) if text else given
    except ValueError as error:
        return f"no JSON ({error})"
    return "" if isinstance(value, dict) else "JSON, but no object"
