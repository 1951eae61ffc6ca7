"""`pypto-op harness new --force` that is killed leaves all of the old files, or all of the new ones, or says that it did not."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from collections.abc import Callable

import pytest
from tests import program
from tests.judge.judging import Answer

from pypto_op.documents import together
from pypto_op.errors import ContractError
from pypto_op.workspace import OpWorkspace

pytestmark = [pytest.mark.sim, pytest.mark.slow]

Call = Callable[..., Answer]

KILLED = """
import os, signal, sys
from pathlib import Path
from pypto_op import cli
left, put = int(sys.argv[1]), Path.replace
def replace(path, target):
    global left
    left -= 1
    if not left:
        os.kill(os.getpid(), signal.SIGKILL)
    return put(path, target)
Path.replace = replace
cli.main(["harness", "new", "--force", "--no-rehearsal", sys.argv[2]])
"""
"""Ends itself as the kernel would, at the n-th file that it puts in its place."""


def make_old(ws: OpWorkspace) -> None:
    """Let inputs and suite be somebody's old ones."""
    ws.test_inputs.write_text(f"{ws.test_inputs.read_text().removesuffix(OLD)}{OLD}")
    ws.suite.write_text(json.dumps({**json.loads(ws.suite.read_text()), "description": OLD}))


OLD = "\n# old\n"


def old(ws: OpWorkspace) -> tuple[bool, bool]:
    """Return whether inputs and suite are the old ones; both can be read at any moment."""
    return OLD in ws.test_inputs.read_text(), json.loads(ws.suite.read_text())["description"] == OLD


def test_at_each_moment_all_is_old_or_all_is_new_or_it_is_told(bare: OpWorkspace, call: Call) -> None:
    assert call("harness", "new", "--no-rehearsal", bare.root).code == 0
    seen, halves, code, moment = set(), 0, -9, 0
    while code == -9:
        make_old(bare)
        moment += 1
        code = program.with_torch("-c", KILLED, moment, bare.root).returncode
        seen.add(old(bare))
        if len(set(old(bare))) == 2:
            halves += 1
            told = call("verify", bare.root)
            said = told.stdout + told.stderr
            assert told.code == 2 and "old and new files lie side by side" in said and "--force" in said
            assert "lie side by side" in call("check", bare.root).stdout
            again = call("harness", "new", "--no-rehearsal", bare.root)
            assert again.code == 2 and "lie side by side" in again.stderr, "an edited suite is kept, beside new inputs"
        if code == -9:
            assert call("harness", "new", "--force", "--no-rehearsal", bare.root).code == 0
            assert old(bare) == (False, False)
            assert "lie side by side" not in call("check", bare.root).stdout
    assert code == 0 and {(True, True), (False, False)} <= seen and halves == 1
    assert moment > 6


def test_random_moments_of_a_run(bare: OpWorkspace, call: Call) -> None:
    """Without a rehearsal, in which most moments would lie and nothing is written."""
    command = [sys.executable, "-m", "pypto_op.cli", "harness", "new", "--force", "--no-rehearsal", str(bare.root)]
    begun = time.monotonic()
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0
    whole = time.monotonic() - begun
    for _ in range(3):
        make_old(bare)
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as run:
            time.sleep(random.uniform(0.1, whole))  # noqa: S311
            run.kill()
        try:
            together.check_whole(bare.eval_dir)
        except ContractError:
            continue
        assert len(set(old(bare))) == 1
