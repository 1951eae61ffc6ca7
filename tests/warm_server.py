"""The process behind tests/warm.py: it has imported torch, and forks for every program that is asked for.

It runs no program itself and has one thread, so a fork of it is a fresh interpreter that knows torch already. What a
program does at its end (atexit, exit code, last words on standard error) is the interpreter's own.
"""

from __future__ import annotations

import gc
import json
import os
import runpy
import socket
import sys
from pathlib import Path
from typing import Any

_LONGEST_REQUEST = 256 * 1024


def serve(control: int) -> None:
    """Fork for every request until the other end closes; in a fork, run the program and return."""
    gc.disable()
    import torch  # noqa: F401  (what this process is for)

    gc.freeze()  # what is loaded is never garbage; to look for it would copy its pages in every fork
    gc.enable()
    channel = socket.socket(fileno=control)
    while True:
        data, descriptors, _, _ = socket.recv_fds(channel, _LONGEST_REQUEST, 3)
        if not data:
            os._exit(0)
        child = os.fork()
        if child == 0:
            channel.close()
            _become(json.loads(data), descriptors)
            return
        for descriptor in descriptors:
            os.close(descriptor)
        channel.send(json.dumps({"pid": child}).encode())
        _, status, used = os.wait4(child, 0)
        answer = {"code": os.waitstatus_to_exitcode(status), "seconds": used.ru_utime + used.ru_stime}
        channel.send(json.dumps(answer).encode())


def _become(request: dict[str, Any], descriptors: list[int]) -> None:
    """Turn this fork into `python WORDS`, with its streams, folder and environment."""
    for standard, descriptor in enumerate(descriptors):
        os.dup2(descriptor, standard)
        os.close(descriptor)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    first, *rest = request["words"]
    if first == "-m":
        sys.argv, sys.path[0] = rest, request["cwd"]
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
        return
    main = sys.modules["__main__"].__dict__
    main.clear()
    main.update({"__name__": "__main__", "__builtins__": __builtins__})
    if first == "-c":
        sys.argv, sys.path[0], source, name = ["-c", *rest[1:]], "", rest[0], "<string>"
    else:
        file = Path(first)
        sys.argv, sys.path[0], name = [first, *rest], str(file.resolve().parent), first
        main["__file__"] = str(file.absolute())
        source = file.read_text(encoding="utf-8")
    exec(compile(source, name, "exec", dont_inherit=True), main)
