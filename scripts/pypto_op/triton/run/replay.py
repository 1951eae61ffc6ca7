"""A second look at what the host gave kernels: the same calls once more, in a new process and on other values.

Between two calls the host may honestly give other numbers: a counter of steps, the seed of a dropout. These follow from the
calls alone. So a process that makes the same calls on other values gives the very same; what is computed from values it does not.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Sequence
from typing import Any

import torch

from pypto_op.triton.run.judging import looks, trivial
from pypto_op.triton.run.judging.provenance import Provenance
from pypto_op.triton.run.processes.sessions import CandidateSession, TaskSession, Told


class History:
    """The calls of one process of the candidate: pass and case -> what the host gave, and a sample of the inputs."""

    def __init__(self) -> None:
        self._calls: dict[tuple[int, int], tuple[Provenance, list[torch.Tensor], str]] = {}

    def note(self, number: int, index: int, made: Provenance, inputs: Any, judges: str) -> None:
        """Remember a call; `judges` as `CandidateSession.run` has it."""
        self._calls[number, index] = (made, trivial.sampled(inputs), judges)

    def follows_from_calls(
        self,
        cases: set[int],
        seeds: Sequence[int],
        task: TaskSession,
        candidate: CandidateSession,
        tighten: Callable[[], None],
        reloads: Collection[int] = (),
    ) -> set[int]:
        """Return those of `cases` for which the host gives the same on other values.

        Args:
            seeds: of the passes and looks, in their order; models are seeded alike again.
            task: makes the other values.
            candidate: a new process.
            tighten: called before each step, for the time limit.
            reloads: cases whose models were called with other parameters before (`reloaded`).
        """
        alike = set(cases)
        try:
            for number, seed in enumerate(seeds):
                if not alike:
                    break
                tighten()
                other = secrets.randbelow(2**31)
                task.open(other)
                move = looks.move() if number else ""
                for index in sorted(place for turn, place in self._calls if turn == number and place <= max(cases)):
                    tighten()
                    later = bool(number)
                    found = task.case(index, other, used=later, judged=False, move=move, reloads=later and index in reloads)
                    if found is None:
                        return set()
                    _, _, facts = candidate.run(found[0], seed, judged=False, later=later, judges=self._calls[number, index][2])
                    if not self._is_alike(number, index, Provenance.of(facts, ()), found[0]["inputs"]):
                        alike.discard(index)
        except Told:
            return set()
        return alike

    def _is_alike(self, number: int, index: int, made: Provenance, inputs: Any) -> bool:
        before, sample, _ = self._calls[number, index]
        others = trivial.sampled(inputs)
        varied = any(not torch.equal(one, other) for one, other in zip(sample, others, strict=False))
        return varied and made.is_like(before)
