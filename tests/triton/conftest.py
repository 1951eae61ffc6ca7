"""Shared fixtures: a key of its own, and a verified folder that the benchmark's tests copy."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

if find_spec("triton") is None:
    pytest.skip("triton is not installed; run `make setup`", allow_module_level=True)


@pytest.fixture(scope="session", autouse=True)
def sealing_key(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    patch = pytest.MonkeyPatch()
    patch.setenv("PYPTO_OP_KEY_FILE", str(tmp_path_factory.mktemp("key") / "seal.key"))
    yield
    patch.undo()


@pytest.fixture()
def place(tmp_path: Path) -> Path:
    return tmp_path / "verify"
