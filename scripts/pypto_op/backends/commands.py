"""`pypto-op script`."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import click

from pypto_op.vocabulary import Mode


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
def script(file: str, words: Sequence[str]) -> int:
    """Run FILE with the Python and the packages of pypto-op: on the device where there is one, else in the simulator.

    For a golden, a test, a scratch script. It runs as it is, with nothing between it and the machine, and proves
    nothing to anybody: verdicts come from `pypto-op verify`. Exit status: the script's own.
    """
    from pypto_op.backends.registry import get_backend

    shim = () if get_backend(Mode.NPU).availability().ok else ("-m", "pypto_op.backends.hostshim")
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, *shim, file, *words])
