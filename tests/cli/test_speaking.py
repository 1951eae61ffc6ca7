"""What is silent for two seconds says what it does, and goes on saying it."""

from __future__ import annotations

import contextlib
import os
import pty
import subprocess
import sys

import click
import pytest

from pypto_op import cli, speaking

SLOW = """
import sys, time
from pypto_op import speaking
speaking.FIRST_SECONDS, speaking.EVERY_SECONDS = {first}, {every}
with speaking.aloud("outer"):
    {body}
print("result")
"""


def run(body: str, first: float = 0.3, every: float = 0.3) -> tuple[str, list[str]]:
    text = SLOW.format(body=body, first=first, every=every)
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    return done.stdout, done.stderr.splitlines()


@pytest.mark.slow
def test_silence_is_broken_again_and_again() -> None:
    out, lines = run("time.sleep(2.5)")
    assert out == "result\n", "standard output holds results only"
    assert len(lines) >= 2 and all(line.startswith("pypto-op: outer, ") and "s so far" in line for line in lines)


def test_what_is_short_says_nothing() -> None:
    assert run("pass", first=5.0)[1] == []


def test_who_asked_for_the_result_alone_gets_nothing_else() -> None:
    assert run("speaking.hush(); time.sleep(1.5)") == ("result\n", [])


@pytest.mark.slow
def test_the_innermost_work_speaks_and_says_what_is_left() -> None:
    _, lines = run("""
    with speaking.doing("inner"):
        speaking.now("judging", 3, 10)
        time.sleep(1.5)
    time.sleep(1.5)
""")
    assert "judging" in lines[0] and "7 of 10 left" in lines[0]
    assert "outer" in lines[-1]


@pytest.mark.slow
def test_a_line_of_progress_counts_as_speech() -> None:
    _, lines = run(
        """
    for _ in range(25):
        time.sleep(0.2)
        speaking.heard()
""",
        first=4,
    )
    assert lines == []


def test_the_end_of_a_failing_command_leaves_no_thread() -> None:
    text = "import threading\nfrom pypto_op import speaking\n"
    text += "try:\n    with speaking.aloud('x'):\n        raise KeyError\nexcept KeyError:\n    print(threading.active_count())\n"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert done.stdout == "1\n"


@pytest.mark.slow
def test_on_a_terminal_results_never_share_a_line_with_it() -> None:
    body = """
    for stream in (sys.stdout, sys.stderr, sys.stdout):
        time.sleep(1.2)
        print("| row |", file=stream)
    time.sleep(1.2)"""
    master, slave = pty.openpty()
    text = SLOW.format(body=body, first=0.3, every=0.3)
    program = subprocess.Popen([sys.executable, "-c", text], stdout=slave, stderr=slave)
    os.close(slave)
    shown = b""
    with contextlib.suppress(OSError):  # the terminal is gone when the program is
        while piece := os.read(master, 4096):
            shown += piece
    os.close(master)
    assert program.wait(60) == 0
    assert shown.count(b"outer, ") >= 6, "it came back after each row"
    rows = [line for line in shown.decode().split("\r\n") if line]
    seen = [row.rpartition("\x1b[2K")[2] for row in rows]
    assert seen == ["| row |"] * 3 + ["result"], "the line was wiped before each of them"


def test_only_the_command_that_runs_is_called_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(speaking, "now", said.append)
    context = click.Context(cli.root)
    assert cli.root.get_command(context, "lint") is not None
    assert said == [], "the page of all commands asks for each, and runs none"
    cli.root.resolve_command(context, ["lint", "FILE"])
    assert [words.partition(" ")[0] for words in said] == ["lint"]
