"""Asking the model: the SDK's tool runner, one request after the other, with patience for a service in trouble."""

from __future__ import annotations

import json
import math
import random
import re
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any

import anthropic
import httpx2
from anthropic.lib.tools import BetaBuiltinFunctionTool

from pypto_op.errors import ContractError, InfraError, PyptoOpError
from pypto_op.runner import address
from pypto_op.runner.budget import Budget, LimitReached, Usage
from pypto_op.runner.compaction import compacted
from pypto_op.runner.reading import WHOLE, Cut, Reply, received

Message = dict[str, Any]
MOST_OUTPUT = 16_000
_TRIES = 6
_LONGEST_WAIT = 60.0
_LONGEST_ASKED = 900.0
"""Seconds: a service that asks for more has no room today, and a run that sleeps for a day looks like one that works."""
_TAGS = re.compile(r"(?s)<(style|script)\b.*?</\1>|<[^>]*>")
_BUSY = {408, 409, 429, 500, 502, 503, 504, 529}

_REMEDIES = {
    404: f"see --model and {address.VARIABLE}",
    405: f"see {address.VARIABLE}",
    413: "the conversation is too long for this service; begin a new run, the state goes on where it is",
}


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
    """What stays the same in a conversation."""

    agent: str  # who asks
    conversation: str  # its name
    system: list[dict[str, Any]]  # the agent's page and skills
    tools: Sequence[dict[str, Any]]  # definitions


@dataclass
class Service:
    """The Messages API, with back-off and a budget."""

    client: anthropic.Anthropic  # the SDK's client, without retries of its own
    model: str  # the model's name
    budget: Budget  # what may be spent
    tell: Callable[[str], None]  # called with one line when the service makes the run wait
    hide: Callable[[str], str]  # takes secrets out of what the service says
    # called with the agent and the cost of a message that came in part: nobody gets it, and it was paid for
    lost: Callable[[str, Usage], None] = lambda agent, usage: None
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
                    reply = received(next(runner), reserved.cache_write, _identities(history))
            except (anthropic.APIError, httpx2.HTTPError, Cut) as error:
                self._settle_lost(reserved, getattr(error, "usage", Usage()), question.agent)
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
            if reply.stop_reason == WHOLE and reply.calls and not reply.mended:
                runner.append_messages(*history[-2:])
            else:  # the SDK's loop is over, or it knows another message
                runner = None

    def _settle_lost(self, reserved: Usage, usage: Usage, agent: str) -> None:
        self.budget.settle(reserved, usage, agent)
        if any(vars(usage).values()):
            self.lost(agent, usage)

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
        place = f" at {address.shown(error.request.url)}" if isinstance(error, anthropic.APIStatusError) else ""
        if status is not None and (refused := refusal(status, said, place)):
            raise refused
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


def refusal(status: int, said: str, place: str = "") -> PyptoOpError | None:
    """Return the error for a status of the service that no waiting changes; None where a later request may succeed.

    Args:
        status: of HTTP.
        place: " at " and the service's address, where it is known.
    """
    if status == 401:
        return InfraError(f"the service refuses the key ({said})", remedy="set ANTHROPIC_API_KEY to a valid one")
    if status == 403:
        return InfraError(f"the service forbids it ({said})", remedy="ask for a key that may use this model")
    if status == 200 or status in _BUSY:
        return None
    remedy = _REMEDIES.get(status, "the service's own words say why; then go on with --resume")
    return ContractError(f"the service{place} refuses the request ({status}: {said})", remedy=remedy)


def _told(error: Exception) -> str:
    if isinstance(error, anthropic.APIConnectionError):  # the SDK says "Connection error." and names no address
        return f"{address.shown(error.request.url)}: {error.__cause__ or error.message}"[:600]
    body = getattr(error, "body", None)
    said = body.get("error", {}).get("message") if isinstance(body, dict) and isinstance(body.get("error"), dict) else None
    words = str(said or error or type(error).__name__)
    if words.lstrip().startswith("<"):  # a page for a browser: a proxy stands between
        words = _TAGS.sub(" ", words)
    return " ".join(words.split())[:600]


def _asked_for(error: Exception) -> float | None:
    """Return the seconds that the service wants us to wait, where it says so: as a number, or as a date."""
    response = getattr(error, "response", None)
    text = response.headers.get("retry-after", "") if response is not None else ""
    try:
        seconds = float(text)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(text).timestamp() - time.time()
        except (ValueError, OverflowError):
            return None
    return None if math.isnan(seconds) else max(0.0, seconds)


def _identities(history: list[Message]) -> set[str]:
    """Return the identities of the calls that a conversation holds."""
    blocks = (block for message in history if isinstance(message["content"], list) for block in message["content"])
    return {block["id"] for block in blocks if block.get("type") == "tool_use"}


def _size(question: Question, history: list[Message]) -> int:
    """Return how many characters a request holds."""
    return sum(len(json.dumps(part)) for part in (question.system, list(question.tools), history))
