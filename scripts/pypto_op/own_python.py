"""The command that runs a module of this bundle in another process, with nothing of the user's in the way of what it imports.

`python -m` looks into the folder where it is started before anything else, and that is often an agent's workspace: a `json.py`
there would run in the process that decides. Python 3.11 has `-P` against that; 3.10 has not. PYTHONPATH comes before the standard
library, too: a `random.py` or `sitecustomize.py` in a folder that it names would run there. So Python starts without it (`-E`),
and what it names comes behind all that is installed.
"""

from __future__ import annotations

import atexit
import gc
import os
import sys

_HERE = "import os, sys; here, lib = os.getcwd(), os.path.dirname(os.__file__)"
_NAMED = "named = [p for p in os.environ.get('PYTHONPATH', '').split(':') if p[:1] == '/' and os.path.realpath(p) != here]"
_OTHERS = "sys.path[:] = [p for p in sys.path if p and p != here and p not in named] + named"
_OURS = "ours = [p for p in named if os.path.isdir(p + '/pypto_op') or os.path.isdir(p + '/pypto_op_lint')]"
_RANK = "sys.path.sort(key=lambda p: 2 * (p not in ours) if p in named else not p.startswith(lib) or 'packages' in p[len(lib):])"
_RUN = "import runpy; runpy.run_module(sys.argv.pop(1), run_name='__main__', alter_sys=True)"
BEGIN = "; ".join((_HERE, _NAMED, _OTHERS, _OURS, _RANK, _RUN))
"""`os` and `sys` are loaded when Python starts. Then the current folder goes off the path: the empty entry that `-c` makes, and
what an empty part of PYTHONPATH has become. The order: the standard library, a folder of PYTHONPATH that holds this bundle, what
is installed, the other folders of PYTHONPATH."""


_BETWEEN_COLLECTIONS = 100_000
"""So many more containers must be there; Python's own number is 700, and torch alone makes some hundred thousand."""


def running(module: str, *words: str, obeying: bool = False) -> list[str]:
    """Return the command line of `python -m module words`.

    Args:
        obeying: the environment that the process will get is ours, so that Python may heed its variables.
    """
    flags = [flag for flag, set_ in (("-s", sys.flags.no_user_site), ("-B", sys.dont_write_bytecode)) if set_]
    return [sys.executable, *(() if obeying else ("-E", *flags)), "-c", BEGIN, module, *words]


def begin_anew(module: str, *words: str) -> None:
    """Put a process in the place of this one where PYTHONPATH has decided what it imported."""
    if os.environ.get("PYTHONPATH") and not sys.flags.ignore_environment:
        sys.stdout.flush()
        sys.stderr.flush()
        os.execv(sys.executable, running(module, *words))


def seldom_collect() -> None:
    """Let a process that loads much and ends soon look for garbage seldom, and not at its end.

    Looking for it among the modules of torch takes a sixth of a command's own time, and half a second once more at the end.
    """
    gc.set_threshold(_BETWEEN_COLLECTIONS)
    atexit.register(gc.freeze)
