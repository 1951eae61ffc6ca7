"""Draws a case again where chance spoiled its fresh seed: sums cancel, or a small input came out as with the first seed.

`harness new` tries a case on seeds of its own; the judge's second seed is one that nobody tried. Where a kernel misses the
tolerance on it, and honest orders of the golden take more than a quarter of that tolerance there
(`judge.cases.natural.MOST`), the draw is left, at most `MOST_DRAWS` times. The next seeds follow from the first, and a wrong
kernel fails on them too.

Three lengths below 20 are the same for two seeds once in 8,000 verdicts, and one length once in 20. Such an input looks as
if it never varied (`variety`). So a draw that repeats a small input is left too, before any kernel sees it (`apart`). An
input that no draw changes is not mended by this.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TYPE_CHECKING

from pypto_op.backends.base import RunResult
from pypto_op.documents.policy import Policy
from pypto_op.judge.cases.inputs import digest, tensors_in
from pypto_op.judge.cases.natural import MOST, natural_share
from pypto_op.judge.findings.reasons import Reason
from pypto_op.judge.findings.records import TrialVerdict
from pypto_op.vocabulary import Outcome

if TYPE_CHECKING:
    from pypto_op.backends.base import Value

MOST_DRAWS = 3
FEW = 64
"""Elements of an input that two seeds may draw alike by chance; of more, a table or a mask never is."""
_STRIDE = 7_368_787
_SEED_LIMIT = 2**31 - 1

Golden = Callable[..., RunResult]


def may_be_redrawn(trials: Sequence[TrialVerdict], policy: Policy) -> bool:
    """Whether the latest trial is a second one that misses a tolerance by its numbers, and by nothing else."""
    return len(trials) > 1 and trials[-1].reasons == (Reason.MISMATCH,) and not policy.needs_twins


def draws(seed: int) -> Iterator[int]:
    """Yield the seeds that take the place of `seed`, in order."""
    for number in range(1, MOST_DRAWS + 1):
        yield (seed + number * _STRIDE) % _SEED_LIMIT


def cancels(golden: Golden, inputs: Sequence[Value], policy: Policy) -> bool:
    """Whether honest orders of the golden take more of the tolerance on these inputs than a case may leave them."""
    native = golden(inputs)
    if native.outcome is not Outcome.OK:
        return False
    return natural_share(lambda **how: golden(inputs, **how), native, policy) > MOST


def apart(first: Sequence[Value], seed: int, make: Callable[[int], Sequence[Value]], fixed: Collection[int] = ()) -> list[int]:
    """Return the draws to leave for one that repeats fewer of the small inputs of another seed; the last one is to be used.

    Args:
        make: makes the inputs of a seed; what it raises is raised.
        fixed: places of inputs that are the same for every seed, and shall be.

    Returns:
        `seed` and its followers up to the best one; `[seed]` where none repeats less, so also where an input never varies.
    """
    small = [place for place, value in enumerate(first) if place not in fixed and _is_small(value)]
    if not small:
        return [seed]
    tried, best, fewest = [seed], 1, len(small) + 1
    for other in (seed, *draws(seed)):
        made = make(other)
        alike = sum(place < len(made) and digest([made[place]]) == digest([first[place]]) for place in small)
        tried += [other] if other != seed else []
        if alike < fewest:
            best, fewest = len(tried), alike
        if not alike:
            break
    return tried[:best]


def _is_small(value: Value) -> bool:
    found = tensors_in([value])
    return bool(found) and sum(tensor.numel() for tensor in found) <= FEW
