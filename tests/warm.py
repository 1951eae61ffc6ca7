"""A process that has a module loaded and runs each program in a fork of itself: a program costs its own work, and no import.

`tests.program` starts it with the module's name. Each line of its standard input is an order, each line of its standard output
the answer. It has one thread when it forks, and a program changes nothing for the next one.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import runpy
import sys
import traceback
from pathlib import Path
from typing import Any, NoReturn


def main() -> None:
    """Serve orders until the other side hangs up."""
    importlib.import_module(sys.argv[1])
    gc.freeze()
    answers = os.fdopen(os.dup(1), "w")
    for line in sys.stdin:
        order = json.loads(line)
        child = os.fork()
        if child == 0:
            run(order)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        answers.write(json.dumps({"code": code, "seconds": sum(os.times()[:4])}) + "\n")
        answers.flush()


def run(order: dict[str, Any]) -> NoReturn:
    """Become `python WORDS`, with the streams, folder and environment of the order."""
    code = 1
    try:
        for stream, path in enumerate((os.devnull, order["out"], order["err"])):
            descriptor = os.open(path, os.O_RDWR)
            os.dup2(descriptor, stream)
            os.close(descriptor)
        os.chdir(order["cwd"])
        os.environ.clear()
        os.environ.update(order["env"])
        sys.stdin = open(0, closefd=False)  # noqa: SIM115
        code = _ended(order["words"])
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


def _ended(words: list[str]) -> int:
    """Run the program; return the exit code that the interpreter would end with."""
    try:
        if words[0] == "-m":
            sys.argv, sys.path[0] = words[1:], str(Path.cwd())
            runpy.run_module(words[1], run_name="__main__", alter_sys=True)
        elif words[0] == "-c":
            sys.argv, sys.path[0] = ["-c", *words[2:]], str(Path.cwd())
            exec(compile(words[1], "<string>", "exec"), {"__name__": "__main__"})
        else:
            sys.argv, sys.path[0] = words, str(Path(words[0]).resolve().parent)
            runpy.run_path(words[0], run_name="__main__")
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
            return 1
        return end.code if isinstance(end.code, int) else 0
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


if __name__ == "__main__":
    main()
