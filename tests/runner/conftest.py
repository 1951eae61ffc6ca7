from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.hooks.conftest import Harness
from tests.runner.running import Running

from pypto_op.proof.key import KEY_ENV


@pytest.fixture
def running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Running]:
    pytest.importorskip("anthropic")
    pytest.importorskip("mcp")
    harness = Harness(tmp_path / "work", tmp_path / "cache")
    harness.workspace.mkdir()
    harness.cache.mkdir()
    monkeypatch.chdir(harness.workspace)
    for name, value in {KEY_ENV: str(tmp_path / "keys" / "seal.key"), "XDG_CACHE_HOME": str(harness.cache)}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PYPTO_OP_SERVER_IDLE", "60")
    monkeypatch.delenv("ANTHROPIC_MODEL", raising=False)
    yield Running(harness.workspace, monkeypatch)
    harness.stop_servers()
