"""Every test judges with a private key, from a scratch folder, and leaves nothing behind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from pypto_op.workspace import OpWorkspace

from .judging import CASES, files_below, left_running, place


@pytest.fixture(autouse=True)
def private_key(private_key: Path) -> Path:
    """Every test of this room seals with a key of its own."""
    return private_key


@pytest.fixture
def operator(tmp_path: Path) -> OpWorkspace:
    """An operator of one case, whose kernel is right."""
    return place("sum_diff", tmp_path, cases=CASES[:1], most=80)


@pytest.fixture
def clean_workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder to judge in; afterwards no process runs, and nothing lies outside custom/<op>/."""
    running = {child.pid for child in psutil.Process().children(recursive=True)}
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    assert left_running(running) == []
    strays = {path for path in files_below(tmp_path) if len(Path(path).parts) < 3}
    assert {path for path in strays if path != "custom" and Path(path).parts[0] != "custom"} == set()
    assert len([path for path in strays if len(Path(path).parts) == 2]) == 1
