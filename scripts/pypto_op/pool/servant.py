"""Does jobs in a process of its own for a pool, one after another, on one set-up.

Run as a program it serves one pool on the socket that it is given: `python -m pypto_op.pool.servant DESCRIPTOR`. Under Ray the
actor holds it (`bridge`).
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import socket
import sys
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue

from pypto_op.errors import PyptoOpError
from pypto_op.pool.line import Line
from pypto_op.pool.work import Bench, Work, about

READY, OPENED, WORD, DONE, FAILED, LOST = "ready", "opened", "word", "done", "failed", "lost"
"""What a hand hears: `READY about`, then `OPENED hello`, then for each job any number of `WORD value` and one `DONE value`.
`FAILED error` ends the caller's run; `LOST why` ends the hand."""
ASKS_FOR_TOKEN = "it asks for Ray's token, and got none or another one"
"""Why a cluster cannot be joined; the pool tries again with the token that lies here."""

Answer = tuple[str, bytes]
"""What happened, and a pickled value."""


class Servant:
    """Does what it is told, in this process."""

    def __init__(self) -> None:
        self._stack = contextlib.ExitStack()
        self._bench: Bench | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="job")  # one, as a slot is: what a bench keeps for it stays

    def open(self, work: bytes) -> Answer:
        """Set up a bench in the place of an earlier one."""
        self.close()
        try:
            made: Work = pickle.loads(work)
            self._bench = self._stack.enter_context(made.open())
            return OPENED, pickle.dumps(self._bench.hello)
        except Exception as error:
            return FAILED, failure(error)

    def do(self, payload: bytes) -> Iterator[Answer]:
        """Do one job: yield its words as they come, and its end."""
        said: SimpleQueue[Answer] = SimpleQueue()
        bench = self._bench
        assert bench is not None

        def work() -> None:
            try:
                value = bench.do(pickle.loads(payload), lambda word: said.put((WORD, pickle.dumps(word))))
                said.put((DONE, pickle.dumps(value)))
            except Exception as error:
                said.put((FAILED, failure(error)))

        self._thread.submit(work)
        while True:
            answer = said.get()
            yield answer
            if answer[0] in (DONE, FAILED):
                return

    def close(self) -> None:
        """End the bench."""
        self._bench = None
        stack, self._stack = self._stack, contextlib.ExitStack()
        stack.close()


def failure(error: Exception) -> bytes:
    """Return an error as it travels: a user's as it is, any other with its traceback in words."""
    if isinstance(error, PyptoOpError):
        return pickle.dumps(error)
    return pickle.dumps(RuntimeError("".join(traceback.format_exception(error)).strip()))


def _serve(line: Line) -> None:
    """Answer one pool until it hangs up."""
    servant = Servant()
    line.say(READY, pickle.dumps(about()))
    with contextlib.suppress(EOFError, OSError):
        while True:
            what, data = line.hear()
            if what == "open":
                line.say(*servant.open(data))
            else:
                for answer in servant.do(data):
                    line.say(*answer)
    servant.close()


def main(arguments: list[str]) -> int:
    """Serve the socket whose descriptor is the first argument; ends with the process that started it."""
    os.setsid()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the pool ends it
    descriptor = int(arguments[0])
    os.set_inheritable(descriptor, False)
    _serve(Line(socket.socket(fileno=descriptor)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
