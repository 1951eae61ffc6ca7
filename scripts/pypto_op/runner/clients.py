"""The same run led by a harness client without a terminal: Claude Code (`claude -p`) or OpenCode (`opencode run`).

The client asks the model, calls the tools and starts the hooks; it must be set up in the workspace. What it says of
itself in JSON lines is shown and kept as far as it goes; how the run ends, the state machine decides here too.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

from pypto_op.bundle.agents import load_agents
from pypto_op.errors import ContractError, InfraError
from pypto_op.install.claude_client import find
from pypto_op.install.render import CLAUDE_PLUGIN
from pypto_op.install.target import Target
from pypto_op.runner.budget import LimitReached, Usage
from pypto_op.runner.journal import Vault
from pypto_op.runner.leash import leashed
from pypto_op.runner.service import refusal
from pypto_op.runner.session import Order, Run
from pypto_op.runner.surroundings import hidden_from_commands
from pypto_op.runner.team import DISPATCH, LEADER

Event = dict[str, Any]
ENDED_BY_SIGNAL = "was ended by a signal"
"""What a run says whose client something ended, of the run's own or of this machine's; the client never does that to itself."""
_SIGNALS = 128
_BEGUN_AGAIN = 2
_CUT_SHORT = (
    "Something ended the client while you worked. What was at work may have taken effect in whole, in part or not at all: "
    "look at what is there, ask the state machine, and go on."
)


class ClientRun(Run):
    """A run led by a client.

    Args:
        client: `claude` or `opencode`; the other arguments are those of `Run`.
        secrets: put back into the client's environment: it asks the model itself.

    Raises:
        InfraError: the client is not installed.
        ContractError: it is not set up in the workspace.
    """

    def __init__(
        self, client: str, secrets: Mapping[str, str], workspace: Path, order: Order, folder: Path, console: Console, vault: Vault
    ) -> None:
        self._client, self._program = client, find(client)
        self._place = Target(workspace)
        if client not in self._place.harnesses:
            remedy = f"run `pypto-op install --harness {client} --target .`"
            raise ContractError(f"{client} is not set up here", file=workspace, remedy=remedy)
        super().__init__(workspace, order, folder, console, vault)
        self._environment = {**os.environ, **secrets, "PWD": str(workspace)}  # OpenCode believes PWD more than where it stands
        self._asked_model = order.model
        self._session = next((line["session"] for line in reversed(self._journal.lines) if line["kind"] == "client"), "")
        self._agents: dict[str, str] = {}
        self._counted: set[str] = set()
        self._text = self._talk = ""
        self._status: int | None = None

    def _work(self, more: Callable[[str], str | None]) -> str:
        said: str | None = more("") if self._session else self._prompt
        ends = 0
        while said is not None:
            self._text = ""
            number = self._lead(said)
            if not number:
                said = more(self._text)
                continue
            ends += 1
            self._journal.write("client_ended", client=self._client, signal=number)
            if ends > _BEGUN_AGAIN:
                raise LimitReached(f"{self._client} {ENDED_BY_SIGNAL} {ends} times")
            said = f"{_CUT_SHORT}\n\n{'' if self._session else self._prompt}".strip()
        return self._text

    def _close(self) -> None:
        """Nothing is left open: each client ends with its call."""

    def _lead(self, prompt: str) -> int:
        """Run the client once, to the end of the orchestrator's turn; return the signal that ended it before, or 0.

        Raises:
            InfraError: it ended with an error of its own, or the service refuses the key.
            ContractError: the service refuses the request.
        """
        hidden = hidden_from_commands(self._workspace)
        place: dict[str, Any] = {"cwd": self._workspace, "env": self._environment, "hidden": hidden}
        with tempfile.TemporaryFile() as errors:
            with leashed(self._command(prompt), **place, stdout=subprocess.PIPE, stderr=errors) as child:
                for event in self._events(child):
                    self._note(event)
                code = child.wait()
            errors.seek(0)
            last = errors.read()[-400:].decode("utf-8", errors="replace")
        if code > _SIGNALS:
            return code - _SIGNALS
        if code:
            said = self._screen.hide(self._talk or last.strip() or self._text[-200:])
            self._check_refusal(said)
            raise InfraError(f"{self._client} ended with exit code {code}: {said}", remedy="go on with --resume")
        return 0

    def _check_refusal(self, said: str) -> None:
        """Raise what the service's last status means, where no waiting changes it."""
        if self._status is not None and (refused := refusal(self._status, said)):
            raise refused

    def _events(self, child: subprocess.Popen[bytes]) -> Iterator[Event]:
        """Yield what the client prints; of lines that are no JSON object the last one is kept for an error's text."""
        assert child.stdout is not None
        for line in child.stdout:
            try:
                event = json.loads(line)
            except ValueError:
                self._talk = line.decode("utf-8", errors="replace").strip()[-400:] or self._talk
                continue
            if isinstance(event, dict):
                yield event

    def _command(self, prompt: str) -> list[str]:
        model = ["--model", self._asked_model] if self._asked_model else []
        if self._client == "opencode":
            session = ["--session", self._session] if self._session else []
            return [self._program, "run", "--format", "json", "--agent", LEADER, *model, *session, prompt]
        tools = sorted({tool for agent in load_agents() for tool in agent.tools})
        plugin = [] if self._place.registered else ["--plugin-dir", str(self._workspace / CLAUDE_PLUGIN)]
        session = ["--resume", self._session] if self._session else []
        form = [
            "--output-format",
            "stream-json",
            "--verbose",
            "--permission-mode",
            "acceptEdits",
            "--allowedTools",
            ",".join(tools),
        ]
        return [self._program, "-p", prompt, "--agent", f"pypto-op:{LEADER}", *form, *plugin, *model, *session]

    # -- what the client says ----------------------------------------------------------------------------------

    def _note(self, event: Event) -> None:
        session = str(event.get("session_id") or event.get("sessionID") or self._session)
        if event.get("type") != "stream_event":
            self._session = session
            self._journal.write("client", client=self._client, session=session, event=event)
        (self._note_claude if self._client == "claude" else self._note_opencode)(event)
        self._check_limits()

    def _note_claude(self, event: Event) -> None:
        message = event.get("message") or {}
        agent = self._agents.get(str(event.get("parent_tool_use_id")), LEADER)
        if event.get("type") == "assistant":
            for block in message.get("content", []):
                self._show(agent, block)
            identity = str(message.get("id"))
            if identity not in self._counted:
                self._counted.add(identity)
                self._count(Usage.of(message.get("usage", {})), agent)
        elif event.get("type") == "user" and isinstance(message.get("content"), list):
            for block in message["content"]:
                if block.get("type") == "tool_result" and block.get("is_error"):
                    self._screen.refusal(agent, json.dumps(block.get("content"), ensure_ascii=False))
        elif event.get("type") == "result":
            self._text = str(event.get("result") or "")
            self._note_status(event.get("api_error_status"))
        elif event.get("subtype") == "api_retry":
            said, after = self._screen.hide(str(event.get("error"))), event.get("retry_delay_ms")
            self._note_status(event.get("error_status"))
            self._check_refusal(said)  # the client would ask again for minutes
            self._screen.wait(f"{said}; {self._client} tries again" + (f" in {after / 1e3:.0f} s" if after else ""))

    def _show(self, agent: str, block: Event) -> None:
        if block.get("type") == "text":
            self._screen.turn(agent, block["text"])
        elif block.get("type") == "tool_use":
            self._screen.call(agent, block["name"], block["input"])
            if block["name"] in (DISPATCH, "Task"):
                self._agents[block["id"]] = str(block["input"].get("subagent_type", "")).removeprefix("pypto-op:")

    def _note_status(self, status: object) -> None:
        self._status = status if isinstance(status, int) else None

    def _note_opencode(self, event: Event) -> None:
        """OpenCode prints the orchestrator's own session only: dispatches are calls of `task`."""
        part = event.get("part") or {}
        if event.get("type") == "text":
            self._text = str(part.get("text", ""))
            self._screen.turn(LEADER, self._text)
        elif event.get("type") == "tool_use":
            given = (part.get("state") or {}).get("input") or {}
            self._screen.call(LEADER, str(part.get("tool")), given)
        elif event.get("type") == "step_finish":
            tokens = part.get("tokens") or {}
            cache = tokens.get("cache") or {}
            used = [tokens.get("input"), cache.get("write"), cache.get("read"), tokens.get("output")]
            self._count(Usage(*(value if isinstance(value, int) else 0 for value in used)), LEADER)
        elif event.get("type") == "error":
            error = event.get("error") or {}
            data = error.get("data") or {}
            self._talk = str(data.get("message") or json.dumps(error))[:400]
            self._note_status(data.get("statusCode"))

    def _count(self, usage: Usage, agent: str) -> None:
        self._budget.count(usage, agent)
        self._journal.write("usage", agent=agent, usage=vars(usage))

    def _check_limits(self) -> None:
        """End the client when a limit is passed: the request that passed it was its own."""
        self._budget.check_time()
        limits, dollars = self._budget.limits, self._budget.dollars
        if limits.tokens is not None and self._budget.spent.tokens >= limits.tokens:
            raise LimitReached(f"the budget of {limits.tokens} tokens is spent")
        if limits.dollars is not None and dollars is not None and dollars >= limits.dollars:
            raise LimitReached(f"the budget of ${limits.dollars:g} is spent")
