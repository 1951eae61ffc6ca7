"""Whether the reference takes moved inputs: it is asked before anything is judged on them, once for each case and move."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from pypto_op.triton.run.inputs import idle, infinite, masks, neighbours, one_value, skewed, unread, whole
from pypto_op.triton.run.inputs.packing import tensors_of, widened

FEW = 4
"""A wrong answer of so few numbers may come within the tolerance of each by chance."""
_SHORT = 2
"""Bytes of floats of which few lie far from zero, so that some become equal there."""


class Suits:
    """What the reference said of moved inputs.

    Args:
        path: of the task.
        tried: returns what a model that nobody called makes of inputs, which stay as they are. It is given them, a seed, and
            another one for what the model draws itself, or None; `come_to` gives it a mode, too, which is to see that call alone.

    Attributes:
        picks: cases whose reference picks elements.
        picked: those of them whose answer follows the scale of the inputs, too: no rounding is magnified.
        few: cases whose reference returns so few numbers that wrong ones may come within the tolerance by chance.
        ordered: cases whose reference returns places of elements in their order (`equals`).
        overflowed: cases whose reference is infinite far away.
    """

    def __init__(self, path: Path, tried: Callable[..., Any]) -> None:
        self.picks: set[int] = set()
        self.picked: set[int] = set()
        self.few: set[int] = set()
        self.ordered: set[int] = set()
        self.overflowed: set[int] = set()
        self._path, self._tried = path, tried
        self._known: dict[tuple[int, str], bool] = {}

    def note(self, index: int, outputs: Any, *, picks: bool, orders: bool) -> None:
        """Note what the reference did in a case, and returned."""
        self.few |= {index} if sum(tensor.numel() for tensor in tensors_of(outputs)) <= FEW else set()
        self.picks |= {index} if picks else set()
        self.ordered |= {index} if orders else set()

    def may(self, index: int, move: str) -> bool:
        """Whether the reference took such a move of a case, or was not asked yet."""
        return self._known.get((index, move), True)

    def takes(self, index: int, move: str, moved: Any, own: Any, seed: int) -> bool:
        """Whether the reference takes moved inputs of a case, and they show something new.

        Args:
            index: of the case.
            move: how they were moved.
            moved: the inputs; None: nothing could be moved.
            own: the inputs as they were.
            seed: of the models.
        """
        if moved is None:
            return False
        if (index, move) not in self._known:
            try:
                self._known[index, move] = self._shows(index, move, moved, own, seed)
            except Exception:  # an inverse, say, that these values do not have
                self._known[index, move] = False
        return self._known[index, move]

    def has_suited(self, found: Any, moved: Any, seed: int) -> bool:
        """Whether moved inputs, of which the reference made this, suit it (`infinite`)."""
        return infinite.are_meant(found, lambda: self._tried(moved, seed, None))

    def come_to(self, moved: Any, seed: int) -> set[str]:
        """Return which operators do something with moved inputs (`idle`); none where the reference does not take them."""
        watch = idle.Idle(self._path)
        try:
            found = self._tried(moved, seed, None, watch)
        except Exception:  # an index, say, beyond its table
            return set()
        return watch.busy if self.has_suited(found, moved, seed) else set()

    def _shows(self, index: int, move: str, moved: Any, own: Any, seed: int) -> bool:
        """Whether moved inputs suit the reference, and show something new; what it draws itself (dropout) nobody can match."""
        found = self._tried(moved, seed, None)
        if not self.has_suited(found, moved, seed) and not (move == masks.MOVE and _are_numbers(found)):
            self.overflowed |= {index} if move == skewed.FAR else set()
            return False
        if move.startswith(one_value.OTHER):
            pairs = zip(tensors_of(found), tensors_of(self._tried(moved, seed, seed + 1)), strict=True)
            same = all(torch.allclose(widened(one), widened(other), rtol=1e-3) for one, other in pairs)
            return same and (
                move == one_value.TENSORS or neighbours.shapes_of(found) == neighbours.shapes_of(self._tried(own, seed, None))
            )
        if move.startswith(whole.MOVE):
            return whole.shows(self._tried(own, seed, None), found)
        if move == unread.MOVE:
            pairs = zip(tensors_of(found), tensors_of(self._tried(own, seed, None)), strict=True)
            return not all(torch.equal(one, other) for one, other in pairs)
        if move.startswith(f"{skewed.FARTHER} "):
            exact = skewed.follows_exactly(self._tried(own, seed, None), found, int(move.split()[1]))
            self.picked |= {index} if exact and not _is_short(moved) else set()
            return exact
        if move == skewed.FAR and index in self.picks:
            self._note_picked(index, moved, own, seed)
        return True

    def _note_picked(self, index: int, moved: Any, own: Any, seed: int) -> None:
        """Note a reference whose answer follows the scale of the inputs, beside picking some: no rounding is magnified."""
        larger, factor = skewed.scaled(own)
        follows = skewed.follows_scale(self._tried(own, seed, None), self._tried(larger, seed, None), factor)
        self.picked |= {index} if follows and not _is_short(moved) else set()


def _is_short(inputs: Any) -> bool:
    return any(one.is_floating_point() and one.element_size() <= _SHORT for one in tensors_of(inputs))


def _are_numbers(found: Any) -> bool:
    """Whether nothing is NaN: the greatest of a row that a mask hides is infinite, and kernels can say so."""
    return not any(bool(tensor.isnan().any()) for tensor in tensors_of(found))
