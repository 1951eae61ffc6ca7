"""Which configuration of an autotuned kernel calls take on a device; Triton's own tuner chooses, by times that are given here."""

from __future__ import annotations

import pytest

pytest.importorskip("triton")

from triton.runtime import autotuner
from triton.runtime.errors import OutOfResources

from pypto_op.triton.run.watching.configurations import FAR, MOVED, OWN, Configurations

_BLOCKS = (16, 32, 64, 128)
_FASTEST, _TOO_LARGE = 64, 128


class Kernel:
    """A kernel that four configurations fit, the last of which the device has no memory for."""

    def __init__(self) -> None:
        self.launched: list[int] = []
        self.timed = 0
        self.configurations = Configurations()
        self.tuner = autotuner.Autotuner(
            self, ["n"], [autotuner.Config({"BLOCK": block}) for block in _BLOCKS], ["n"], None, None, do_bench=self._times
        )

    @staticmethod
    def fn(n: int, BLOCK: int) -> None:
        """What a tuner asks for the name."""

    def run(self, n: int, *, BLOCK: int, **_: int) -> None:
        if BLOCK == _TOO_LARGE:
            raise OutOfResources(2, 1, "shared memory")
        self.launched.append(BLOCK)

    def _times(self, call, quantiles):
        self.timed += 1
        call()
        return [float(abs(self.launched[-1] - _FASTEST))] * 3

    def call(self, *, turns: bool, judges: str = OWN, n: int = 8) -> int:
        """Call as forward does, and return the configuration that was launched."""
        self.configurations.judges, self.configurations.turns = judges, turns
        self.configurations.begin()
        self.tuner.run(n)
        self.configurations.chosen(self.tuner)
        return self.launched[-1]


@pytest.fixture
def kernel(monkeypatch):
    made = Kernel()
    monkeypatch.setattr(autotuner.Autotuner, "_bench", made.configurations.by_time(autotuner.Autotuner._bench))
    return made


def test_calls_take_the_fastest_until_turns_are_asked_for(kernel):
    assert [kernel.call(turns=False) for _ in range(2)] == [_FASTEST] * 2
    assert kernel.configurations.facts() == {"fn": [1, 3, 0]}


def test_turns_take_each_configuration_that_the_device_runs_and_time_none_again(kernel):
    kernel.call(turns=False)
    timed = kernel.timed
    assert {kernel.call(turns=True) for _ in range(2)} == {16, 32}
    assert kernel.timed == timed
    assert kernel.configurations.facts() == {"fn": [3, 3, 0]}


def test_the_call_after_turns_takes_the_fastest_again(kernel):
    kernel.call(turns=False)
    kernel.call(turns=True)
    assert kernel.call(turns=False) == _FASTEST


def test_a_call_that_is_not_judged_counts_for_nothing(kernel):
    kernel.call(turns=False, judges="")
    assert kernel.configurations.facts() == {"fn": [0, 3, 0]}


def test_calls_on_far_inputs_take_each_configuration_in_a_turn_of_their_own(kernel):
    kernel.call(turns=False)
    assert {kernel.call(turns=True) for _ in range(2)} == {16, 32}
    assert {kernel.call(turns=True, judges=FAR) for _ in range(3)} == {16, 32, 64}
    assert kernel.configurations.facts() == {"fn": [3, 3, 3]}


def test_calls_of_two_sizes_by_turns_meet_each_configuration_in_both(monkeypatch):
    kernel = Kernel()
    kernel.tuner.configs = kernel.tuner.configs[:2]
    monkeypatch.setattr(autotuner.Autotuner, "_bench", kernel.configurations.in_turn(autotuner.Autotuner._bench))
    met = {(n, kernel.call(turns=False, judges=judges, n=n)) for judges in (OWN, MOVED, MOVED) for n in (30, 100)}
    assert met == {(n, block) for n in (30, 100) for block in _BLOCKS[:2]}
