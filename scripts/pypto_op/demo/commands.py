"""`pypto-op demo`: shows one operator go from request to verdict."""

from __future__ import annotations

from pathlib import Path

import click

from pypto_op.bundle_files import bundle_root
from pypto_op.errors import InfraError
from pypto_op.vocabulary import Mode

_EXAMPLE = "rmsnorm"


@click.command()
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("demo-out"),
    show_default=True,
    help="Scratch workspace; an earlier demo's is replaced.",
)
def demo(out: Path) -> int:
    """Build a real operator step by step, as the team would, and write an HTML report.

    On the way the coder makes two mistakes and somebody tries a short cut; hooks, judge and gates must refuse all three.
    Exit status: 0 the story went as it must, 1 a guard did not fire, 2 or 3 as the command that ended it.
    """
    from rich.console import Console

    from pypto_op.backends.registry import get_backend
    from pypto_op.demo.screen import Screen
    from pypto_op.demo.story import Telling, open_scratch
    from pypto_op.demo.tools import Tools
    from pypto_op.documents.writing import write_atomically
    from pypto_op.report import timeline
    from pypto_op.report.page import render
    from pypto_op.runner.hooks import Hooks

    available = get_backend(Mode.SIM).availability()
    if not available.ok:
        raise InfraError(available.reason)
    console = Console(highlight=False)
    out = out.resolve()
    example, ws = open_scratch(out, bundle_root() / "examples" / "ops" / _EXAMPLE)
    events: list[timeline.Event] = []
    telling = Telling(example, ws, Hooks(out), Tools(out, ws.root), Screen(console, events.append))
    try:
        telling.tell()
    finally:
        telling.story.events = events
        page = out / "report.html"
        write_atomically(page, render(telling.story))
        console.print(f"\nReport: [bold]{page}[/]")
    return 0
