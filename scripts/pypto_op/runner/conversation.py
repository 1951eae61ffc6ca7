"""One agent at work: its messages, its calls through guard, tool and linter, and the dispatches that it makes.

Orchestrator and agents differ in data only. Every reply and every result is in the journal before anything acts upon it,
so a run that was killed goes through the same code again, with what is there already.
"""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from pypto_op.bundle.agents import Agent
from pypto_op.runner.budget import LimitReached, Usage
from pypto_op.runner.hooks import Hooks
from pypto_op.runner.journal import Journal, Vault
from pypto_op.runner.reading import WHOLE, Reply, encodable
from pypto_op.runner.screen import Screen
from pypto_op.runner.service import Message, Question, Service
from pypto_op.runner.team import DISPATCH, Team
from pypto_op.runner.tools.table import CallFailed, Place, Tool

MOST_TURNS = 150
SAME_CALLS = 6
"""So many calls with the same input and the same result, within the last `_WINDOW`, are a loop; half of them are told."""
_WINDOW = 40
_MOST_SIDE_BY_SIDE = 8
_CUTS = ("max_tokens", "model_context_window_exceeded", "refusal")
"""Reasons to stop that cut a message short."""

INTERRUPTED = (
    "The run was interrupted while this call was at work: it may have taken effect in whole, in part or not at all. "
    "Look at what is there before you repeat it."
)


class Stuck(LimitReached):
    """An agent repeats itself, or takes too many turns."""


@dataclass(frozen=True)
class Result:
    """What a call answered."""

    content: str
    is_error: bool = False
    denied: bool = False
    """The guard refused the call before it was made."""


@dataclass
class Office:
    """What every conversation of a run shares."""

    team: Team
    service: Service
    hooks: Hooks
    journal: Journal
    vault: Vault
    place: Place
    screen: Screen


