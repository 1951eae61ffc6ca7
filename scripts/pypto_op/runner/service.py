"""Asking the model: the SDK's tool runner, one request after the other, with patience for a service in trouble."""

from __future__ import annotations

import json
import random
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import anthropic
import httpx2
from anthropic.lib.tools import BetaBuiltinFunctionTool

from pypto_op.errors import ContractError, InfraError
from pypto_op.runner import address
from pypto_op.runner.budget import Budget, LimitReached, Usage
from pypto_op.runner.compaction import compacted

Message = dict[str, Any]
MOST_OUTPUT = 16_000
_TRIES = 6
_LONGEST_WAIT = 60.0
_LONGEST_ASKED = 900.0
"""Seconds: a service that asks for more has no room today, and a run that sleeps for a day looks like one that works."""
_SECONDS = 600.0
_NO_WORDS = "(no words)"
_BUSY = {408, 409, 429, 500, 502, 503, 504, 529}

_REMEDIES = {
    404: f"see --model and {address.VARIABLE}",
    405: f"see {address.VARIABLE}",
    413: "the conversation is too long for this service; begin a new run, the state goes on where it is",
}


class _Cut(Exception):
    """The stream ended before the message did, or held what is no JSON."""


@dataclass(frozen=True)
class Reply:
    """One message of the model.

    Attributes:
        content: its blocks, as the API wants them back.
        stop_reason: why it stopped.
        usage: what it cost.
        broken: by the number of a block, why the input of that call is no JSON object.
    """

    content: list[dict[str, Any]]
    stop_reason: str
    usage: Usage = field(default_factory=Usage)
    broken: dict[int, str] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """What it says, without its calls."""
        return "\n".join(block["text"] for block in self.content if block["type"] == "text")


class _Declared(BetaBuiltinFunctionTool):
    """A tool as the model sees it. The conversation does the work before the SDK asks, so nothing is left to do here."""

    def __init__(self, definition: dict[str, Any]) -> None:
        self._definition = definition

    def to_dict(self) -> Any:
        return self._definition

    def call(self, input: object) -> str:
        return ""


@dataclass(frozen=True)
class Question:
    """What stays the same in a conversation.

    Attributes:
        agent: who asks.
        conversation: its name.
        system: the agent's page and skills.
        tools: definitions.
    """

    agent: str
    conversation: str
    system: list[dict[str, Any]]
    tools: Sequence[dict[str, Any]]


@dataclass
class Service:
    """The Messages API, with back-off and a budget.

    Args:
        client: the SDK's client, without retries of its own.
        model: the model's name.
        budget: what may be spent.
        tell: called with one line when the service makes the run wait.
        hide: takes secrets out of what the service says.
    """

    client: anthropic.Anthropic
    model: str
    budget: Budget
    tell: Callable[[str], None]
    hide: Callable[[str], str]
    _heard: bool = False

    def converse(self, question: Question, history: list[Message], take: Callable[[Reply], list[dict[str, Any]] | None]) -> None:
        """Ask until `take`, which gets each reply, answers None; `history` grows with every message.

        Raises:
            LimitReached: the budget or the time is over.
            InfraError: the service does not answer, or not in a form that can be used.
            ContractError: it refuses the request.
        """
        runner: Any = None
        room = tries = 0
        while True:
            if (shorter := compacted(history)) is not history:
                history[:] = shorter
                runner = None
            reserved = self.budget.reserve(_size(question, history), MOST_OUTPUT)
            if runner is None or reserved.output != room:
                room = reserved.output
                runner = self._runner(question, history, room)
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # of unknown tools, which the conversation answers, and of old models
                    reply = _received(next(runner))
            except (anthropic.APIError, httpx2.HTTPError, _Cut) as error:
                self.budget.settle(reserved, getattr(error, "usage", Usage()), question.agent)
                runner, tries = None, tries + 1
                self._wait(error, tries)
                continue
            self._heard = True
            self.budget.settle(reserved, reply.usage, question.agent)
            tries = 0
            answer = take(reply)
            history.append({"role": "assistant", "content": reply.content})
            if answer is None:
                return
            history.append({"role": "user", "content": answer})
            if reply.stop_reason == "tool_use":
                runner.append_messages(*history[-2:])
            else:
                runner = None

    def _runner(self, question: Question, history: list[Message], room: int) -> Any:
        make: Any = self.client.beta.messages.tool_runner  # its overloads know no plain dictionaries
        return make(
            model=self.model,
            max_tokens=room,
            system=question.system,
            tools=[_Declared(tool) for tool in question.tools],
            messages=list(history),
            cache_control={"type": "ephemeral"},
            stream=True,
            thread=False,
            extra_headers={"x-pypto-op-agent": question.agent, "x-pypto-op-conversation": question.conversation},
        )

    def _wait(self, error: Exception, tries: int) -> None:
        """Wait before the next try, or say why there is none."""
        status = error.status_code if isinstance(error, anthropic.APIStatusError) else None
        said = self.hide(_told(error))
        self._heard = self._heard or status is not None
        if isinstance(error, anthropic.APIConnectionError) and (why := address.will_not_heal(error, heard=self._heard)):
            place = address.shown(error.request.url)
            raise InfraError(f"the service at {place} cannot be used: {why}", remedy=f"see {address.VARIABLE}")
        if status == 401:
            raise InfraError(f"the service refuses the key ({said})", remedy="set ANTHROPIC_API_KEY to a valid one")
        if status == 403:
            raise InfraError(f"the service forbids it ({said})", remedy="ask for a key that may use this model")
        if status is not None and status != 200 and status not in _BUSY:
            remedy = _REMEDIES.get(status, "the service's own words say why; then go on with --resume")
            place = f" at {address.shown(error.request.url)}" if isinstance(error, anthropic.APIStatusError) else ""
            raise ContractError(f"the service{place} refuses the request ({status}: {said})", remedy=remedy)
        if tries >= _TRIES:
            raise InfraError(f"the service failed {tries} times in a row ({said})", remedy="go on later with --resume")
        seconds = _asked_for(error)
        if seconds is None:
            seconds = min(_LONGEST_WAIT, 0.5 * 2.0**tries) * random.uniform(0.8, 1.2)
        if seconds > _LONGEST_ASKED:
            raise InfraError(f"the service asks for a wait of {seconds:.0f} s ({said})", remedy="go on later with --resume")
        if seconds >= self.budget.seconds_left:
            raise LimitReached(f"the time would be over before the service answers ({said})")
        self.tell(f"{said}; next try in {seconds:.0f} s")
        time.sleep(seconds)


