"""Whether what kernels were given was computed on the host: two runs on other values are laid side by side.

A table of constants, a size and a grid are the same in both runs. What the host computed from the inputs is not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pypto_op.triton.run.watching.chosen import AGAIN

Used = Mapping[str, Sequence[str | None]]
"""Kernel and parameter -> per launch a digest; None where the host wrote nothing."""


@dataclass(frozen=True)
class Provenance:
    """Where the values of one run came from.

    Attributes:
        tensors: of what the host wrote into arguments (`Memory.used`).
        scalars: of the numbers that launches were given (`Launches.scalars`).
        computed: of what Python's own functions were given in a kernel (`KernelGuard.computed`), by place of the text.
        reads: what the candidate's code read on the host (`Reads.found`).
        copies: PyTorch's copies of data, by operator.
        copied: what to say of outputs that such a copy already was.
        drawn: the task's own numbers and shapes; where they change with the seed, what launches are given may follow them.
        before: of the call before the judged one, if there was one.
    """

    tensors: Used = field(default_factory=dict)
    scalars: Used = field(default_factory=dict)
    computed: Mapping[str, str] = field(default_factory=dict)
    reads: tuple[str, ...] = ()
    copies: Mapping[str, int] = field(default_factory=dict)
    copied: tuple[str, ...] = ()
    drawn: tuple[str, ...] = ()
    before: Provenance | None = None

    @classmethod
    def of(cls, facts: Mapping[str, Any], drawn: Sequence[Any]) -> Provenance:
        """Return what a run's facts say."""
        before = facts.get("before")
        return cls(
            facts.get("used") or {},
            facts.get("scalars") or {},
            dict(facts.get("computed") or {}),
            tuple(map(str, facts.get("reads") or ())),
            dict(facts.get("copies") or {}),
            tuple(str(line)[:200] for line in (facts.get("copied_outputs") or ())[:8]),
            tuple(map(repr, drawn)),
            cls.of(before, drawn) if before else None,
        )

    def differs_from(self, first: Provenance) -> str | None:
        """Return the parameter that the host gave other values than in the first run, in words; None when there is none."""
        earlier = self.before.differs_from(first.before or first) if self.before is not None else None
        found = earlier or _differing(first.tensors, self.tensors)
        if found is not None or self.drawn != first.drawn:
            return found
        scalars = (
            self.scalars if AGAIN in first.scalars else {name: value for name, value in self.scalars.items() if name != AGAIN}
        )
        return _differing(first.scalars, scalars) or _parting(first.computed, self.computed)

    def is_like(self, other: Provenance) -> bool:
        """Whether the host wrote and gave the very same values in another run."""
        if (self.before is None) != (other.before is None):
            return False
        same = self.before is None or other.before is None or self.before.is_like(other.before)
        given = dict(self.tensors) == dict(other.tensors) and dict(self.scalars) == dict(other.scalars)
        return same and given and _parting(self.computed, other.computed) is None


def _differing(first: Used, now: Used) -> str | None:
    """Return the first parameter whose later launches are not the last, or the first, of the first run's.

    Launches of the first run that a later one lacks are those of a first call (weights that are packed once).
    """
    for parameter, values in now.items():
        before = first.get(parameter, ())
        if len(values) > len(before) and any(value is not None for value in values):
            return f"{_named(parameter)} (given {len(values)} times, before {len(before)} times)"
        if not (_fit(before[len(before) - len(values) :], values) or _fit(before, values)):
            return _named(parameter)
    return None


def _parting(first: Mapping[str, str], now: Mapping[str, str]) -> str | None:
    """Return where Python computed with other numbers; a place that one run did not come to says nothing."""
    return next((f"Python's {place}" for place, told in now.items() if first.get(place, told) != told), None)


def _named(parameter: str) -> str:
    kernel, _, name = parameter.rpartition(".")
    return f"argument {name!r} of {kernel}" if kernel else parameter


def _fit(before: Sequence[str | None], now: Sequence[str | None]) -> bool:
    return all(new is None or new == old for old, new in zip(before, now, strict=False))
