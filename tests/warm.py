"""Run `python WORDS` as a process of its own that need not import torch: three processor seconds less each time.

Only for programs that import torch anyway. Use `subprocess` where a test is about starting: what is imported, flags of
the interpreter. Use `tests.calling` where the process does not matter.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

_ROOT = Path(__file__).resolve().parents[1]
_LONGEST_ANSWER = 4096
_READ_AT_START = ("PYTHON", "TORCH", "LD_", "OMP_", "MKL_", "OPENBLAS_")
"""Beginnings of names that an interpreter, a loader or torch reads once: where they differ, a fresh process is needed."""


def python(
    *words: object, cwd: Path | None = None, env: Mapping[str, str] | None = None, seconds: float | None = None
) -> subprocess.CompletedProcess[str]:
    """Run `python WORDS`, standard input empty, and return what `subprocess.run(..., text=True)` would.

    Raises:
        subprocess.TimeoutExpired: the program runs longer than `seconds`; it is ended. Without `seconds` pytest's clock counts.
    """
    said = [str(word) for word in words]
    wanted = dict(os.environ if env is None else env)
    if _read_at_start(wanted) != _server().started_with:
        return _fresh(said, cwd, wanted, seconds)
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, Path(os.devnull).open("rb") as nothing:
        request = {"words": said, "cwd": str(cwd or Path.cwd()), "env": wanted}
        code = _server().run(request, (nothing, out, err), seconds)
        return subprocess.CompletedProcess([sys.executable, *said], code, _text(out), _text(err))


def _fresh(words: list[str], cwd: Path | None, env: dict[str, str], seconds: float | None) -> subprocess.CompletedProcess[str]:
    line, null = [sys.executable, *words], subprocess.DEVNULL
    return subprocess.run(line, cwd=cwd, env=env, stdin=null, capture_output=True, text=True, timeout=seconds, check=False)


def spent() -> float:
    """Return the processor seconds of the programs that have ended."""
    return sum(server.spent for server in _servers)


class _Server:
    """This side of the process that forks; it ends with this process."""

    def __init__(self) -> None:
        self.owner, self.spent = os.getpid(), 0.0
        self._channel, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.started_with = _read_at_start(os.environ)
        code = f"from tests.warm_server import serve; serve({far.fileno()})"
        null = subprocess.DEVNULL
        self._process = subprocess.Popen(
            [sys.executable, "-c", code], cwd=_ROOT, stdin=null, stdout=null, stderr=null, pass_fds=[far.fileno()]
        )
        far.close()

    def run(self, request: dict[str, Any], streams: tuple[IO[bytes], ...], seconds: float | None) -> int:
        child = 0
        try:
            socket.send_fds(self._channel, [json.dumps(request).encode()], [stream.fileno() for stream in streams])
            child = self._receive(None)["pid"]
            answer = self._receive(seconds)
        except BaseException as error:  # pytest's own time-out among them: the next program must not read this one's answer
            self._give_up(child)
            if isinstance(error, TimeoutError) and seconds is not None:
                raise subprocess.TimeoutExpired(request["words"], seconds) from None
            raise
        self.spent += answer["seconds"]
        return int(answer["code"])

    def _give_up(self, child: int) -> None:
        """End the program and this server; the next program starts another one."""
        if child:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        self._channel.close()
        self._process.kill()
        self._process.wait()
        self.owner = 0

    def _receive(self, seconds: float | None) -> dict[str, Any]:
        if not select.select([self._channel], [], [], seconds)[0]:
            raise TimeoutError(f"no answer within {seconds} s")
        data = self._channel.recv(_LONGEST_ANSWER)
        assert data, f"the warm process ended with {self._process.wait()}"
        answer: dict[str, Any] = json.loads(data)
        return answer


_servers: list[_Server] = []


def _server() -> _Server:
    if not _servers or _servers[-1].owner != os.getpid():
        _servers.append(_Server())
    return _servers[-1]


def _read_at_start(env: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if name.startswith(_READ_AT_START)}


def _text(stream: IO[bytes]) -> str:
    stream.seek(0)
    return stream.read().decode()
