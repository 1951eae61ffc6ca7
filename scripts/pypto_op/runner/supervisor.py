"""The process above one command: it adopts what the command leaves behind, and ends all of it.

Started as a file, by a bare Python, before every command of an agent: it imports the standard library and four small modules.
Where the machine allows it, the command has name spaces of its own (`apart`). A process that leaves its group, its session or its
parent comes here all the same, since the kernel hands the orphans of a sub-reaper's tree to the sub-reaper.
"""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":  # a bare Python knows no site-packages
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))  # noqa: PTH100, PTH120

from pypto_op.backends import processes
from pypto_op.backends.worker import linux
from pypto_op.runner import apart, view

ASKS = "allowed"
"""The one word of a call that asks whether a command can be alone here."""


def main(pipe: int, began: int, alone: bool, narrow: bool, hidden: list[str], command: list[str]) -> int:
    """Run `command` until it ends or until nobody can write to `pipe` any more; return its exit status as a shell says it.

    Args:
        pipe: held open by the caller.
        began: a pipe to the caller; it is closed when the command begins.
        alone: whether it sees no process but its own (`apart`); the machine allows that.
        narrow: whether most of the disk is read-only for the command (`view.narrow`), where the machine allows that.
        hidden: folders that it does not see, where the machine allows that.
    """

    def work() -> int:
        return _run(pipe, began, narrow and mounts, hidden if mounts else [], command)

    linux.adopt_orphans()
    os.set_inheritable(began, False)
    mounts = (alone or narrow) and apart.own_mounts()
    code = apart.own_processes(work, pipe, began) if mounts and alone else work()
    processes.kill_below()
    return code


def _run(pipe: int, began: int, narrow: bool, hidden: list[str], command: list[str]) -> int:
    """Run the command below this process, and end with it what it leaves behind."""
    linux.adopt_orphans()
    if narrow:
        view.narrow(os.getcwd(), os.environ, hidden)  # noqa: PTH109
    else:
        view.hide(hidden)
    child = os.fork()
    if child == 0:
        os.close(pipe)
        try:
            os.execvp(command[0], command)
        except OSError as error:
            os.write(2, f"{command[0]}: {error.strerror}\n".encode())
            os._exit(127)
    os.close(began)
    code = apart.ended(child, pipe)
    processes.kill_below()
    return code


if __name__ == "__main__":
    if sys.argv[1:] == [ASKS]:
        os._exit(0 if apart.allowed() else 1)
    how = sys.argv[3].split(",")
    first = 5 + int(sys.argv[4])
    os._exit(main(int(sys.argv[1]), int(sys.argv[2]), "alone" in how, "narrow" in how, sys.argv[5:first], sys.argv[first:]))
