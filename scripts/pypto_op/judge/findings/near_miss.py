"""The near-miss rule (design, row 5): does a failure look like natural rounding rather than like a defect?

The debugger seed's own sign, a relative difference far below rtol, can never accompany a failure: an element that fails
has |difference| > rtol * |truth|. What was meant is an error that is small beside the scale of the output. The rule only
flags `cpu_reproducer_candidate`, upon which `pypto-op reproduce` finds out; it never turns a FAIL into a PASS.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pypto_op.compare import TensorComparison
from pypto_op.documents.policy import Policy

if TYPE_CHECKING:
    import torch

SCALE_SHARE = 0.01
"""Error relative to the output's scale, as a share of rtol, below which a failure may be rounding: then only cells below
about a hundredth of the scale fail at all, and how many, and by how much, depends on how large the output is."""
SMALL_CELL = 1e-3
"""A cell below this share of the output's scale is one where relative tolerances mean little."""


_EPSILON = 2.0**-23
"""Of float32, in which goldens and kernels accumulate."""


_FAR = 0.1
"""An error of so much beside the output's scale is no rounding, so no honest run is asked."""

ALIKE = 4.0
"""The kernel's error may be so many times the worst honest run's and still count as alike: the greatest of many rounding
errors varies by a factor of 2 to 3 from one order of additions to the next."""


def is_near_miss(
    leaf: TensorComparison,
    actual: torch.Tensor,
    expected: torch.Tensor,
    policy: Policy,
    condition: float | None = None,
    honest: Callable[[], Iterator[torch.Tensor]] | None = None,
) -> bool:
    """Say whether a failing output is a near miss.

    Either the error is tiny beside the output's scale; or every failing element lies where the reference itself is tiny,
    and the error is small beside the scale; or the golden's sums cancel, and the error beside the scale is no more than
    float32 epsilon times their condition number; or honest runs of the golden are as far from it, which is what
    `pypto-op reproduce` measures. An error that a twin policy refuses is none: honest code was seen to do better on the same
    inputs.

    Args:
        condition: condition number of the golden's sum that a case of `cancellation_stress` is about.
        honest: yields the output of each honest run of the golden; asked last, and as few as tell.
    """
    if leaf.special_mismatch_count or leaf.zero_output or leaf.constant_output or leaf.rel_to_scale is None:
        return False
    if policy.needs_twins or not actual.is_floating_point():
        return False
    numbers = policy.for_dtype(leaf.dtype)
    rtol = float(numbers["rtol"] if policy.name == "allclose" else numbers["mare"])
    if leaf.rel_to_scale < max(rtol * SCALE_SHARE, _EPSILON * (condition or 0.0)):
        return True
    if leaf.rel_to_scale < rtol and _only_small_cells_fail(actual, expected, numbers):
        return True
    return leaf.rel_to_scale < _FAR and honest is not None and _is_alike(actual, expected, honest())


def _is_alike(actual: torch.Tensor, expected: torch.Tensor, honest: Iterable[torch.Tensor]) -> bool:
    """Whether greatest and mean error are at most `ALIKE` times the worst of the honest runs."""
    greatest, mean = _off(actual, expected)
    worst, usual = 0.0, 0.0
    for run in honest:
        if run.shape == expected.shape:
            far, typical = _off(run.to(expected.dtype), expected)
            worst, usual = max(worst, far), max(usual, typical)
            if greatest <= ALIKE * worst and mean <= ALIKE * usual:
                return True
    return False


def _off(actual: torch.Tensor, expected: torch.Tensor) -> tuple[float, float]:
    import torch

    off = (actual.to(torch.float64) - expected.to(torch.float64)).abs()
    off = off[torch.isfinite(off)]
    return (float(off.max()), float(off.mean())) if off.numel() else (0.0, 0.0)


def _only_small_cells_fail(actual: torch.Tensor, expected: torch.Tensor, numbers: Mapping[str, Any]) -> bool:
    import torch

    wide, truth = actual.to(torch.float64), expected.to(torch.float64)
    finite = torch.isfinite(wide) & torch.isfinite(truth)
    if not bool(finite.any()):
        return False
    magnitude = truth[finite].abs()
    failing = (wide[finite] - truth[finite]).abs() > _allowed(magnitude, numbers)
    if not bool(failing.any()):
        return False
    return float(magnitude[failing].max()) < SMALL_CELL * float(magnitude.max())


def _allowed(magnitude: torch.Tensor, numbers: Mapping[str, Any]) -> torch.Tensor:
    """Return what the policy allows at each element; of mere_mare, the bound on the greatest relative error."""
    if "atol" in numbers:
        return float(numbers["atol"]) + float(numbers["rtol"]) * magnitude
    return float(numbers["mare"]) * magnitude.clamp(min=float(numbers["clamp"]))
