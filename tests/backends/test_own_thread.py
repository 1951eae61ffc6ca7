"""pypto writes device code in the thread that asks for it: a thread for each of a thousand leaves took what a kernel may have."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests import program, quickly

quickly.skip_without("pypto")
pytestmark = [pytest.mark.sim, pytest.mark.slow]

SCRIPT = Path(__file__).with_name("own_thread.py")


def test_no_leaf_function_gets_a_thread() -> None:
    done = program.python("-m", "pypto_op.cli", "script", SCRIPT)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["right"] and found["pieces"] >= 6, found
