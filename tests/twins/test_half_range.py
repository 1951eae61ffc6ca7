"""A golden whose numbers end where float16 does says what a kernel of float16 would say, and changes nothing else."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from pypto_op.twins.half_range import flushed, half_range

INF = float("inf")


@pytest.mark.parametrize(
    ("golden", "expected"),
    [
        (lambda x: (x * x).sqrt(), [2.0, INF]),
        (lambda x: x.view(2, 1).transpose(0, 1)[0] - 1.0, [1.0, 299.0]),  # a view computes nothing
        (lambda x: torch.cumsum(x * 1e4, 0) * 1e-4, [2.0, INF]),
        (lambda x: x.clone().mul_(-400.0), [-800.0, -INF]),
        (lambda x: torch.softmax(x, 0), [0.0, 1.0]),
        (lambda x: torch.exp(x.masked_fill(x > 3, -1e30)), [pytest.approx(7.389, abs=1e-3), 0.0]),  # a mask, not a number
        (lambda x: torch.where(x > 3, torch.full_like(x, 1e9), x) * 0.0 + x, [2.0, 300.0]),
        (lambda x: torch.var(x * 300.0) * 0.0 + x, "nan"),  # what is hidden in one operator of torch counts too
        (lambda x: (x.double() * x).sqrt(), [2.0, 300.0]),
    ],
)
def test_numbers_beyond_float16_are_infinite(golden: Callable[[torch.Tensor], torch.Tensor], expected: list[float] | str) -> None:
    x = torch.tensor([2.0, 300.0])
    with half_range():
        found = golden(x)
    assert bool(found.isnan().all()) if expected == "nan" else found.tolist() == expected
    assert x.tolist() == [2.0, 300.0]


@pytest.mark.parametrize(
    ("golden", "expected"),
    [
        (lambda x: (x * x).sqrt(), [2.0**-40, 0.0]),
        (lambda x: x.view(2, 1).transpose(0, 1)[0] * 1.0, [2.0**-40, 2.0**-60]),
        (lambda x: x * 2.0**-30 * 2.0**-30 * 2.0**60, [2.0**-40, 0.0]),  # a kernel may take the last factor first, and need not
        (lambda x: (x.double() * x * x).sqrt().float(), [2.0**-60, 2.0**-90]),
    ],
)
def test_what_a_device_may_flush_is_0(golden: Callable[[torch.Tensor], torch.Tensor], expected: list[float]) -> None:
    x = torch.tensor([2.0**-40, 2.0**-60])
    with flushed():
        found = golden(x)
    assert found.tolist() == expected
    assert x.tolist() == [2.0**-40, 2.0**-60]
