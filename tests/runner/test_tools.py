"""What a call of a file tool may not reach, for its work is done by the runner: processes, and what is no file."""

from __future__ import annotations

import os
import socket
import stat
from pathlib import Path

import pytest
from tests.calling import command
from tests.runner.running import KEY, Running, calls, says
from tests.telling import told_lines

from pypto_op.runner import journal


@pytest.mark.parametrize("way", ["/proc/self/environ", "linked"])
def test_no_tool_shows_the_runners_environment(running: Running, way: str) -> None:
    """What started the run may hold another service's token, and the tools' process is that very one."""
    (running.workspace / "linked").symlink_to("/proc/self/environ")
    (running.workspace / "folder").symlink_to("/proc/self")
    tools = [
        ("Read", {"file_path": way}),
        ("Grep", {"pattern": "PATH", "path": way}),
        ("Grep", {"pattern": "PATH", "glob": "folder/environ"}),
        ("Edit", {"file_path": way, "old_string": "PATH", "new_string": "x"}),
    ]
    running.run([calls(*tools), says("done")], "--bare")
    told = running.told(1)
    assert "PATH=" not in told and told.count("lies in /proc") == 3 and "no match" in told, told


def test_what_is_no_file_is_not_replaced(running: Running) -> None:
    """As root, a device such as /dev/null would be a file for the whole machine afterwards."""
    pipe, door = running.workspace / "pipe", running.workspace / "door"
    os.mkfifo(pipe)
    (running.workspace / "linked").symlink_to(pipe)
    with socket.socket(socket.AF_UNIX) as listens:
        listens.bind(str(door))
        names = ["pipe", "linked", "door", "."]
        running.run([calls(*(("Write", {"file_path": name, "content": "x"}) for name in names)), says("done")], "--bare")
    assert running.told(1).count("nothing replaces it") == len(names), running.told(1)
    assert stat.S_ISFIFO(pipe.stat().st_mode) and stat.S_ISSOCK(door.stat().st_mode)


@pytest.mark.parametrize("tool", ["run", "eval"])
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--budget", ""], "--budget is empty"),
        (["--model", ""], "--model is empty"),
        (["--model", "a b"], "'a b' is no name of a model"),
        (["--max-minutes", "nan"], "'--max-minutes': 'nan' is no number"),
        (["--max-minutes", "inf"], "'--max-minutes': inf is not in the range"),
        (["--max-minutes", "1e300"], "'--max-minutes': 1e+300 is not in the range"),
    ],
)
def test_an_option_that_would_limit_nothing_is_refused(running: Running, tool: str, words: list[str], said: str) -> None:
    """An empty variable of a script must not mean a run without a limit, or with another model."""
    running.patch.setenv("ANTHROPIC_API_KEY", KEY)
    running.patch.setattr("pypto_op.runner.surroundings._begin_again", lambda: pytest.fail("it begins"))
    done = command(tool, *(["an operator"] if tool == "run" else []), *words)
    assert done.code == 2 and said in done.stderr and len(told_lines(done.stderr)) == 1, done
    assert not list(running.workspace.iterdir()) and not list(journal.sessions_folder(running.workspace).glob("*"))


def test_a_target_that_is_no_number(running: Running) -> None:
    for word in ("nan", "inf"):
        assert command("run", "an operator", "--target-us", word).code == 2


def test_a_folder_in_which_nobody_can_write(running: Running) -> None:
    """Told before the first request, which would be paid for."""
    running.patch.chdir(Path("/proc/self"))
    done = running.run([says("done")])
    assert done.code == 3 and "nothing can be written there" in done.stderr and not running.bodies, done
