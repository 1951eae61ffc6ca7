"""Who does a pool's jobs, called a hand: a thread of this process, or a process at the other end of a channel."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any, Protocol

from pypto_op.errors import InfraError
from pypto_op.pool import servant
from pypto_op.pool.crew import HandLost
from pypto_op.pool.work import Errand, Say, about

STARTUP_SECONDS = 600.0
"""How long a bench may take to be set up without a word: torch and pypto are imported, on a machine that may be busy."""
_MOST_STARTS = 3
_MOST_SILENCES = 2
"""Leases that a hand may let expire before its device is given up."""


class Channel(Protocol):
    """The way to a servant that was started for one hand."""

    def say(self, what: str, data: bytes) -> None:
        """Send; what cannot be sent is heard of as LOST."""

    def heard(self) -> SimpleQueue[tuple[str, bytes]]:
        """Return where its answers arrive."""

    def kill(self) -> None:
        """End the servant and all that it started; harmless when called twice."""


class Here:
    """A thread of this process: a slot of this machine's cores."""

    up = True
    """A thread needs no start."""
    shares = "this machine"

    def __init__(self, number: int, errand: Errand) -> None:
        self.name, self._errand = f"slot {number}", errand

    def start(self) -> None:
        """Nothing is to be done."""

    def do(self, payload: Any, say: Say) -> Any:
        """Do one job on the errand's own bench."""
        return self._errand.here(payload, say)

    def again(self) -> bool:
        """Never asked: a thread is not lost."""
        return False

    def end(self) -> None:
        """End what the thread waits for."""
        self._errand.stop()


class Away:
    """A servant in another process, perhaps on another host.

    Args:
        shares: see `crew.Hand`.
        connect: starts a servant and returns the way to it, without waiting; raises HandLost.
        work: pickled `Work`.
        silence: seconds without a word after which a job's lease has expired: the servant is ended, the job goes elsewhere.
        greet: takes what the bench says of its machine.
    """

    def __init__(
        self,
        name: str,
        shares: str,
        connect: Callable[[], Channel],
        work: bytes,
        silence: float,
        greet: Callable[[Any], None] = lambda hello: None,
    ) -> None:
        self.name, self.shares = name, shares
        self._connect, self._work, self._silence, self._greet = connect, work, silence, greet
        self._channel: Channel | None = None
        self._starts = self._silences = 0
        self._up, self._ended = False, threading.Event()

    @property
    def up(self) -> bool:
        """Whether its bench is set up."""
        return self._up

    def start(self) -> None:
        """Start a servant, compare versions, and set up its bench."""
        if self._ended.is_set():
            raise HandLost("it was ended")
        self._starts += 1
        self._channel = self._connect()
        if self._ended.is_set():
            self._drop()
            raise HandLost("it was ended")
        self._compare(pickle.loads(self._answer(servant.READY, None)))
        self._channel.say("open", self._work)
        self._greet(pickle.loads(self._answer(servant.OPENED, STARTUP_SECONDS)))
        self._up = True

    def do(self, payload: Any, say: Say) -> Any:
        """Do one job; each word renews its lease."""
        assert self._channel is not None
        self._channel.say("do", pickle.dumps(payload))
        return pickle.loads(self._answer(servant.DONE, self._silence, say))

    def again(self) -> bool:
        """Whether it may be started once more: a host that was lost may come back, a device that hangs does not."""
        return not self._ended.is_set() and self._starts < _MOST_STARTS and self._silences < _MOST_SILENCES

    def end(self) -> None:
        """End the servant; the thread that waits for it hears that it is lost."""
        self._ended.set()
        if (channel := self._channel) is not None:
            channel.kill()
            channel.heard().put((servant.LOST, b"it was ended"))

    def _answer(self, wanted: str, seconds: float | None, say: Say = lambda word: None) -> bytes:
        channel = self._channel
        assert channel is not None
        while True:
            try:
                what, data = channel.heard().get(timeout=seconds)
            except Empty:
                self._silences += 1
                self._drop()
                raise HandLost(f"no sign of life for {seconds:g} s, so its lease has expired") from None
            if what == servant.WORD:
                say(pickle.loads(data))
            elif what == wanted:
                return data
            elif what == servant.FAILED:
                raise pickle.loads(data)
            elif what == servant.LOST:
                self._drop()
                raise HandLost(data.decode(errors="replace"))

    def _drop(self) -> None:
        channel, self._channel, self._up = self._channel, None, False
        if channel is not None:
            channel.kill()

    def _compare(self, there: dict[str, str]) -> None:
        """Refuse a worker that might give other results."""
        here = about()
        other = [f"{name} {there.get(name, 'none')} (here {here[name]})" for name in here if there.get(name) != here[name]]
        if other:
            raise InfraError(
                f"{self.name} of the pool has another version: {', '.join(other)}",
                remedy="install the same versions on every host",
            )
