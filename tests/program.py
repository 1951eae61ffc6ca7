"""Run `python WORDS` as a process of its own; where the process does not matter, `tests.calling` is quicker."""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def python(*words: object, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run it with an empty standard input and return what it said, as text; pytest's clock is the only limit."""
    line = [sys.executable, *map(str, words)]
    return subprocess.run(line, cwd=cwd, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)


class _Warm:
    """A process that has a module loaded (`tests.warm`); one for each process of the tests, started by the first call."""

    def __init__(self, module: str) -> None:
        command = [sys.executable, "-m", "tests.warm", module]
        self._process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid, self.seconds = self._process.pid, 0.0
        atexit.register(self._process.communicate)

    def run(self, words: list[str], cwd: Path, env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        assert self._process.stdin is not None and self._process.stdout is not None
        with tempfile.NamedTemporaryFile() as out, tempfile.NamedTemporaryFile() as err:
            order = {"words": words, "cwd": str(cwd), "env": dict(env), "out": out.name, "err": err.name}
            self._process.stdin.write(json.dumps(order) + "\n")
            self._process.stdin.flush()
            answer = json.loads(self._process.stdout.readline())
            self.seconds = answer["seconds"]
            said = [Path(file.name).read_text() for file in (out, err)]
        return subprocess.CompletedProcess(words, answer["code"], *said)


_warm: dict[str, _Warm] = {}


def warm_pids() -> set[int]:
    """Return the processes that the tests themselves keep: a test that leaves nothing running may have started one."""
    return {one.pid for one in _warm.values()}


def _forked(
    module: str, words: tuple[object, ...], cwd: Path | None, env: Mapping[str, str] | None
) -> subprocess.CompletedProcess[str]:
    if module not in _warm:
        _warm[module] = _Warm(module)
    return _warm[module].run([str(word) for word in words], cwd or Path.cwd(), os.environ if env is None else env)


def with_torch(*words: object, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Do as `python(*words)` in a fork of a process that has torch loaded: `-m MODULE ...`, `-c CODE ...` or `FILE ...`.

    The fork has the module path of that process: PYTHONPATH and flags of the interpreter do not count.
    """
    return _forked("torch", words, cwd, env)


def with_commands(
    *words: object, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Do the same with `pypto_op.cli` loaded, and nothing that a command loads: neither torch nor pypto."""
    return _forked("pypto_op.cli", words, cwd, env)


def spent() -> float:
    """Return the processor seconds of these forks; the processes that they come from are waited for at the end only."""
    return sum(warm.seconds for warm in _warm.values())
