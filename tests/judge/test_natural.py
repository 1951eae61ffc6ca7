"""How much of a tolerance honest rounding takes: a kernel between 16-bit tensors rounds what its matrix products read."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from pypto_op.backends.base import RunResult
from pypto_op.documents.policy import get_policy
from pypto_op.judge.cases.natural import MOST, WORST, natural_share, share_taken
from pypto_op.twins.reordering import Reordered
from pypto_op.vocabulary import Outcome


def _score_gradient(dtype: torch.dtype) -> Any:
    """Return a golden: the gradient of q in attention, `weights * (dweights - dot)` times k, in float32 or wider."""
    generator = torch.Generator().manual_seed(3)
    q, k, v, dout = (2.0 * torch.randn(96, 32, generator=generator) for _ in range(4))
    inputs = [value.to(dtype) for value in (q, k, v, dout)]

    def golden(*, float64: bool = False, twin: str = "golden") -> RunResult:
        wide = torch.float64 if float64 else torch.float32
        with Reordered(twin, storage=dtype):
            q, k, v, dout = (value.to(wide) for value in inputs)
            weights = torch.softmax(torch.matmul(q, k.T) * 0.3, dim=-1)
            dot = (dout * torch.matmul(weights, v)).sum(dim=-1, keepdim=True)
            answer = torch.matmul(weights * (torch.matmul(dout, v.T) - dot), k)
        return RunResult(Outcome.OK, outputs=[answer if float64 else answer.to(dtype)])

    return golden


def test_rounding_what_a_product_reads_is_honest_between_16_bit_tensors() -> None:
    golden, policy = _score_gradient(torch.float16), get_policy("allclose@1")
    native = golden()
    without = share_taken([golden(float64=True), golden(twin=WORST)], native, policy)
    assert without < MOST / 2 < MOST < natural_share(golden, native, policy)


def test_it_is_not_between_float32_tensors() -> None:
    golden, policy = _score_gradient(torch.float32), get_policy("allclose@1")
    native = golden()
    assert natural_share(golden, native, policy) == share_taken([golden(float64=True), golden(twin=WORST)], native, policy)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
def test_a_twin_policy_has_room_for_it(dtype: torch.dtype) -> None:
    golden = _score_gradient(dtype)
    assert natural_share(golden, golden(), get_policy("twin@2")) == 0.0
