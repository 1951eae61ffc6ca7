"""Another draw of the fresh seed where sums happen to cancel: there honest rounding alone nearly fills the tolerance.

`harness new` tries a case on seeds of its own; the judge's second seed is one that nobody tried. Where a kernel misses the
tolerance on it, and honest orders of the golden take more than a quarter of that tolerance there (`judge.natural.MOST`), the
draw is left, at most `MOST_DRAWS` times. The next seeds follow from the first, and a wrong kernel fails on them too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from pypto_op.backends.base import RunResult
from pypto_op.judge.natural import MOST, natural_share
from pypto_op.judge.reasons import Reason
from pypto_op.judge.records import TrialVerdict
from pypto_op.policy import Policy
from pypto_op.vocabulary import Outcome

if TYPE_CHECKING:
    from pypto_op.backends.base import Value

MOST_DRAWS = 3
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
    """Whether honest orders of the golden take more of the tolerance on these inputs than a case may leave them.

    Args:
        golden: runs it on inputs (`References.golden`).
        inputs: of the draw.
        policy: the tolerance.
    """
    native = golden(inputs)
    if native.outcome is not Outcome.OK:
        return False
    return natural_share(lambda **how: golden(inputs, **how), native, policy) > MOST
