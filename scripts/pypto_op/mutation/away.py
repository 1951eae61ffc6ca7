"""Mutants in another process, perhaps on another host: the operator travels there, and each fate comes back."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

from pypto_op.mutation.field import Field, Outcome, Wish
from pypto_op.mutation.mutants import Mutant
from pypto_op.pool.parcel import Copy, Parcel
from pypto_op.pool.work import Bench, Say
from pypto_op.workspace import OpWorkspace


@dataclass(frozen=True)
class MutantsWork:
    """What another process needs to hunt mutants as this one would."""

    parcel: Parcel  # the operator
    wish: Wish  # what is measured

    @contextlib.contextmanager
    def open(self) -> Iterator[Bench]:
        """Let golden and kernel answer every trial on that machine too: its own times set the limits there."""
        with contextlib.ExitStack() as stack:
            copy = stack.enter_context(self.parcel.unpacked())
            field = Field(OpWorkspace(copy.root, copy.root.name), self.wish, stack, lambda words: None)
            field.lay_out()
            field.run_unchanged()
            yield _MutantsBench(copy, field)


class _MutantsBench:
    hello = None

    def __init__(self, copy: Copy, field: Field) -> None:
        self._copy, self._field = copy, field

    def do(self, payload: Mutant, say: Say) -> Outcome:
        """Hunt one mutant."""
        return self._copy.translated(self._field.hunt(payload, say))
