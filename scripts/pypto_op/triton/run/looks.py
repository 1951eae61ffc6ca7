"""How many further looks at what the host hands to launches a verification takes, and when the judged pass comes among them.

A host that chooses between two tensors by values chooses alike in two passes every second time, in two passes and six looks
once in 128 times. A look is a pass whose numbers nobody compares. It comes at a random place beside the second pass and is the
same to the implementation, which therefore cannot behave in one of them alone.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator

_MOST = 6
_SECONDS, _SHARE = 0.5, 0.1
"""What looks may take: as long, or this share of the verification."""


def turns(began: float, took: float) -> Iterator[bool]:
    """Yield what to run next: False for a look, True, once, for the judged pass.

    Args:
        began: when the verification did (`time.monotonic`).
        took: seconds that a look is thought to take.
    """
    place, spent, judged = secrets.randbelow(_MOST + 1), 0.0, False
    for number in range(_MOST):
        if spent + took > max(_SECONDS, _SHARE * (time.monotonic() - began)):
            break
        if number == place:
            judged = True
            yield True
        begin = time.monotonic()
        yield False
        took = time.monotonic() - begin
        spent += took
    if not judged:
        yield True
