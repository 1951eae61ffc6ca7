"""Runs the tests of public files, under the host shim: one request on each line of standard input, each in a fork.

A request is JSON: `folder` (a copy of where the files lie), `module` (name of the kernel's file without suffix), `text` (what is
to stand for that file), `test_file` (empty: the kernel's own), `tests` (names of functions, such as "main"). The answer is a line
with `ok` and `why`. Torch and pypto are loaded once.
"""

from __future__ import annotations

import inspect
import json
import os
import resource
import signal
import sys
import time
import types
from pathlib import Path
from typing import Any

import pypto  # noqa: F401  # under the shim this makes the process a simulator, before it forks
import torch

SECONDS = 120
"""Of processor time for the tests of one kernel; on the clock eight times as much."""


def main() -> None:
    """Serve until standard input ends."""
    os.environ.setdefault("TILE_FWK_DEVICE_ID", "0")
    sys.argv = sys.argv[:1]  # the public files read them
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        print(json.dumps(_forked(json.loads(line))), file=answers, flush=True)


def _forked(request: dict[str, Any]) -> dict[str, Any]:
    reader, writer = os.pipe()
    child, began = os.fork(), time.monotonic()
    if not child:
        _child(request, writer)
    os.close(writer)
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        if time.monotonic() - began > 8 * SECONDS:
            os.killpg(child, signal.SIGKILL)
        time.sleep(0.02)
    with os.fdopen(reader, "rb") as pipe:
        said = pipe.read()
    return dict(json.loads(said)) if said else {"ok": False, "why": "its process died"}


def _child(request: dict[str, Any], writer: int) -> None:
    """Run the tests in this process, and end it."""
    os.setsid()
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    answer = {"ok": True, "why": ""}
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    os.dup2(silent, 2)
    try:
        _run(request)
    except BaseException as error:
        answer = {"ok": False, "why": f"{type(error).__name__}: {error}"[:300]}
    os.write(writer, json.dumps(answer).encode())
    os._exit(0)


def _run(request: dict[str, Any]) -> None:
    folder = Path(request["folder"])
    os.chdir(folder)
    sys.path.insert(0, str(folder))
    path = folder / f"{request['module']}.py"
    path.write_text(request["text"], encoding="utf-8")  # the front end reads a kernel's source from its file
    kernel = _loaded(request["module"], path)
    scope = _loaded("own_test", folder / request["test_file"]) if request["test_file"] else kernel
    for name in request["tests"]:
        torch.manual_seed(0)
        test = getattr(scope, name)
        test(**({"device_id": 0} if "device_id" in inspect.signature(test).parameters else {}))


def _loaded(name: str, path: Path) -> types.ModuleType:
    module = types.ModuleType(name)
    module.__file__ = str(path)
    sys.modules[name] = module
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec", dont_inherit=True), module.__dict__)  # noqa: S102
    return module


if __name__ == "__main__":
    main()
