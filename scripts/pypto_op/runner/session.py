"""One run: a request, the team, and what comes of it. Begun anew or gone on with, on the real service or on a replay."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import anthropic
from rich.console import Console

from pypto_op.backends import processes
from pypto_op.errors import ContractError, InfraError
from pypto_op.runner import address, alone
from pypto_op.runner import journal as journals
from pypto_op.runner.budget import Budget, LimitReached, Limits, Usage
from pypto_op.runner.conversation import Conversation, Office, spent_before
from pypto_op.runner.hooks import Hooks
from pypto_op.runner.journal import Journal, Line, Vault
from pypto_op.runner.outcome import Asked, Insistence, Standing, standing
from pypto_op.runner.reading import encodable
from pypto_op.runner.screen import Screen
from pypto_op.runner.service import Service
from pypto_op.runner.surroundings import agents_environment, hidden_from_commands, hooks_environment
from pypto_op.runner.team import LEADER, Team
from pypto_op.runner.tools.table import Place
from pypto_op.vocabulary import ExitCode

DEFAULT_MODEL = "claude-sonnet-5-5"
_GRACE_SECONDS = 15.0
_INTERRUPTED = 130
_LOOKS = 10
_STATE_SECONDS = 5.0
_LEADS = {"headless": [], "bare": ["--bare"]}
"""By who leads, the words of the command that say so."""


@dataclass(frozen=True)
class Order:
    """What the user asks for."""

    request: str = ""  # the sentence; empty with `resume`
    op: str | None = None  # the operator's name, where the user fixed it
    target_us: float | None = None  # the time that the kernel should take, in microseconds
    model: str | None = None  # the model's name; None takes the earlier part's, ANTHROPIC_MODEL, or the default
    limits: Limits = Limits()  # what may be spent
    leads: str = "headless"  # who leads: `headless`, this program; `bare`, the model alone; or a client
    replay: Path | None = None  # the transcript that is played, or None

    @property
    def goes_on(self) -> str:
        """The command that goes on with this run."""
        replay = ["--replay", str(self.replay)] if self.replay else []
        return shlex.join(["pypto-op", "run", "--resume", *_LEADS.get(self.leads, ["--runner", self.leads]), *replay])

    def prompt(self) -> str:
        """Return the first message to the orchestrator."""
        lines = [self.request]
        if self.op:
            lines.append(f"Name of the operator: {self.op}")
        target = f"target {self.target_us:g} us" if self.target_us else "none: leave stage 7 out"
        return "\n".join([*lines, f"Speed target: {target}"])


@dataclass(frozen=True)
class Access:
    """How the service is reached."""

    key: str | None = None  # for `x-api-key`; None where a bearer token is used
    bearer: str | None = None  # for `Authorization`
    base_url: str | None = None  # None is the SDK's own

    def client(self) -> anthropic.Anthropic:
        """Return the SDK's client.

        Raises:
            InfraError: there is no key.
        """
        if not (self.key or self.bearer):
            raise InfraError(
                "there is no key for the model", remedy="set ANTHROPIC_API_KEY, or replay a transcript with --replay"
            )
        web = anthropic.DefaultHttpxClient(event_hooks={"request": [address.OneOrigin()]})
        return anthropic.Anthropic(
            api_key=self.key, auth_token=self.bearer, base_url=self.base_url, max_retries=0, timeout=600.0, http_client=web
        )


@dataclass(frozen=True)
class Ended:
    """How a run ended."""

    code: int  # the exit code
    why: str  # one line; empty when the operator is finished
    text: str  # the orchestrator's last message
    standing: Standing  # what the state says
    summary: dict[str, Any]  # for `--json`


class Run(ABC):
    """A run in its folder, whoever leads the conversation.

    Args:
        workspace: the folder that holds `custom/`; the process stands in it.
        folder: the run's folder, of an earlier part or new.
        vault: knows the secrets that must not be written.

    Raises:
        ContractError: money is limited and the model has no price.
    """

    def __init__(self, workspace: Path, order: Order, folder: Path, console: Console, vault: Vault) -> None:
        self._workspace = workspace
        self._journal = Journal(folder, vault)
        try:
            self._prepare(order, console, vault)
        except BaseException:
            self._journal.close()
            raise

    def _prepare(self, order: Order, console: Console, vault: Vault) -> None:
        earlier = next((line for line in self._journal.lines if line["kind"] == "run"), None)
        self.model = order.model or (earlier or {}).get("model") or os.environ.get("ANTHROPIC_MODEL") or DEFAULT_MODEL
        self._limits = self._limited(order.limits)
        self._budget = Budget(self._limits, self.model)
        for agent, usage in spent_before(self._journal):
            self._budget.count(usage, agent)
        self._begin(order, earlier)
        self._screen = Screen(console, self._budget, vault.hide)

    def _limited(self, asked: Limits) -> Limits:
        """Return what may be spent: as asked, or as an earlier part of this run was told. Minutes are of one part alone."""
        told = [line["budget"] for line in self._journal.lines if line.get("budget") and line["kind"] in ("run", "resumed")]
        if asked.tokens is not None or asked.dollars is not None or not told:
            return asked
        return replace(asked, tokens=told[-1].get("tokens"), dollars=told[-1].get("dollars"))

    @abstractmethod
    def _work(self, more: Callable[[str], str | None]) -> str:
        """Lead the conversation to its end and return its last text; `more` says what keeps the orchestrator from ending."""

    @abstractmethod
    def _close(self) -> None:
        """Let go of what was opened for the work."""

    def _begin(self, order: Order, earlier: Line | None) -> None:
        """Note what is asked for, or read what was."""
        self._goes_on = order.goes_on
        if earlier is None:
            if not order.request.strip():
                raise ContractError("there is no request", remedy="say in a sentence what the operator computes")
            self._prompt = encodable(order.prompt())
            self._asked = Asked(self._workspace, order.op, time.time(), order.target_us is not None)
            self._journal.write(
                "run", schema_version=journals.SCHEMA_VERSION, prompt=self._prompt, op=order.op, model=self.model,
                workspace=str(self._workspace), budget=self._spendable(), leads=order.leads,
                target_us=order.target_us,
            )  # fmt: skip
            return
        if (led := earlier.get("leads", order.leads)) != order.leads:
            right = replace(order, leads=led)
            raise ContractError(f"another leads the last run in this folder ({led})", remedy=f"go on with `{right.goes_on}`")
        self._prompt = earlier["prompt"]
        self._asked = Asked(self._workspace, earlier["op"], earlier["at"], earlier.get("target_us") is not None)
        self._journal.write("resumed", model=self.model, budget=self._spendable())

    def _spendable(self) -> dict[str, float] | None:
        told = {name: value for name in ("tokens", "dollars") if (value := getattr(self._limits, name)) is not None}
        return told or None

    def run(self, last: Callable[[dict[str, Any]], None] = lambda summary: None) -> Ended:
        """Work until the orchestrator ends or a limit is met; what the operator is worth, the state says.

        Args:
            last: gets the summary where Ctrl-C, SIGTERM or the end of the time ends this process, which then does nothing more.

        Raises:
            InfraError, ContractError: as `Service.converse`; the run can go on with --resume.
        """
        try:
            return self._run(last)
        finally:
            self._journal.close()
            self._close()

    def _run(self, last: Callable[[dict[str, Any]], None]) -> Ended:
        insistence = Insistence(self._asked)
        why = text = ""
        with _ends_at_once(self._budget, self._goes_on, lambda why: last(self._cut_short(why))):
            try:
                text = self._work(insistence.more)
            except LimitReached as limit:
                why = str(limit)
        found = standing(self._asked)
        if not found.finished:
            why = f"{why or 'the orchestrator ended'}; {found.said}"
        code = int(ExitCode.OK if found.finished else ExitCode.FAIL)
        ended = Ended(code, "" if found.finished else why, text, found, self._summary(found, why))
        with contextlib.suppress(journals.NotOurs):
            self._journal.write("ended", code=code, why=ended.why)
        return ended

    def broken_off(self, why: str) -> dict[str, Any]:
        """Return the summary of a run that an error ended."""
        found = standing(self._asked)
        return {**self._summary(found, why), "finished": False, "why": why, "goes_on": self._goes_on}

    def _cut_short(self, why: str) -> dict[str, Any]:
        """Return the summary of a run that ends now; the thread that was interrupted may hold what the state waits for."""
        found: list[dict[str, Any]] = []
        asking = threading.Thread(target=lambda: found.append(self.broken_off(why)), daemon=True)
        asking.start()
        asking.join(_STATE_SECONDS)
        return found[0] if found else self._summary(Standing(None, False, "the state did not answer"), why)

    def _summary(self, found: Standing, why: str) -> dict[str, Any]:
        budget = self._budget
        return {
            "finished": found.finished,
            "why": "" if found.finished else why,
            "state": found.said,
            "goes_on": "" if found.finished else self._goes_on,
            "op_dir": str(found.op_dir) if found.op_dir else None,
            "model": self.model,
            "requests": budget.requests,
            "tokens": vars(budget.spent),
            "dollars": budget.dollars if budget.dollars is None else round(budget.dollars, 4),
            "by_agent": {agent: vars(usage) for agent, usage in sorted(budget.by_agent.copy().items())},
            "transcript": str(self._journal.path),
        }


class Session(Run):
    """A run on the Messages API; the arguments are those of `Run`, and how the model is reached.

    Raises:
        InfraError: there is no key.
    """

    def __init__(self, workspace: Path, order: Order, access: Access, folder: Path, console: Console, vault: Vault) -> None:
        client = access.client()
        super().__init__(workspace, order, folder, console, vault)
        self._bare = bare = order.leads == "bare"
        environment = alone.environment(folder) if bare else agents_environment()
        place = Place(workspace, environment, time.monotonic() + self._budget.seconds_left, hidden_from_commands(workspace))
        service = Service(client, self.model, self._budget, self._screen.wait, vault.hide, self._note_lost)
        team = alone.Alone(workspace) if bare else Team(workspace)
        hooks = alone.NoHooks(workspace) if bare else Hooks(workspace, folder.name, hooks_environment())
        self._office = Office(team, service, hooks, self._journal, vault, place, self._screen)

    def _note_lost(self, agent: str, usage: Usage) -> None:
        self._journal.write("usage", agent=agent, usage=vars(usage))

    def _work(self, more: Callable[[str], str | None]) -> str:
        if self._bare:
            return Conversation(self._office, alone.AGENT, "main", self._prompt).run()
        leader = self._office.team.agents[LEADER]
        return Conversation(self._office, leader, "main", self._prompt, more).run()

    def _close(self) -> None:
        self._office.service.client.close()


class _ends_at_once:  # noqa: N801
    """While it lasts, Ctrl-C, SIGTERM and the end of the time end everything within seconds: the journal is always whole."""

    def __init__(self, budget: Budget, goes_on: str, last: Callable[[str], None]) -> None:
        self._goes_on, self._last = goes_on, last
        self._timer: threading.Timer | None = None
        if budget.seconds_left != float("inf"):
            self._timer = threading.Timer(budget.seconds_left + _GRACE_SECONDS, self._time_over)
            self._timer.daemon = True

    def __enter__(self) -> None:
        self._before = {number: signal.signal(number, self._signalled) for number in (signal.SIGINT, signal.SIGTERM)}
        if self._timer:
            self._timer.start()

    def __exit__(self, *_: object) -> None:
        if self._timer:
            self._timer.cancel()
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _signalled(self, number: int, frame: object) -> None:
        self._end("interrupted", _INTERRUPTED)

    def _time_over(self) -> None:
        self._end("the time is over, and a call was still at work", int(ExitCode.FAIL))

    def _end(self, why: str, code: int) -> None:
        for _ in range(_LOOKS):  # what a process leaves behind when it ends comes here at the next look
            if not (below := processes.tree_below(os.getpid())):
                break
            for child in below:
                processes.kill(child)
            time.sleep(0.02)
        with contextlib.suppress(Exception):  # whatever it meets, the process ends
            self._last(why)
        os.write(2, f"pypto-op: {why}; `{self._goes_on}` goes on\n".encode())
        os._exit(code)
