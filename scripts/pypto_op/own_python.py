"""The command that runs a module of this bundle in another process, with nothing of the current folder on Python's path.

`python -m` looks into the folder where it is started before anything else, and that is often an agent's workspace: a `json.py`
there would run in the process that decides. Python 3.11 has `-P` against that; 3.10 has not.
"""

from __future__ import annotations

import sys

BEGIN = (
    "import os, sys; sys.path[:] = [place for place in sys.path if place and place != os.getcwd()]; import runpy; "
    "runpy.run_module(sys.argv.pop(1), run_name='__main__', alter_sys=True)"
)
"""`os` and `sys` are loaded when Python starts. Then the current folder goes off the path: the empty entry that `-c` makes, and
what an empty part of PYTHONPATH has become."""


def running(module: str, *words: str) -> list[str]:
    """Return the command line of `python -m module words`."""
    return [sys.executable, "-c", BEGIN, module, *words]
