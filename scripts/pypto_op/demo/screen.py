"""What the demo prints while it goes: one line an event, a spinner while something runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape

from pypto_op.report.timeline import Event, Kind

_MARKS = {
    Kind.WRITE: ("[blue]✎[/]", ""),
    Kind.REFUSAL: ("[red]✋[/]", "red"),
    Kind.TRANSITION: ("[cyan]→[/]", ""),
    Kind.VERDICT_PASS: ("[green]✔[/]", "green"),
    Kind.VERDICT_FAIL: ("[red]✘[/]", "red"),
    Kind.BENCHMARK: ("[magenta]⏱[/]", ""),
    Kind.NOTE: ("[dim]•[/]", "dim"),
}
_LINES_SHOWN = 9


class Screen:
    """Prints events as they happen and keeps them for the report."""

    def __init__(self, console: Console, keep: Callable[[Event], None]) -> None:
        self.console = console
        self._keep = keep
        self._start = time.monotonic()

    def chapter(self, title: str) -> None:
        """Begin a part of the story."""
        self.console.print(f"\n[bold]{escape(title)}[/]")

    def event(self, actor: str, kind: Kind, title: str, *, seconds: float = 0.0, detail: str = "") -> None:
        """Print and keep an event that has just ended and took `seconds`."""
        at = max(0.0, time.monotonic() - self._start - seconds)
        self._keep(Event(round(at, 3), round(seconds, 3), actor, kind, title, detail))
        mark, style = _MARKS[kind]
        took = f" [dim]{seconds:.1f} s[/]" if seconds >= 0.05 else ""
        text = f"[{style}]{escape(title)}[/]" if style else escape(title)
        self.console.print(f"  {mark} [bold]{escape(actor.removeprefix('pypto-op-'))}[/] {text}{took}")
        if kind in (Kind.REFUSAL, Kind.VERDICT_FAIL):
            for line in detail.splitlines()[:_LINES_SHOWN]:
                self.console.print(f"      [dim]{escape(line)}[/]")

    @contextmanager
    def busy(self, doing: str) -> Iterator[Callable[[], float]]:
        """Show a spinner; the value is a function that says how many seconds have passed."""
        begun = time.monotonic()
        with self.console.status(f"[dim]{escape(doing)}[/]"):
            yield lambda: time.monotonic() - begun
