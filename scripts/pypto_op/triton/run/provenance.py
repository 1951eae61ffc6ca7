"""Whether what kernels were given was computed on the host: two runs on other values are laid side by side.

A table of constants, a size and a grid are the same in both runs. What the host computed from the inputs is not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Used = Mapping[str, Sequence[str | None]]
"""Kernel and parameter -> per launch a digest; None where the host wrote nothing."""


@dataclass(frozen=True)
class Provenance:
    """Where the values of one run came from.

    Attributes:
        tensors: of what the host wrote into arguments (`Memory.used`).
        scalars: of the numbers that launches were given (`Launches.scalars`).
        numbers: digests of the numbers that task and model hold: a launch may be given one of them.
        reads: what the candidate's code read on the host (`Reads.found`).
        copies: PyTorch's copies of data, by operator.
        drawn: the task's own numbers; where they change with the seed, what launches are given may follow them.
    """

    tensors: Used = field(default_factory=dict)
    scalars: Used = field(default_factory=dict)
    numbers: frozenset[str] = frozenset()
    reads: tuple[str, ...] = ()
    copies: Mapping[str, int] = field(default_factory=dict)
    drawn: tuple[str, ...] = ()

    @classmethod
    def of(cls, facts: Mapping[str, Any], drawn: Sequence[Any]) -> Provenance:
        """Return what a run's facts say."""
        return cls(
            facts.get("used") or {},
            facts.get("scalars") or {},
            frozenset(facts.get("numbers") or ()),
            tuple(map(str, facts.get("reads") or ())),
            dict(facts.get("copies") or {}),
            tuple(map(repr, drawn)),
        )

    def differs_from(self, first: Provenance) -> str | None:
        """Return the parameter that the host gave other values than in the first run, in words; None when there is none."""
        found = _differing(first.tensors, self.tensors)
        if found is not None or self.drawn != first.drawn:
            return found
        free = {
            parameter
            for parameter, digests in self.scalars.items()
            if set(digests) <= self.numbers and len(set(digests)) == 1 and set(first.scalars.get(parameter, ())) <= first.numbers
        }
        return _differing(first.scalars, {name: digests for name, digests in self.scalars.items() if name not in free})


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


def _named(parameter: str) -> str:
    kernel, _, name = parameter.rpartition(".")
    return f"argument {name!r} of {kernel}" if kernel else parameter


def _fit(before: Sequence[str | None], now: Sequence[str | None]) -> bool:
    return all(new is None or new == old for old, new in zip(before, now, strict=False))
