"""The process above one command: it adopts what the command leaves behind, and ends all of it.

Started as a file, by a bare Python, before every command of an agent: it imports the standard library and three small modules.
A process that leaves its group, its session or its parent comes here all the same, since the kernel hands the orphans of a
sub-reaper's tree to the sub-reaper.
"""

from __future__ import annotations

import os
import select
import sys

if __name__ == "__main__":  # a bare Python knows no site-packages
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))  # noqa: PTH100, PTH120

from pypto_op.backends import processes
from pypto_op.backends.worker import linux
from pypto_op.runner import view


def main(pipe: int, began: int, narrow: bool, command: list[str]) -> int:
    """Run `command` until it ends or until nobody can write to `pipe` any more; return its exit status as a shell says it.

    Args:
        pipe: held open by the caller.
        began: a pipe to the caller; it is closed when the command begins.
        narrow: whether most of the disk is read-only for the command (`view.narrow`), where the machine allows that.
        command: the program and its arguments.
    """
    linux.adopt_orphans()
    if narrow:
        view.narrow(os.getcwd(), os.environ)  # noqa: PTH109
    os.set_inheritable(began, False)
    child = os.fork()
    if child == 0:
        os.close(pipe)
        try:
            os.execvp(command[0], command)
        except OSError as error:
            os.write(2, f"{command[0]}: {error.strerror}\n".encode())
            os._exit(127)
    os.close(began)
    code = _status_of(child, pipe)
    processes.kill_below()
    return code


def _status_of(child: int, pipe: int) -> int:
    """Return how `child` ended; 137 when the caller let go of the pipe before that."""
    handle = os.pidfd_open(child)
    ready, _, _ = select.select([handle, pipe], [], [])
    if handle not in ready:
        return 137
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    os._exit(main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "narrow", sys.argv[4:]))
