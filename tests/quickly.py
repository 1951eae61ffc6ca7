"""What every test process would do at collection: cheaply, since each of them collects all tests."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml


def needs_package(name: str) -> pytest.MarkDecorator:
    """Skip where a package is not installed; unlike `pytest.importorskip`, without importing it."""
    return pytest.mark.skipif(find_spec(name) is None, reason=f"{name} is not installed; run `make setup`")


def skip_without(name: str) -> None:
    """Leave a whole module of tests out where a package is not installed; unlike `pytest.importorskip`, without importing it."""
    if find_spec(name) is None:
        pytest.skip(f"{name} is not installed; run `make setup`", allow_module_level=True)


def read_table(path: Path) -> Any:
    """Read a table in YAML with libyaml's parser, which takes a tenth of the time."""
    return yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
