"""What every test shares: processor seconds by room, a quick collection, a key of its own, and the question for numbers."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from tests import in_memory, processor_seconds, quickly

from pypto_op.backends import cores

# Wall time says nothing on a machine with other work: a test that is right would fail there for being slow.
settings.register_profile("busy machine", settings.default, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy machine")


def pytest_configure(config: pytest.Config) -> None:
    """Test processes run beside one another, each on one thread; a run ends with its slowest tests and the sum of each room."""
    cores.leave_to_workers()
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


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """`make test-quick` takes a share of long tables: of the rows that its marks leave, hence last."""
    if quickly.QUICK:
        items[:], left = quickly.without_long_tables(items)
        config.hook.pytest_deselected(items=left)


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """Pytest's folder; in rooms that judge in `sim` one in memory, where there is enough of it."""
    if not in_memory.has_one(request.path):
        yield tmp_path
        return
    with in_memory.folder() as folder:
        yield folder


@pytest.fixture
def private_key(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A sealing key of the test's own, so that no test touches the account's; and no token of a state machine."""
    from pypto_op.proof.key import KEY_ENV

    key = tmp_path_factory.mktemp("account") / "seal.key"
    monkeypatch.setenv(KEY_ENV, str(key))
    monkeypatch.delenv("PYPTO_OP_TOKEN", raising=False)
    return key


@pytest.fixture(scope="session")
def numeric() -> None:
    """Skip where the simulator computes no numbers."""
    from tests.judge.judging import sim_problem

    if problem := sim_problem():
        pytest.skip(problem)
