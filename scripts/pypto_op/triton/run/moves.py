"""Which cases are judged once more on moved inputs, in which ways, and in which order."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field

from pypto_op.triton.run.case import Case
from pypto_op.triton.run.inputs import filled, masks, one_value, reaching, skewed, stretched, unread

_MOVES = (
    skewed.LOW,
    skewed.HIGH,
    skewed.FAR,
    one_value.OTHER,
    *stretched.MOVES,
    masks.MOVE,
    *[reaching.REACH] * reaching.TIMES,
    *[reaching.MEET] * reaching.MEETINGS,
    unread.MOVE,
)


@dataclass(frozen=True)
class Step:
    """One case, moved in one way.

    Attributes:
        turn: which move of the verification's it is; all cases of a turn belong to one pass.
        move: how the inputs are moved.
        seed: of the turn's pass.
        case: which.
        vary: weights that get other values.
        places: where extremes stand.
    """

    turn: int
    move: str
    seed: int
    case: Case = field(compare=False)
    index: int
    vary: tuple[str, ...] = ()
    places: dict[str, list[int]] | None = None


class Steps:
    """The steps of a verification.

    Args:
        cases: of the task; what becomes of them decides which steps there are.
        first: the seed of the first pass.
    """

    def __init__(self, cases: Sequence[Case], first: int) -> None:
        self._cases = cases
        # A kernel may read by what the values are, so what it did not read is judged on those of the first pass.
        self._seeds = [first if move == unread.MOVE else secrets.randbelow(2**31) for move in _MOVES]

    def first(self) -> Step | None:
        """Return the first step; None where there is none."""
        return self._from(0, 0)

    def after(self, step: Step) -> Step | None:
        """Return the step after one, as things stand; None after the last."""
        return self._from(step.turn, step.index + 1)

    def _from(self, turn: int, index: int) -> Step | None:
        """Return the first step from a turn and a case on whose case is right so far and may be moved so."""
        while turn < len(_MOVES):
            for case in self._cases[index:]:
                if case.judgement.ok and case.doubt is None and may_move(_MOVES[turn], case):
                    return self._of(turn, case)
            turn, index = turn + 1, 0
        return None

    def _of(self, turn: int, case: Case) -> Step:
        move = _MOVES[turn]
        vary = _variable(case) if move in (skewed.LOW, one_value.OTHER) else []
        turned = [filled.WEIGHTS] if move == reaching.REACH and case.reloads and not case.derived else []
        places = case.unread if move == unread.MOVE else None
        return Step(turn, move, self._seeds[turn], case, case.index, tuple(vary or turned), places)


def may_move(move: str, case: Case) -> bool:
    """Whether a case is judged once more with inputs moved so."""
    if move in case.lost:
        return False
    if move == reaching.REACH:
        return bool(case.idle) and not case.reached
    if move == reaching.MEET:
        return case.few if case.met else bool(case.idle)
    if move in stretched.MOVES:
        return case.redrawn
    if move in (unread.MOVE, masks.MOVE):
        return bool(case.unread if move == unread.MOVE else case.masks)
    return move != one_value.OTHER or case.one_value or bool(_variable(case))


def _variable(case: Case) -> list[str]:
    """Return the weights that are the same for every seed and that both models have.

    They vary in two passes: behind a relu none shows in `LOW`.
    """
    return taken(case, case.filled)


def taken(case: Case, names: list[str]) -> list[str]:
    """Return the weights among `names` that the implementation has."""
    return [name for name in names if name not in case.untaken]
