"""Operators in a scratch workspace, and the generators called as a user calls them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.calling import Answer, command
from tests.judge.judging import place

from pypto_op.proof.key import KEY_ENV
from pypto_op.workspace import OpWorkspace


@pytest.fixture(autouse=True)
def private_key(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test touches the account's own key."""
    monkeypatch.setenv(KEY_ENV, str(tmp_path_factory.mktemp("account") / "seal.key"))


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
