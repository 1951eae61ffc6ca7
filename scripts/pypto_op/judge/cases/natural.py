"""How much of a tolerance honest rounding needs: the golden beside its float64 self and two twins, on the same inputs.

Where that is much, a right kernel that adds up in another order fails, so the case must be judged by what is natural.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import torch

from pypto_op.backends.base import RunResult
from pypto_op.compare import TensorComparison, compare_leaves
from pypto_op.documents.policy import Policy, get_policy
from pypto_op.twins.reordering import OTHER_FORM, ROUNDED_OPERANDS
from pypto_op.twins.ties import Leaves
from pypto_op.vocabulary import Outcome

NATURAL = get_policy("twin@2")
"""The policy of a case whose tolerance is too tight for honest rounding."""

MOST = 0.25
"""Share of the tolerance that these may need: the greatest of many rounding errors varies by a factor of 2 to 3 from one
order of additions to the next (`judge.near_miss.ALIKE`), and other seeds come on top."""

WORST = "sequential"
"""The twin whose rounding errors grow fastest with the length of a sum."""

MEASURED = (WORST, ROUNDED_OPERANDS, OTHER_FORM)
"""The twins that are asked; the others would cost a run each and say less. Between 16-bit inputs and outputs a right kernel
rounds what a matrix product reads (weights of an attention, a score's gradient), which a golden
in float32 does not. A golden's other form rounds elsewhere."""


FURTHER_SEEDS, _STRIDE = 2, 1_000_033


def further_seeds(seed: int) -> tuple[int, ...]:
    """Return the other seeds on which honest rounding of a case is measured: the judge draws one that nobody has tried."""
    return tuple(seed + number * _STRIDE for number in range(1, FURTHER_SEEDS + 1))


def percent(share: float) -> str:
    """Return a share of a tolerance in words: 1.8 is "180 %"."""
    if share < 0.001:
        return "less than 0.1 %"
    return f"{100.0 * share:.2g} %" if share < 0.1 else f"{100.0 * share:.0f} %"


def natural_share(golden: Callable[..., RunResult], native: RunResult, policy: Policy) -> float:
    """Return how much of a tolerance honest rounding takes, 0 where nothing, above 1 where it exceeds it.

    One rounding of an output to its own dtype is no part of it, of either side: 16-bit tolerances are made for that.

    Args:
        golden: runs the golden on the inputs of the case; takes `twin` and `float64` as `ReferenceSession.golden`.
        native: what the golden answered as it stands.
        policy: the tolerance; a twin policy has room for whatever is natural.

    Returns:
        The worst output's share; inf where honest runs are not finite at the same places.
    """
    if policy.needs_twins:
        return 0.0
    return share_taken([golden(float64=True), *(golden(twin=name) for name in MEASURED)], native, policy)


def share_taken(honest: Sequence[RunResult], native: RunResult, policy: Policy) -> float:
    """Return what `natural_share` returns, from runs that exist: the golden in float64, and as the twins `MEASURED`."""
    sound = [run for run in honest if run.outcome is Outcome.OK and len(run.outputs) == len(native.outputs)]
    ways = [way for run in sound if run.others for way in (run.outputs, *run.others)]
    floating = [i for i, golden in enumerate(native.outputs) if golden.is_floating_point()]
    at_ties = {i: _parted([way[i] for way in ways], native.outputs[i], policy) for i in floating}
    return max((_share(run.outputs, native.outputs, at_ties, policy) for run in sound), default=0.0)


def _share(answer: Leaves, native: Leaves, at_ties: Mapping[int, torch.Tensor | None], policy: Policy) -> float:
    pairs = []
    for i, at_tie in at_ties.items():
        golden = native[i]
        mine = answer[i].to(golden.dtype)
        pairs.append((mine if at_tie is None else torch.where(at_tie, golden, mine), golden))
    if not pairs:
        return 0.0
    names = [str(place) for place in range(len(pairs))]
    found = compare_leaves([one for one, _ in pairs], [two for _, two in pairs], names=names, policy=policy).per_tensor
    return max(_share_of(leaf, pairs[place][1].dtype, policy) for place, leaf in enumerate(found))


def _parted(ways: Sequence[torch.Tensor], golden: torch.Tensor, policy: Policy) -> torch.Tensor | None:
    """Return where the right answers differ by more than the tolerance, or are not all finite: that is no rounding error."""
    if not ways:
        return None
    numbers = policy.for_dtype(str(golden.dtype))
    together = torch.stack([way.to(torch.float64) for way in ways])
    spread = together.amax(dim=0) - together.amin(dim=0)
    relative = float(numbers.get("rtol", numbers.get("mare", 0.0)))
    apart = torch.gt(spread, float(numbers.get("atol", 0.0)) + relative * golden.to(torch.float64).abs())
    finite = torch.isfinite(together)
    return apart | (finite.any(dim=0) & ~finite.all(dim=0))


def _share_of(leaf: TensorComparison, dtype: torch.dtype, policy: Policy) -> float:
    if leaf.special_mismatch_count:
        return math.inf
    used = leaf.max_violation or 0.0
    numbers = policy.for_dtype(leaf.dtype)
    relative = float(numbers.get("rtol", numbers.get("mare", 0.0)))
    rounding = min(torch.finfo(dtype).eps / relative, 1.0) if relative else 0.0
    if rounding == 1.0:  # the tolerance holds not even one rounding
        return used if used > 1.0 else 0.0
    return max(0.0, used - rounding) / (1.0 - rounding)