def _received(stream: Any) -> Reply:
    """Read a stream to its end.

    Raises:
        _Cut: it ended early, or a call's input cannot be read at all.
    """
    raw: dict[int, str] = {}
    try:
        for event in stream:
            if event.type == "content_block_delta" and event.delta.type == "input_json_delta":
                raw[event.index] = raw.get(event.index, "") + event.delta.partial_json
        message = stream.get_final_message()
    except ValueError as error:
        raise _cut("a call whose input is no JSON", stream) from error
    except (AssertionError, RuntimeError, IndexError) as error:  # the SDK has no word for an empty stream, or a block out of turn
        raise _cut("the stream was cut", stream) from error
    except httpx2.HTTPError as error:
        raise _cut(f"the stream was cut ({type(error).__name__})", stream) from error
    if message.stop_reason is None:
        raise _cut("the stream was cut", stream)
    content = _with_words([block.to_dict(mode="json") for block in message.content])
    broken = {index: why for index, text in raw.items() if (why := _broken(text))}
    spent = getattr(message, "usage", None)
    return Reply(content, message.stop_reason, Usage.of(spent.to_dict() if spent is not None else {}), broken)


def _with_words(content: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a message that the API takes back: it refuses one without blocks, and a text without words, at every later try."""
    said = [{**one, "text": _NO_WORDS} if one["type"] == "text" and not one["text"].strip() else one for one in content]
    return said or [{"type": "text", "text": _NO_WORDS}]


def _cut(said: str, stream: Any) -> _Cut:
    """Return the error, with what the part that came has cost."""
    error = _Cut(said)
    try:
        error.usage = Usage.of(stream.current_message_snapshot.usage.to_dict())  # type: ignore[attr-defined]
    except Exception:  # nothing came at all
        error.usage = Usage()  # type: ignore[attr-defined]
    return error


def _broken(text: str) -> str:
    """Return why a call's input is no JSON object, or an empty text; the SDK completes what was cut off."""
    try:
        value = json.loads(text or "{}")
    except ValueError as error:
        return f"no JSON ({error})"
    return "" if isinstance(value, dict) else "JSON, but no object"


def _told(error: Exception) -> str:
    if isinstance(error, anthropic.APIConnectionError):  # the SDK says "Connection error." and names no address
        return f"{address.shown(error.request.url)}: {error.__cause__ or error.message}"[:600]
    body = getattr(error, "body", None)
    said = body.get("error", {}).get("message") if isinstance(body, dict) and isinstance(body.get("error"), dict) else None
    return " ".join(str(said or error or type(error).__name__).split())[:600]


def _asked_for(error: Exception) -> float | None:
    """Return the seconds that the service wants us to wait, where it says so."""
    response = getattr(error, "response", None)
    try:
        return max(0.0, float(response.headers["retry-after"])) if response is not None else None
    except (KeyError, ValueError):
        return None


def _size(question: Question, history: list[Message]) -> int:
    """Return how many characters a request holds."""
    return sum(len(json.dumps(part)) for part in (question.system, list(question.tools), history))
