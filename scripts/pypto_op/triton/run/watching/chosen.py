"""Which memory the host chose for launches, copies and outputs: its parts, how it was made, and which constants are filled in.

A kernel that copies, or PyTorch's `copy_`, computes nothing; but the host can sort, gather or look up by choosing what is copied.
So each choice is noted like a number: two runs on other values must choose alike (`provenance`).

Tensors that look alike (rows that were cloned one by one) are told apart by how they were made: a digest of the copy or launch
that wrote them, its numbers, and how its own arguments were made. Nothing in it depends on values. What an honest model keeps
from call to call is made otherwise in its second call than in its first, so second calls are compared with second calls.

An address that the host asks for is told by how its memory was made, too: what the allocator gives differs from run to run.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from hashlib import blake2b

import torch

from pypto_op.triton.run.inputs.packing import address

SEQUENCE = "the sequence of launches"
"""Which kernels are launched one after the other, and on which parts of memory."""

PLACES = "the places of the outputs in their memory"
"""Which part of what a kernel wrote is returned."""

PARTS = "the parts of memory that PyTorch copies"
FILLED = "the constants that PyTorch fills in"

ORIGINS = "the choice of the memory that launches, copies and outputs are given"
"""How the tensors were made that they are given; of a model's first call."""

AGAIN = f"{ORIGINS}, in a second call"
"""The same of a model's second call."""


class Chosen:
    """The choices of one call of forward."""

    def __init__(self) -> None:
        self.noted: dict[str, list[str | None]] = {}  # under the names above, a digest per launch, copy or constant
        self._made: dict[int, str] = {}
        self._asked: dict[int, tuple[int, str]] = {}  # where memory begins whose address the host asked for: its end, a word
        self._given: set[int] = set()
        self._first = True

    def begin(
        self, inputs: Sequence[torch.Tensor], held: Sequence[torch.Tensor], *, follows: bool, alive: Collection[int] = ()
    ) -> None:
        """Begin another call.

        Args:
            inputs, held, follows: as for `Memory.begin`.
            alive: addresses of the memory that was kept since the call before.
        """
        self.noted, self._first = {}, not follows
        self._asked = {}
        named = {"held": held, "input": inputs}
        given = {address(tensor): f"{word} {i}" for word, found in named.items() for i, tensor in enumerate(found)}
        kept = {place: f"kept {word}" for place, word in self._made.items() if follows and place in alive}
        self._made, self._given = kept | given, set(given)

    def asked(self, tensor: torch.Tensor) -> None:
        """Note that the host asked for a tensor's address."""
        start = address(tensor)
        word = self._made.setdefault(start, f"asked for {len(self._asked)}")
        self._asked.setdefault(start, (start + max(1, tensor.untyped_storage().nbytes()), word))

    def place_of(self, number: int) -> str | None:
        """Return where a number points to, in words that are the same in every run; None: in no memory that was asked for."""
        found = ((start, word) for start, (end, word) in self._asked.items() if start <= number < end)
        return next((f"{word} + {number - start}" for start, word in found), None)

    def launch(self, kernel: str, tensors: Mapping[str, Sequence[torch.Tensor]], numbers: Sequence[str]) -> None:
        """Note a launch; `numbers`: what tells it from another one on memory that looks the same."""
        word = digest_of(kernel, *map(_layout, tensors.items()))
        self._note(SEQUENCE, word)
        given = [tensor for found in tensors.values() for tensor in found]
        self._trace(digest_of(word, *numbers), given, given)

    def copy(self, operator: str, source: torch.Tensor, target: torch.Tensor) -> None:
        """Note a copy of data."""
        word = digest_of(operator, _layout(("", [source])), _layout(("", [target])))
        self._note(PARTS, word)
        self._trace(word, [source, target], [target])

    def fill(self, target: torch.Tensor, number: str) -> None:
        """Note that memory which something was written into before gets a constant."""
        word = digest_of(number, _layout(("", [target])))
        self._note(FILLED, word)
        self._trace(word, [target], [target])

    def outputs(self, outputs: Sequence[torch.Tensor]) -> dict[str, list[str | None]]:
        """Return what was noted, and what is returned of it."""
        word = digest_of(_layout(("", outputs)))
        self._trace(word, outputs, [])
        return self.noted | {PLACES: [word]}

    def _note(self, name: str, word: str) -> None:
        self.noted.setdefault(name, []).append(word)

    def _trace(self, word: str, read: Sequence[torch.Tensor], written: Sequence[torch.Tensor]) -> None:
        """Note how the tensors were made that something read, and that it made others."""
        made = digest_of(word, *(self._made.get(address(tensor), "") for tensor in read))
        self._note(ORIGINS if self._first else AGAIN, made)
        for position, tensor in enumerate(written):
            if address(tensor) not in self._given:  # whether a launch changes these may depend on values
                self._made[address(tensor)] = digest_of(made, str(position))


def digest_of(*words: str) -> str:
    """Return a short hash of words."""
    return blake2b("\0".join(words).encode(), digest_size=8).hexdigest()


def _layout(given: tuple[str, Sequence[torch.Tensor]]) -> str:
    """Return which parts of their memory the tensors of a parameter are."""
    name, tensors = given
    return f"{name} {[(tuple(t.shape), t.stride(), t.storage_offset(), str(t.dtype)) for t in tensors]}"
