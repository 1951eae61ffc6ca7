"""`python -m tests.state.killing FOLDER KILLS`: kill that many processes while they take steps of the operator in FOLDER.

A process of its own, because it is small: a fork of pytest copies the tables of half a gigabyte, a thousand times.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from pathlib import Path

from pypto_op.state import store
from pypto_op.state.service import transition
from pypto_op.workspace import OpWorkspace


def main() -> None:
    """Print how many steps the journal gained.

    Raises:
        AssertionError: a step that was acknowledged is not there, or more than one that was not.
    """
    ws, kills = OpWorkspace.at(Path(sys.argv[1])), int(sys.argv[2])
    transition(ws.root, "dispatch", role="verifier")  # what a process looks up once, the children need not
    start = acknowledged = store.load(ws).tail.seq
    rng = random.Random(7)
    span = 0.012  # seconds within which a kill falls; it follows the machine, so that about one step is done by then
    for _ in range(kills):
        steps = _killed(ws, rng.uniform(0.0, span))
        span = min(span * 1.1, 1.0) if not steps else max(span / 1.1, 0.001) if steps > 1 else span
        seq = store.load(ws).tail.seq
        assert acknowledged + steps <= seq <= acknowledged + steps + 1, "acknowledged steps are there, at most one more"
        acknowledged = seq
    print(acknowledged - start)


def _killed(ws: OpWorkspace, seconds: float) -> int:
    """Let a process take steps, kill it after `seconds`; return how many it had been told of."""
    reader, writer = os.pipe()
    pid = os.fork()
    if not pid:
        _steps(ws, writer)
    os.close(writer)
    time.sleep(seconds)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    steps = len(os.read(reader, 100000))
    os.close(reader)
    return steps


def _steps(ws: OpWorkspace, pipe: int) -> None:
    """Never returns."""
    code = 1
    try:
        for number in range(1000):
            # A step that freezes and thaws the plan, so that the plan file is in the game too.
            transition(ws.root, "dispatch", role="designer" if number % 2 else "verifier")
            os.write(pipe, b".")
        code = 0
    finally:
        os._exit(code)


if __name__ == "__main__":
    main()
