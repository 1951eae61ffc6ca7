"""`--timeout` ends the judge's own work too: comparison, second look, static check."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

import pytest
from tests.triton import lab

from pypto_op.triton.run import passes
from pypto_op.triton.run.setup.deadline import Deadline, TimeIsUp
from pypto_op.triton.static import validate


def test_work_without_end_is_ended() -> None:
    with pytest.raises(TimeIsUp), Deadline(time.monotonic() + 0.05):
        while True:
            pass


def test_work_that_catches_everything_is_told_at_its_end() -> None:
    with pytest.raises(TimeIsUp), Deadline(time.monotonic() + 0.05):
        try:
            while True:
                pass
        except TimeIsUp:
            caught = True
    assert caught


def test_nothing_comes_after_work_that_is_done_in_time() -> None:
    for _ in range(200):
        with Deadline(time.monotonic() + 1000):
            pass
    assert sum(range(100_000)) == 4_999_950_000


def test_the_end_of_time_and_of_work_may_meet() -> None:
    for number in range(40):
        with pytest.raises(TimeIsUp), Deadline(time.monotonic()):
            time.sleep(0.0005 * (number % 4))
            for _ in range(10**7):
                pass
        assert sum(range(1000)) == 499_500


@pytest.mark.slow
@pytest.mark.parametrize(("module", "name"), [(passes, "judge"), (validate, "read_file")])
def test_a_comparison_or_a_static_check_without_end_is_a_timeout(
    module: ModuleType, name: str, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[str] = []
    over = threading.Event()

    def endless(*_: Any, **__: Any) -> NoReturn:
        begun.append(name)
        while not over.is_set():  # in the static check's thread it would go on until this process ends
            time.sleep(0.01)
        raise RuntimeError("over")

    project = lab.folder(place, lab.task("return x * 1", "[torch.randn(64)]"), lab.impl("return run(copy_kernel, x)"))
    monkeypatch.setattr(module, name, endless)
    result = lab.verify(project, timeout=15.0)
    assert result["status"] == "ERROR" and "timed out after 15 seconds" in result["error"]
    assert result["failed_cases"] == result["total_cases"] == 1
    assert not (place / "_debug").exists()
    assert lab.read(project.verify_result) == result
    over.set()
    assert begun or "Timeout" in str(result["failures"]), "on a slow machine the time may end before"
