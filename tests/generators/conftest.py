"""Operators in a scratch workspace, and the generators called as a user calls them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.calling import Answer, command
from tests.judge.judging import place

from pypto_op.workspace import OpWorkspace


@pytest.fixture(autouse=True)
def private_key(private_key: Path) -> Path:
    """Every test of this room seals with a key of its own."""
    return private_key


@pytest.fixture
def call() -> Callable[..., Answer]:
    """Run `pypto-op ...` in this process."""
    return command


@pytest.fixture
def bare(tmp_path: Path) -> OpWorkspace:
    """The two-module operator, without anything that `harness new` makes."""
    ws = place("chain", tmp_path)
    for path in (ws.test_inputs, ws.suite):
        path.unlink()
    return ws
