"""What `pypto-op run` shows while it goes: one line an event, with stage, agent, tokens and money."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.text import Text

from pypto_op import speaking
from pypto_op.bundle.agents import MCP_PREFIX
from pypto_op.runner.budget import Budget

_SHOWN = (
    "command",
    "file_path",
    "path",
    "pattern",
    "skill",
    "op_dir",
    "action",
    "stage",
    "phase",
    "subagent_type",
    "name",
    "search",
)
_LONGEST = 110


@dataclass
class Screen:
    """Prints what happens."""

    console: Console  # where to print
    budget: Budget  # what the run has spent
    hide: Callable[[str], str]  # takes secrets out of a text
    stage: str = "-"

    def turn(self, agent: str, text: str) -> None:
        """Show what an agent says."""
        if text.strip():
            self._line(agent, f"[dim]{escape(_short(text))}[/]")

    def call(self, agent: str, tool: str, given: dict[str, Any]) -> None:
        """Show a call that begins."""
        words = " ".join(str(given[key]) for key in _SHOWN if given.get(key) is not None)
        self._line(agent, f"[blue]{escape(tool.removeprefix(MCP_PREFIX))}[/] {escape(_short(words))}")

    def refusal(self, agent: str, text: str) -> None:
        """Show what a hook refused."""
        self._line(agent, f"[red]refused[/] {escape(_short(text))}")

    def answer(self, agent: str, tool: str, content: str) -> None:
        """Show what a gate or the judge answered; what other tools say is the agent's own business."""
        name = tool.removeprefix(MCP_PREFIX)
        if name == tool or name not in ("state_transition", "verify"):
            return
        try:
            told = json.loads(content)
        except ValueError:  # its middle was left out: it is too long for a conversation
            return
        self.stage = str(told.get("current_stage") or self.stage)
        mark = "[green]yes[/]" if told.get("ok") else "[red]no[/]"
        said = told.get("error") or told.get("counted") or told.get("action") or ""
        self._line(agent, f"{name}: {mark} {escape(_short(str(said)))}")

    def wait(self, line: str) -> None:
        """Show why the run waits."""
        self._line("service", f"[yellow]{escape(_short(line))}[/]")

    def _line(self, agent: str, text: str) -> None:
        who = escape(agent.removeprefix("pypto-op-"))
        stage = "" if self.stage == "-" else f"stage {self.stage}, "
        speaking.now(f"{stage}{Text.from_markup(f'{who}: {self.hide(text)}').plain}".translate(_CONTROL))
        if self.console.quiet:  # its result alone was asked for, and nobody hears the line
            return
        speaking.heard()
        line = f"[dim]\\[{self.stage}] {self.spent():>15}[/] [bold]{who}[/] {self.hide(text)}"
        self.console.print(line.translate(_CONTROL))

    def spent(self) -> str:
        """Return tokens and money so far, in a few characters."""
        dollars = self.budget.dollars
        money = "" if dollars is None else f" ${dollars:.2f}"
        return f"{self.budget.spent.tokens / 1000:.1f}k{money}"


_CONTROL = dict.fromkeys([*range(32), 127, *range(128, 160)], " ")
"""Characters that a terminal obeys: what a model says is shown, not done."""


def shown(text: str) -> str:
    """Return a text of several lines without the characters that a terminal obeys."""
    return "\n".join(line.translate(_CONTROL) for line in text.splitlines())


def _short(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= _LONGEST else words[: _LONGEST - 1] + "…"
