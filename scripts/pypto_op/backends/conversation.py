"""The judge's side of one worker: waits for its messages while it watches time, memory and output."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import time
from dataclasses import dataclass
from typing import Any

from pypto_op.backends import processes
from pypto_op.backends.base import Limits
from pypto_op.backends.capture import Capture
from pypto_op.backends.launcher import Launched

_MIB = 1024 * 1024
_WORN_MB = 2048
"""Address space beyond its memory that a worker may gather; a last resort, since launches are counted besides."""
_LOOK_SECONDS = 0.05
_GRACE_SECONDS = 3.0
_ANSWER_SECONDS = 2.0
_QUIET_SECONDS = 0.2
_STACK = "(most recent call first)"
_LONGEST_MESSAGE = 64 * 1024
_STARVED = 9
"""A worker that gets a tenth of a core is still waited for."""


@dataclass
class Ended(Exception):
    """The worker ended, or was ended by its own doing."""

    how: dict[str, int]  # what the warden reported: {"exit": code} or {"signal": number}; empty when it could not


class Overdue(Exception):
    """The worker took longer than it may."""


class OverMemory(Exception):
    """The worker's processes hold more memory than they may."""


@dataclass(frozen=True)
class Clock:
    """How long an exchange may take."""

    seconds: float  # without the time in which the worker waits for a core
    begun: float  # when it began (`time.monotonic`)
    waited: float  # how long the worker had waited for a core by then

    def deadline(self, waited: float) -> float:
        """Return when the exchange takes too long, for a worker that has waited so long for a core by now."""
        return self.begun + self.seconds + min(waited - self.waited, _STARVED * self.seconds)


class Conversation:
    """One worker, from start to end."""

    def __init__(self, launched: Launched, limits: Limits) -> None:
        self._launched, self._limits = launched, limits
        self.stdout = Capture(launched.stdout, limits.output_bytes)
        self.stderr = Capture(launched.stderr, limits.output_bytes)
        self._how: dict[str, int] | None = None
        self._channel_open = True
        self._peak = 0

    @property
    def peak_rss_mb(self) -> float:
        """Highest resident memory of the worker and all below it, seen so far, in MiB."""
        worker = self._launched.worker()
        if worker is not None:
            self._peak = max(self._peak, processes.peak_bytes(worker))
        return self._peak / _MIB

    @property
    def pid(self) -> int:
        """Of the process that holds the worker and all that it starts."""
        return self._launched.warden

    def say(self, message: dict[str, Any]) -> None:
        """Send a message; raise Ended when nobody is there to hear it."""
        try:
            self._launched.channel.send(json.dumps(message).encode())
        except OSError:
            raise Ended(self._wait_for_report()) from None

    def begin(self, seconds: float) -> Clock:
        """Return the clock of an exchange that may take `seconds`, however many messages it has."""
        return Clock(seconds, time.monotonic(), self._waiting_seconds())

    def hear(self, clock: Clock) -> dict[str, Any]:
        """Return the worker's next message.

        Args:
            clock: says when the exchange takes too long. Time in which the worker waited for a core is not counted, up to
                `_STARVED` times as much: on a busy machine a right kernel takes longer, and is no worse for it.

        Raises:
            Ended, Overdue, OverMemory: there will be none.
        """
        looked, deadline = 0.0, clock.deadline(clock.waited)
        while True:
            now = time.monotonic()
            message = self._look(max(0.0, min(_LOOK_SECONDS, deadline - now)))
            if message is not None:
                return message
            if self._how is not None or not self._channel_open:
                raise Ended(self._wait_for_report())
            now = time.monotonic()
            if now >= deadline:
                deadline = clock.deadline(self._waiting_seconds())
                if now >= deadline:
                    raise Overdue
            if now - looked >= _LOOK_SECONDS:
                looked = now
                self._watch_memory()

    def worn(self) -> bool:
        """Whether the worker has gathered so much memory that pypto does not give back that it should be replaced."""
        worker = self._launched.worker()
        if worker is None:
            return True
        held = processes.resident_bytes(worker)
        memory = self._limits.memory_mb
        return processes.data_bytes(worker) > (memory + _WORN_MB) * _MIB or 2 * held > memory * _MIB

    def stack(self) -> str:
        """Ask the worker where it is (`worker.crashes`); return its standard error, which the answer is a part of."""
        worker = self._launched.worker()
        if worker is None:
            return ""
        with contextlib.suppress(ProcessLookupError):
            os.kill(worker, signal.SIGUSR1)
        told, deadline = "", time.monotonic() + _ANSWER_SECONDS
        while self._how is None and time.monotonic() < deadline:
            self._look(_QUIET_SECONDS)
            before, told = told, self.stderr.peek()
            if _STACK in told and told == before:  # frames come one by one
                break
        return told

    def end_strays(self) -> None:
        """End what a case left running below the worker."""
        worker = self._launched.worker()
        for child in processes.children_of(worker) if worker is not None else []:
            processes.kill_tree(child)

    def end(self) -> None:
        """End the worker and everything below it."""
        self.stdout.pump()
        self.stderr.pump()
        self._launched.end()

    def _look(self, seconds: float) -> dict[str, Any] | None:
        """Wait until something arrives; read output and report, and return a message if there is one."""
        sources: list[Any] = [stream for stream in (self.stdout, self.stderr) if stream.open]
        if self._channel_open:
            sources.append(self._launched.channel)
        if self._how is None:
            sources.append(self._launched.report)
        try:
            ready = select.select(sources, [], [], seconds)[0]
        except (ValueError, OSError):  # closed by another thread that gave this session up
            self._channel_open, self._how = False, self._how or {}
            return None
        for stream in (self.stdout, self.stderr):
            if stream in ready:
                stream.pump()
        message = self._read_channel() if self._launched.channel in ready else None
        if message is None and self._launched.report in ready:
            self._read_report()
        return message

    def _read_channel(self) -> dict[str, Any] | None:
        try:
            data = self._launched.channel.recv(_LONGEST_MESSAGE)
            message = json.loads(data) if data else None
        except (OSError, ValueError):
            message = None
        if not isinstance(message, dict):
            self._channel_open = False
            return None
        return message

    def _read_report(self) -> None:
        try:
            data = os.read(self._launched.report, 1024)
        except BlockingIOError:
            return
        try:
            how = json.loads(data)
        except ValueError:
            how = {}  # the warden itself was killed
        self._how = how if isinstance(how, dict) else {}

    def _wait_for_report(self) -> dict[str, int]:
        """Return how the worker ended; one that only hung up is given a moment, then nothing is known of it."""
        deadline = time.monotonic() + _GRACE_SECONDS
        while self._how is None and time.monotonic() < deadline:
            self._look(_LOOK_SECONDS)
        return self._how or {}

    def _waiting_seconds(self) -> float:
        """Return how long the worker's processes waited for a core, the one that waited longest."""
        return max(map(processes.waiting_seconds, processes.tree_below(self._launched.warden)), default=0.0)

    def _watch_memory(self) -> None:
        below = processes.tree_below(self._launched.warden)
        if self._launched.enclosed:
            below = below[1:]
        held = sum(processes.resident_bytes(process) for process in below)
        if held > self._limits.memory_mb * _MIB:  # a fork counts twice there; the exact figure takes longer to get
            held = sum(processes.shared_out_bytes(process) for process in below)
        self._peak = max(self._peak, held)
        if held > self._limits.memory_mb * _MIB:
            raise OverMemory
