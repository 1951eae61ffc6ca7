"""`pypto-op script`: runs a Python file that was written for the device, on this machine."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from pypto_op.errors import ContractError, unreadable
from pypto_op.hashing import open_regular
from pypto_op.vocabulary import Mode


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="(FILE | -m MODULE) [ARGS]...")
def script(words: Sequence[str]) -> int:
    """Run FILE with the Python and the packages of pypto-op: on the device where there is one, else in the simulator.

    For a golden, a test, a scratch script. A file that imports its neighbours by a dot is run as a module: `-m PACKAGE.FILE`,
    from the folder that holds the package. It runs as it is, with nothing between it and the machine, and proves
    nothing to anybody: verdicts come from `pypto-op verify`. Exit status: the script's own; 2 FILE is no Python text.
    """
    from pypto_op.backends.registry import get_backend

    # -m is no option of click's: like Python's, it ends the options, and a second one is the module's own
    if not words or list(words) == ["-m"]:
        raise click.UsageError("name a file, or a module with -m MODULE")
    if words[0] != "-m":
        _check_text(Path(words[0]))
    shim = () if get_backend(Mode.NPU).availability().ok else ("-m", "pypto_op.backends.hostshim")
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, *shim, *words])


def _check_text(file: Path) -> None:
    """Refuse what Python refuses to read: `runpy`, which runs it, ends in a traceback, or takes a wrong byte in a comment.

    Raises:
        ContractError: it is missing, no regular file, or no text in the encoding that it declares.
    """
    from pypto_op_lint.source import UnreadableSource, decode

    try:
        with open_regular(file) as stream:
            decode(stream.read())
    except OSError as error:
        raise unreadable(error, file) from None
    except UnreadableSource as error:
        where = f"line {error.line}" if error.line else None
        raise ContractError(error.problem, file=file, where=where, remedy="save it as UTF-8, or declare its encoding") from None