@dataclass
class Conversation:
    """One agent from its task to its last message."""

    office: Office  # what the run shares
    agent: Agent  # whose page it is
    name: str  # `main`, or the dispatching conversation's name and the number of the call
    prompt: str  # the first message
    # called with the last text; returns what to say so that the agent goes on, or None to let it end
    more: Callable[[str], str | None] = lambda text: None
    _turn: int = 0
    _seen: deque[tuple[str, str]] = field(default_factory=lambda: deque(maxlen=_WINDOW))
    _stopped_once: bool = False
    _live: bool = False

    def run(self) -> str:
        """Work to the end and return the last text.

        Raises:
            Stuck: it repeats itself or takes too many turns.
            LimitReached, InfraError, ContractError: as `Service.converse`.
        """
        self._past = self.office.journal.past(self.name)
        if self._past.ended is not None:
            return str(self._past.ended["text"])
        self._tools = self.office.team.tools_of(self.agent)
        if not self._past.replies:
            self.office.journal.write("start", conversation=self.name, agent=self.agent.name, prompt=self.prompt)
        definitions = [tool.definition for tool in self._tools.values()]
        question = Question(self.agent.name, self.name, self.office.team.system_of(self.agent), definitions)
        history: list[Message] = [{"role": "user", "content": self.prompt}]
        if not self._go_through_past(history):
            self._live = True
            self.office.service.converse(question, history, self._take_live)
        if self.name != "main":  # the orchestrator's end is the state's to judge, and a resumed run's to go beyond
            self.office.journal.write("end", conversation=self.name, agent=self.agent.name, text=self._last)
        return self._last

    # -- replies -----------------------------------------------------------------------------------------------

    def _go_through_past(self, history: list[Message]) -> bool:
        """Take the replies that the journal holds; say whether the conversation was over with them."""
        for line in self._past.replies:
            reply = Reply(line["content"], line["stop_reason"], broken={int(k): v for k, v in line.get("broken", {}).items()})
            answer = self._take(reply)
            history.append({"role": "assistant", "content": reply.content})
            if answer is None:
                return True
            history.append({"role": "user", "content": answer})
        return False

    def _take_live(self, reply: Reply) -> list[dict[str, Any]] | None:
        self.office.journal.write(
            "reply",
            conversation=self.name,
            agent=self.agent.name,
            turn=self._turn,
            content=reply.content,
            stop_reason=reply.stop_reason,
            broken=reply.broken,
            usage=vars(reply.usage),
        )
        self.office.screen.turn(self.agent.name, reply.text)
        return self._take(reply)

    def _take(self, reply: Reply) -> list[dict[str, Any]] | None:
        """Do what a reply asks for; return the answer to it, or None at the end."""
        turn, self._turn = self._turn, self._turn + 1
        self._last = reply.text
        if calls := reply.calls:
            self._check_turns()
            done = self._answers(turn, reply, calls)
            return [
                {"type": "tool_result", "tool_use_id": block["id"], "content": result.content, "is_error": result.is_error}
                for (_, block), result in zip(calls, done, strict=True)
            ]
        said = self._past.notes.get(turn) or self._objection(reply)
        if said is None:
            return None
        if turn not in self._past.notes:
            self.office.journal.write("note", conversation=self.name, after=turn, text=said)
        self._check_turns()
        return [{"type": "text", "text": said}]

    def _check_turns(self) -> None:
        """Raise Stuck at the limit; turns of an earlier part of a resumed run do not count."""
        if self._turn - len(self._past.replies) >= MOST_TURNS:
            raise Stuck(f"{self.agent.name} takes more than {MOST_TURNS} turns")

    def _objection(self, reply: Reply) -> str | None:
        """Return why the agent may not end its turn here, or None."""
        if reply.stop_reason == "max_tokens":
            return "Your message was cut at its greatest length. Go on."
        stop = self.office.hooks.stop(self.agent.name, main=self.name == "main", again=self._stopped_once)
        if stop.refused and not self._stopped_once:
            self._stopped_once = True
            return f"Stop hook feedback:\n{stop.text}"
        return self.more(reply.text)

    # -- calls -------------------------------------------------------------------------------------------------

    def _answers(self, turn: int, reply: Reply, calls: list[tuple[int, dict[str, Any]]]) -> list[Result]:
        """Answer the calls of a reply, in their order; dispatches among them run side by side."""

        def work(index: int, block: dict[str, Any]) -> Result:
            key = f"{turn}.{index}"
            if key in self._past.results:
                line = self._past.results[key]
                return Result(line["content"], line["is_error"])
            result = self._answer(key, block, reply, reply.broken.get(index))
            hidden = encodable(self.office.vault.hide(result.content))
            self.office.journal.write(
                "result", conversation=self.name, id=key, tool=block["name"], content=hidden, is_error=result.is_error,
                denied=result.denied,
            )  # fmt: skip
            return Result(hidden, result.is_error)

        dispatches = [call for call in calls if call[1]["name"] == DISPATCH]
        found: dict[int, Result] = {}
        if len(dispatches) > 1:
            with ThreadPoolExecutor(_MOST_SIDE_BY_SIDE) as pool:
                begun = [(index, pool.submit(work, index, block)) for index, block in dispatches]
                found = {index: future.result() for index, future in begun}
        for index, block in calls:
            if index not in found:
                found[index] = work(index, block)
        for index, block in calls:
            found[index] = self._watch_for_loops(block, found[index])
        return [found[index] for index, _ in calls]

    def _answer(self, key: str, block: dict[str, Any], reply: Reply, broken: str | None) -> Result:
        """Answer one call that the journal has no result of."""
        self.office.service.budget.check_time()
        name, given = block["name"], block["input"]
        tool = self._tools.get(name)
        if reply.stop_reason != WHOLE:
            return Result(_not_whole(reply.stop_reason), True)
        if broken:
            return Result(f"Not run: the input is {broken}.", True)
        if tool is None:
            return Result(f"There is no tool {name[:80]!r}. You have {', '.join(self._tools)}.", True)
        if key in self._past.begun and tool.effects:
            return Result(INTERRUPTED, True)
        try:
            tool.check(given)
        except CallFailed as error:
            return Result(str(error), True)
        self.office.journal.write("call", conversation=self.name, id=key, tool=name, input=given, effects=tool.effects)
        self.office.screen.call(self.agent.name, name, given)
        if name == DISPATCH:
            return self._dispatch(key, given)
        return self._guarded(tool, given)

    def _guarded(self, tool: Tool, given: dict[str, Any]) -> Result:
        """Make a call between its hooks."""
        agent, began = self.agent.name, time.monotonic()
        asked = _with_absolute_path(given, self.office.place)
        before = self.office.hooks.before(agent, tool.name, asked)
        if before.refused:
            self.office.screen.refusal(agent, before.text)
            return Result(before.text, True, denied=True)
        try:
            result = Result(tool.call(self.office.place, self.office.vault.fill(given)))
        except CallFailed as error:
            result = Result(str(error), True)
        after = self.office.hooks.after(agent, tool.name, asked, {}, began)
        if after.refused:
            self.office.screen.refusal(agent, after.text)
        elif not result.is_error:
            self.office.screen.answer(agent, tool.name, result.content)
        said = "\n\n".join(filter(None, [result.content, after.text]))
        return Result(said, result.is_error or after.refused)

    def _dispatch(self, key: str, given: dict[str, Any]) -> Result:
        agent = self.office.team.named(given["subagent_type"])
        if agent is None or agent.mode != "subagent":
            known = ", ".join(name for name, one in self.office.team.agents.items() if one.mode == "subagent")
            return Result(f"There is no agent {given['subagent_type'][:80]!r}. There are {known}.", True)
        try:
            return Result(Conversation(self.office, agent, f"{self.name}/{key}", given["prompt"]).run() or "(no answer)")
        except Stuck as stuck:
            return Result(f"{stuck}; it was ended.", True)

    def _watch_for_loops(self, block: dict[str, Any], result: Result) -> Result:
        """Tell an agent that it repeats itself, and end it when it goes on so."""
        name = block["name"]
        went_in = name in self._tools and not (name == DISPATCH and result.is_error)  # else other words make it no other call
        mark = (json.dumps([name, block["input"] if went_in else None], sort_keys=True), result.content)
        self._seen.append(mark)
        count = self._seen.count(mark)
        if count >= SAME_CALLS and self._live:
            raise Stuck(f"{self.agent.name} makes the same call {count} times with the same result: {block['name']}")
        if count == SAME_CALLS // 2:
            told = f"[pypto-op run] the same call has now given the same result {count} times; do something else."
            return Result(f"{result.content}\n{told}", result.is_error)
        return result


def _not_whole(reason: str) -> str:
    if reason in _CUTS:
        return f"Not run: the message was cut ({reason}). Say it again, in smaller parts."
    return f"Not run: the message ended with {reason[:80]!r} in place of {WHOLE!r}, so its calls may not be whole. Say it again."


def spent_before(journal: Journal) -> list[tuple[str, Usage]]:
    """Return what the earlier part of a resumed run has cost, by agent."""
    return [(line["agent"], Usage(**line["usage"])) for line in journal.lines if "usage" in line]


def _with_absolute_path(given: dict[str, Any], place: Place) -> dict[str, Any]:
    """Return a call's input as a harness shows it to hooks: a file's path is absolute there."""
    return {
        key: str(place.path(value)) if key == "file_path" and isinstance(value, str) else value for key, value in given.items()
    }
