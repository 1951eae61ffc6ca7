"""Faults planted into a golden's own answer are judged by the real rule, a twin policy's too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pypto_op.documents.policy import Policy, get_policy
from pypto_op.judge.self_test import planted_faults
from pypto_op.judge.self_test.planted_faults import Planted

from .honest_forms import Judge


def plant(golden: Callable[..., Any], policy: Policy, *values: Any, judge: Callable[..., bool] | None = None) -> Planted:
    """Plant faults into a golden's answer under the real rule, or under another judge."""
    real = Judge(golden, values, policy)
    far = planted_faults.far_of(real.reference, [policy])
    return planted_faults.plant(real.reference.native.outputs, judge or (lambda wrong: not real.takes(wrong)), far)


def golden_of_three(x: Any, y: Any, n: Any) -> Any:
    return (x.unsqueeze(-1) * 3).sum(-1), x + y, n + 1


@pytest.mark.parametrize("policy", ["allclose@1", "twin@2"])
def test_planted_faults_are_seen_under_the_policy_itself(policy: str) -> None:
    import torch

    torch.manual_seed(1)
    planted = plant(golden_of_three, get_policy(policy), torch.randn(5, 4), torch.randn(5, 4), torch.randint(0, 9, (5,)))
    assert planted.missed == ()
    kinds = {fault for fault, _ in planted.seen}
    assert kinds >= {*planted_faults.NEEDED, "a dropped output", "swapped with output 0", "another dtype", "reversed rows"}


def test_a_fault_that_a_tolerance_hides_is_not_called_one_and_a_judge_that_errs_is_told() -> None:
    import torch

    values = [torch.linspace(1.0, 2.0, 6).reshape(3, 2)]
    blind = get_policy({"name": "allclose", "version": 1, "atol": 1e3, "rtol": 0.0})
    planted = plant(lambda x: x * 1, blind, *values)
    assert not {fault for fault, _ in planted.seen} & set(planted_faults.NEEDED)
    for policy in ("allclose@1", "twin@2"):
        missed = plant(lambda x: x * 1, get_policy(policy), *values, judge=lambda wrong: False).missed
        assert "twice as large (output 0)" in missed and "another dtype (output 0)" in missed
