"""What every test shares: the account of processor seconds."""

from __future__ import annotations

import pytest
from tests import processor_seconds


def pytest_configure(config: pytest.Config) -> None:
    """Every run ends with its slowest tests and with the sum of each room."""
    config.pluginmanager.register(processor_seconds.Account(config), "processor-seconds")
