"""Arguments that many commands share, and what can be refused before anything large is imported."""

from __future__ import annotations

import difflib
import math
import shlex
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from pypto_op.errors import ContractError
from pypto_op.workspace import OPERATORS_DIR, OpWorkspace, typed

_MAKE = "give the folder of an operator, or make one with `pypto-op new OP`"


SEED = click.IntRange(0, 2**63 - 1)
"""A seed. torch takes no larger ones, and what an operator's file makes of such a one would look like that file's fault."""

SEARCH_SEED = click.IntRange(0, 2**32 - 1)
"""A seed of a search, which NumPy draws from."""

MEGABYTES = click.IntRange(256, 2**24)
"""What a process may use: fewer start no Python with torch, and the system takes no number that no machine has."""


class OperatorDir(click.ParamType[Path]):
    """The folder of an operator, which must be there and hold one of its files: nothing is written into somebody else's.

    Args:
        or_file: what an existing file is taken for, in words; "" where a file is refused.
    """

    name = "directory"

    def __init__(self, or_file: str = "") -> None:
        self.or_file = or_file

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """Return the path; raise ContractError where there is no such folder."""
        path = Path(value)
        if path.is_dir():
            if OpWorkspace.of_files(path).is_nobodys():
                raise ContractError("is no operator: none of an operator's files lies in it", file=path, remedy=_instead(path))
            return path
        if self.or_file and path.is_file():
            return path
        if path.exists():
            raise ContractError("is no folder", file=path, remedy=_MAKE)
        raise ContractError("no such operator directory", file=path, remedy=_nearest(path))


def _is_operator(folder: Path) -> bool:
    """Whether a folder that is there is an operator's; one whose name no operator may have is none."""
    try:
        return not OpWorkspace.of_files(folder).is_nobodys()
    except (ContractError, OSError):
        return False


def _nearest(path: Path) -> str:
    """Return what to do about a folder that is not there: the operator of nearly that name, beside it or in custom/."""
    there: dict[str, Path] = {}
    for folder in (Path(OPERATORS_DIR), path.parent):
        with suppress(OSError):
            there |= {one.name: one for one in folder.iterdir() if one.is_dir() and _is_operator(one)}
    meant = difflib.get_close_matches(path.name, there, 1)
    return f"did you mean {typed(there[meant[0]])}?" if meant else _MAKE


def _instead(path: Path) -> str:
    """Return what to do about a folder that is no operator; one of a Triton task has commands of its own."""
    task = next(iter(sorted(path.glob("*_torch.py"))), None)
    if task is None:
        return _MAKE
    name = shlex.quote(task.name.removesuffix("_torch.py"))
    return f"a Triton task lies there: `pypto-op triton verify --op_name {name} --verify_dir {typed(path)}` judges it"


class Amount(click.FloatRange):
    """A number of seconds, minutes or microseconds: with one that is none, or that no clock counts, nothing would be limited.

    Args:
        least: the smallest that is taken; None: any above 0.
    """

    def __init__(self, least: float | None = None) -> None:
        super().__init__(min=least or 0.0, min_open=least is None, max=1e9)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number; fail where it is none, or out of the range."""
        found = float(super().convert(value, param, ctx))
        if math.isnan(found):
            self.fail(f"{value!r} is no number", param, ctx)
        return found


def op_dir_argument(*, or_file: str = "") -> Callable[[Any], Any]:
    """Return the argument OP_DIR; see `OperatorDir`."""
    return click.argument("op_dir", type=OperatorDir(or_file))
