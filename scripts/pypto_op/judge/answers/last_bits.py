"""Is a refused element as right as float32 can have it? The golden is asked on inputs that are moved by their last bits.

Sums of 16-bit inputs are exact in float32, so no order of the golden's additions shows that they cancel. A kernel that multiplies
each term by a factor first, `beta * a - beta * b`, rounds each product: what is left is off by last bits of the terms, and a
tolerance for the difference refuses it in every second draw.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import torch

from pypto_op.backends.base import RunResult
from pypto_op.compare import TensorComparison
from pypto_op.documents.policy import Policy
from pypto_op.judge.answers.other_rounding import LAST_BITS
from pypto_op.vocabulary import Outcome

if TYPE_CHECKING:
    from pypto_op.backends.base import Value

HALF_A_UNIT = 2.0**-24
"""What rounding a product to float32 may change of it."""

_DRAWS, _ROUNDINGS = 4, 4.0
"""So often inputs are moved, each element up or down by chance; and so many such changes are right beside the greatest seen."""

_FEW = 0.01
"""Share of an output's elements that may be off so: where terms cancel they seldom do so to nothing."""

Outputs = Sequence[torch.Tensor]


def answers(golden: Callable[..., RunResult], inputs: Sequence[Value]) -> list[Outputs]:
    """Return the golden's answer in float64, and those on moved inputs; [] where it does not run so.

    Args:
        golden: runs it on inputs; takes `float64` as `ReferenceSession.golden`.
    """
    found: list[Outputs] = []
    for draw in range(_DRAWS + 1):
        generator = torch.Generator().manual_seed(draw)
        run = golden([_moved(value, generator if draw else None) for value in inputs], float64=True)
        if run.outcome is not Outcome.OK or (found and len(run.outputs) != len(found[0])):
            return []
        found.append(run.outputs)
    return found


def explain(
    leaf: TensorComparison,
    actual: torch.Tensor,
    expected: torch.Tensor,
    policy: Policy,
    moved: Callable[[], Sequence[torch.Tensor]],
) -> bool:
    """Return whether what few elements are off by, beyond a tolerance, is what last bits of the inputs change there.

    Args:
        leaf: the comparison; it failed.
        expected: what it was compared with, of the same shape.
        policy: the tolerance, of no twins.
        moved: gives the output as `answers` has it; not asked where more is wrong than that.
    """
    numbers = policy.for_dtype(str(actual.dtype))
    if leaf.special_mismatch_count or leaf.zero_output or leaf.constant_output or not set(numbers) <= {"atol", "rtol"}:
        return False
    if not actual.is_floating_point() or leaf.out_of_tolerance_count > max(1.0, _FEW * actual.numel()):
        return False
    found = [one.to(torch.float64) for one in moved()]
    if not found or any(one.shape != actual.shape for one in found):
        return False
    truth, *others = found
    wanted = expected.to(torch.float64)
    error = (actual.to(torch.float64) - wanted).abs()
    off = error > float(numbers.get("atol", 0.0)) + float(numbers.get("rtol", 0.0)) * wanted.abs()
    spread = torch.stack([(one - truth).abs() for one in others]).amax(dim=0)
    right = (error <= _ROUNDINGS * spread) & (error <= LAST_BITS * truth.abs().nan_to_num(0.0, 0.0, 0.0).max())
    return bool(right[off].all())


def _moved(value: Value, generator: torch.Generator | None) -> Value:
    """Return a floating tensor in float64, each element half a unit up or down; any other value as it is."""
    if not isinstance(value, torch.Tensor) or not value.is_floating_point():
        return value
    wide = value.to(torch.float64)
    if generator is None:
        return wide
    signs = torch.randint(0, 2, wide.shape, generator=generator, dtype=torch.float64) * 2.0 - 1.0
    return wide * (1.0 + HALF_A_UNIT * signs)
