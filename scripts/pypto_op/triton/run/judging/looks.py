"""How many further looks at what the host hands to launches a verification takes, and when the judged pass comes among them.

A host that chooses between two tensors by values chooses alike in two passes every second time, in two passes and six looks
once in 128 times. A look is a pass whose numbers nobody compares. It comes at a random place beside the second pass and is the
same to the implementation, which therefore cannot behave in one of them alone. Inputs of looks lie on either side or around zero:
by the sign of a sum, a host would choose alike in all of them else.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator
from enum import Enum

from pypto_op.triton.run.inputs import skewed

_MOST = 6
_SECONDS, _SHARE = 0.5, 0.1
"""What looks may take: as long of processor time, which a busy machine does not stretch, or this share of the verification."""
_MOVES = ("", skewed.UP, skewed.LOW)


def move() -> str:
    """Return how the inputs of a look are moved."""
    return secrets.choice(_MOVES)


class Turn(Enum):
    """What is to run next."""

    JUDGED = "the judged pass"
    LOOK = "a look"
    LOOK_BEFORE_LOOK = "a look, after which another one is likely"


def turns(began: float, took: float, spent: Callable[[], float]) -> Iterator[Turn]:
    """Yield what to run next: some looks, and once the judged pass.

    Args:
        began: when the verification did (`time.monotonic`).
        took: seconds of processor time that a look is thought to take.
        spent: returns what all looks took so far.
    """
    place = secrets.randbelow(_MOST + 1)
    judged = False
    for number in range(_MOST):
        if not _is_room(began, spent() + took):
            break
        if number == place:
            judged = True
            yield Turn.JUDGED
        before = spent()
        last = number + 1 in (place, _MOST) or not _is_room(began, before + 2 * took)
        yield Turn.LOOK if last else Turn.LOOK_BEFORE_LOOK
        took = spent() - before or took
    if not judged:
        yield Turn.JUDGED


def _is_room(began: float, seconds: float) -> bool:
    return seconds <= max(_SECONDS, _SHARE * (time.monotonic() - began))
