"""The faults that the demo plants: edits of the example's own source, so that they cannot go stale silently."""

from __future__ import annotations

from dataclasses import dataclass

from pypto_op.errors import ContractError


@dataclass(frozen=True)
class Fault:
    """One wrong line."""

    what: str  # what the coder does wrong, one sentence
    right: str  # the text of the honest kernel
    wrong: str  # what stands there instead

    def plant(self, source: str) -> str:
        """Return `source` with the fault.

        Raises:
            ContractError: the honest text does not occur exactly once, so the example has changed.
        """
        if source.count(self.right) != 1:
            raise ContractError(
                f"the demo's fault no longer fits the example: {self.right!r} does not occur exactly once",
                file="scripts/pypto_op/demo/planted.py",
                remedy="adapt the fault to the example",
            )
        return source.replace(self.right, self.wrong)


TILE_FROM_ARGUMENT = Fault(
    what="takes a tile size from a kernel argument, which pypto needs at compile time",
    right="pypto.set_vec_tile_shapes(16, 512)",
    wrong="pypto.set_vec_tile_shapes(16, hidden)",
)

DROPPED_TAIL = Fault(
    what="rounds the loop count down, so the last rows of a ragged length are never written",
    right="(tokens + T_TILE - 1) // T_TILE",
    wrong="tokens // T_TILE",
)
