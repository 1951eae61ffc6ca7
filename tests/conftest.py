"""What every test shares: the account of processor seconds, and a collection that is not searched for garbage."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import pytest
from tests import processor_seconds


def pytest_configure(config: pytest.Config) -> None:
    """Every run ends with its slowest tests and with the sum of each room."""
    config.pluginmanager.register(processor_seconds.Account(config), "processor-seconds")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[Any]:
    """Modules and tests stay to the end: looking for garbage among them took a quarter of the collection."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
