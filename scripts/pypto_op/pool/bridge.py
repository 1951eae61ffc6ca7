"""The process that speaks Ray for a pool: `python -m pypto_op.pool.bridge DESCRIPTOR DOCUMENT`.

One actor for each worker, on a device or a core of its own (`num_cpus`, or the resource `NPU`). Ray never starts an actor anew:
the pool does, so that it knows which job was lost.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import pickle
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from queue import SimpleQueue
from typing import Any

from pypto_op.pool import servant
from pypto_op.pool.devices import DEVICE_ENV
from pypto_op.pool.line import Line
from pypto_op.pool.work import about

_HEAD_PAUSE, _HEAD_MISSES = 2.0, 5
"""The head is asked so often whether it still listens, and is lost after so many times without an answer."""


class Worker:
    """The actor: a servant, on its host."""

    def __init__(self, npu: bool) -> None:
        if npu:  # Ray has set which device is visible; it is the first of those
            os.environ[DEVICE_ENV] = "0"
        self._servant = servant.Servant()

    def about(self) -> bytes:
        """Return what two processes must have in common."""
        return pickle.dumps(about())

    def open(self, work: bytes) -> servant.Answer:
        """Set up a bench."""
        return self._servant.open(work)

    def do(self, payload: bytes) -> Iterator[servant.Answer]:
        """Do one job."""
        yield from self._servant.do(payload)


class _Bridge:
    """Actors by number, each with a thread that takes its messages in turn.

    Args:
        labels: what a host must be labelled with.
    """

    def __init__(self, ray: Any, line: Line, labels: dict[str, str]) -> None:
        self._ray, self._line, self._labels = ray, line, labels
        self._actors: dict[int, Any] = {}
        self._inboxes: dict[int, SimpleQueue[tuple[str, bytes]]] = {}
        self._works: dict[bytes, Any] = {}

    def serve(self) -> None:
        """Take messages until the pool hangs up."""
        with contextlib.suppress(EOFError, OSError):
            while True:
                number, what, data = self._line.hear()
                if what == "kill":
                    self._kill(number)
                    continue
                if what == "start":
                    self._inboxes[number] = SimpleQueue()
                    threading.Thread(target=self._attend, args=(number,), daemon=True).start()
                self._inboxes[number].put((what, data))

    def _kill(self, number: int) -> None:
        actor = self._actors.pop(number, None)
        if actor is not None:
            with contextlib.suppress(Exception):
                self._ray.kill(actor)

    def _attend(self, number: int) -> None:
        """Do for one actor what the pool says; whatever Ray raises means that it is lost."""
        inbox = self._inboxes[number]
        try:
            while True:
                what, data = inbox.get()
                if what == "start":
                    self._start(number, data == b"NPU")
                elif what == "open":
                    self._say(number, *self._ray.get(self._actors[number].open.remote(self._kept(data))))
                else:
                    for reference in self._actors[number].do.options(num_returns="streaming").remote(data):
                        self._say(number, *self._ray.get(reference))
        except KeyError:
            self._say(number, servant.LOST, b"it was ended")
        except Exception as error:
            self._actors.pop(number, None)
            self._say(number, servant.LOST, _in_words(error).encode())

    def _start(self, number: int, npu: bool) -> None:
        wants: dict[str, Any] = {"num_cpus": 0, "resources": {"NPU": 1}} if npu else {"num_cpus": 1}
        if self._labels:
            wants["label_selector"] = self._labels
        actor = self._ray.remote(max_restarts=0, max_task_retries=0, **wants)(Worker).remote(npu)
        self._actors[number] = actor
        self._say(number, servant.READY, self._ray.get(actor.about.remote()))

    def _kept(self, work: bytes) -> Any:
        """Return the work as an object of the cluster: it travels once to each host."""
        if work not in self._works:
            self._works = {work: self._ray.put(work)}
        return self._works[work]

    def _say(self, number: int, what: str, data: bytes) -> None:
        with contextlib.suppress(OSError):
            self._line.say(number, what, data)


def _in_words(error: Exception) -> str:
    """Return one line of what Ray says of a lost actor."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if any("No module named 'pypto_op'" in line for line in lines):
        return "pypto-op is not installed on its host"
    told = [line for line in lines if not line.startswith(("class_name", "actor_id", "pid", "namespace", "ip"))]
    return f"{type(error).__name__}: {' '.join(told[-2:])}"[:300]


def _join(document: dict[str, Any]) -> Any:
    """Return the module, with this process in the cluster."""
    import ray

    options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR, "include_dashboard": None}
    if document["host"]:
        ray.init(address=document["head"], **options)
    else:
        options["include_dashboard"] = False
        ray.init(address="local", num_cpus=document["size"], _node_ip_address="127.0.0.1", **options)
    return ray


def _lacks_token(error: BaseException | None) -> bool:
    """Whether Ray says somewhere in the chain of an error that its token is missing or wrong."""
    while error is not None:
        if type(error).__name__ == "AuthenticationError" or "InvalidAuthToken" in str(error):
            return True
        error = error.__cause__ or error.__context__
    return False


def _room(ray: Any, labels: dict[str, str]) -> dict[str, float]:
    """Return what the living hosts with these labels have together: cores and devices."""
    room = {"CPU": 0.0, "NPU": 0.0}
    for node in ray.nodes():
        if node["Alive"] and all(node.get("Labels", {}).get(key) == value for key, value in labels.items()):
            for kind in room:
                room[kind] += node["Resources"].get(kind, 0.0)
    return room


def _watch(head: str, line: Line) -> None:
    """End this process when nobody listens at the head any more; Ray itself notices after minutes, and not everywhere."""
    host, _, port = head.rpartition(":")
    misses = 0
    while misses < _HEAD_MISSES:
        time.sleep(_HEAD_PAUSE)
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=_HEAD_PAUSE).close()
            misses = 0
        except OSError:
            misses += 1
    with contextlib.suppress(OSError):
        line.say(None, "lost", "nobody listens at its head any more")
    os._exit(1)


def main(arguments: list[str]) -> int:
    """Join the cluster, tell what it has, and serve the pool."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the pool ends it
    descriptor, document = int(arguments[0]), json.loads(arguments[1])
    os.set_inheritable(descriptor, False)
    line = Line(socket.socket(fileno=descriptor))
    try:
        ray = _join(document)
        room = _room(ray, document["labels"])
    except Exception as error:
        line.say(
            None,
            "failed",
            servant.ASKS_FOR_TOKEN if _lacks_token(error) else " ".join(str(error).split())[:400] or type(error).__name__,
        )
        return 3
    line.say(None, "joined", room)
    if document["host"]:
        threading.Thread(target=_watch, args=(document["head"], line), daemon=True).start()
    _Bridge(ray, line, document["labels"]).serve()
    with contextlib.suppress(Exception):
        ray.shutdown()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
