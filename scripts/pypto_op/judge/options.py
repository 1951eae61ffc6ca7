"""Options that the judging commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from pypto_op.modes import WORDS
from pypto_op.vocabulary import Level, Mode


def parse_modes(context: click.Context, parameter: click.Parameter, text: str) -> tuple[Mode, ...]:
    """Read words such as `sim,npu`; refuse an unknown or an empty list."""
    try:
        modes = tuple(dict.fromkeys(Mode(word.strip().lower()) for word in text.split(",") if word.strip()))
    except ValueError as error:
        word, _, _ = str(error).rpartition(" is not a valid ")
        raise click.BadParameter(f"{word} is no mode; use a subset of {WORDS}") from None
    if not modes:
        raise click.BadParameter(f"no mode named; use a subset of {WORDS}")
    return modes


def parse_levels(context: click.Context, parameter: click.Parameter, text: str | None) -> tuple[str, ...] | None:
    """Read `L1,L2`; refuse an unknown or an empty list."""
    if text is None:
        return None
    try:
        levels = tuple(dict.fromkeys(str(Level.parse(word)) for word in text.split(",") if word.strip()))
    except ValueError as error:
        raise click.BadParameter(f"{error}; use a subset of L1,L2,L3,L4,L5") from None
    if not levels:
        raise click.BadParameter("no level named; use a subset of L1,L2,L3,L4,L5")
    return levels


modes_option = click.option("--modes", default=WORDS, callback=parse_modes, show_default=True, help="Where to run.")


def levels_option(*, help: str, default: str | None = None) -> Callable[[Any], Any]:  # noqa: A002 - click's word
    """Return the option `--levels L1,L2`."""
    return click.option(
        "--levels", default=default, callback=parse_levels, metavar="L1,L2", show_default=default is not None, help=help
    )
