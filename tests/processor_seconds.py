"""Processor seconds of every test, its children's included; a run ends with the slowest tests and the sum of each room.

Processor seconds are user and system time together. On a machine with other work wall times say little, these much.
A child's time counts for the test in which the child is waited for; one that is never waited for does not count. The
simulator's processes and programs with torch count as they go: the back ends' launcher and `tests.program` add them up.
"""

from __future__ import annotations

import os
import sys
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest
from tests import program

SHOWN = 20
_OUTSIDE_TESTS = "processor_seconds_outside_tests"


def spent(*, children: bool = True) -> float:
    """Return the processor seconds that this process and, unless told otherwise, its children have used so far."""
    launcher = sys.modules.get("pypto_op.backends.launcher")
    times = os.times()
    if not children:
        return sum(times[:2])
    return (launcher.cpu_seconds(children=True) if launcher else sum(times[:4])) + program.spent()


class Account:
    """Writes beside every report what it has cost; the process that people look at adds it up."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.worker = hasattr(config, "workerinput")
        self.distributes = config.getoption("dist", "no") != "no" and not self.worker
        self.marked = 0.0
        self.outside: list[float] = []
        """Start, collection and end of each test process."""
        self.tests: dict[str, float] = defaultdict(float)

    def _since_mark(self) -> float:
        before, self.marked = self.marked, spent(children=not self.distributes)
        return self.marked - before

    def pytest_runtest_logstart(self) -> None:
        """What lies between two tests is nobody's."""
        if not self.distributes:
            self.outside.append(self._since_mark())

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Iterator[Any]:
        report = yield
        report.processor_seconds = self._since_mark()
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add up: here, where tests run in this process; in the process that distributes them otherwise."""
        self.tests[report.nodeid] += getattr(report, "processor_seconds", 0.0)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        self.outside.append(self._since_mark())
        if self.worker:
            self.config.workeroutput[_OUTSIDE_TESTS] = sum(self.outside)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        self.outside.append(getattr(node, "workeroutput", {}).get(_OUTSIDE_TESTS, 0.0))

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if self.tests and not self.worker:
            if cache := getattr(self.config, "cache", None):
                cache.set("processor_seconds", {name: round(cost, 3) for name, cost in self.tests.items()})
            terminalreporter.section("processor seconds", sep="-")
            terminalreporter.write_line(report_lines(self.tests, sum(self.outside)))


def report_lines(tests: dict[str, float], outside: float) -> str:
    """Return the slowest tests, the sum of each room and of everything.

    Args:
        tests: processor seconds by the tests' node ids
        outside: processor seconds of start, collection and end, in all test processes together
    """
    rooms: dict[str, float] = defaultdict(float)
    for name, seconds in tests.items():
        rooms[_room(name)] += seconds
    lines = [f"{seconds:8.2f}  {name}" for name, seconds in _largest(tests)[:SHOWN]]
    lines += ["", "by room: " + ", ".join(f"{name} {seconds:.1f}" for name, seconds in _largest(rooms))]
    minutes = (sum(tests.values()) + outside) / 60
    lines += [f"start, collection and end: {outside:.1f}; altogether {minutes:.1f} processor minutes"]
    return "\n".join(lines)


def _largest(costs: dict[str, float]) -> list[tuple[str, float]]:
    return sorted(costs.items(), key=lambda row: -row[1])


def _room(name: str) -> str:
    """`tests/judge/test_report.py::test_x` belongs to the room `judge`."""
    return name.split("/")[1] if name.count("/") > 1 else name.partition("::")[0]
