"""Compares a kernel's outputs with the right ones, and tells no value of either.

What must agree whatever the policy: the number of outputs, each shape, each dtype, the places of NaN and Inf, the sign of Inf,
and every integer and bool. Finite floating elements go to the policy (pypto_op.documents.policy).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from pypto_op.comparison.bias import bias_condition
from pypto_op.comparison.measure import Measured, measure_exact, measure_floating
from pypto_op.comparison.result import Comparison, TensorComparison, mismatch_message, numeric_fields
from pypto_op.comparison.rules import Condition, Relative, Rule
from pypto_op.comparison.show import outliers, report_lines
from pypto_op.comparison.twin_bounds import TwinBounds, rule_for
from pypto_op.comparison.unread import ComparisonDict
from pypto_op.documents.policy import Policy, check_tolerance, get_policy
from pypto_op.errors import ContractError
from pypto_op.vocabulary import FailureCategory

__all__ = ["CompareError", "Comparison", "TensorComparison", "compare_leaves", "detailed_tensor_compare"]

_VARIATION = 16
"""An expectation varies if its range exceeds this many epsilons of its scale; below, it may be rounding."""


class CompareError(ContractError, TypeError, ValueError):
    """An argument that cannot be compared: not a tensor, one tolerance without the other, and so on."""


def compare_leaves(
    actual: Sequence[torch.Tensor],
    expected: Sequence[torch.Tensor],
    *,
    names: Sequence[str],
    policy: Policy,
    twins: Sequence[Sequence[torch.Tensor]] | None = None,
    bounds: Sequence[TwinBounds | None] = (),
) -> Comparison:
    """Compare all outputs of one case.

    Args:
        expected: the golden's outputs; an fp64 truth when `policy` is a twin policy.
        names: the outputs' names, as many as `expected`.
        twins: for a twin policy, the outputs of each honest twin.
        bounds: by output, what these twins allow; for who compares many outputs with the same ones.

    Returns:
        The comparison. A wrong number of outputs, or none at all, is a structural failure.

    Raises:
        CompareError: something is no tensor, names do not fit, or twins are missing, superfluous or
        misshapen.
    """
    if len(names) != len(expected):
        raise CompareError(f"{len(names)} names for {len(expected)} expected outputs")
    checked_twins = _check_twins(policy, expected, twins)
    if len(actual) != len(expected) or not expected:
        problem = (
            f"the candidate returned {len(actual)} output(s), {len(expected)} expected"
            if expected
            else "there is no output to compare"
        )
        return Comparison(False, [], FailureCategory.STRUCTURAL, problem)
    per_tensor = [
        _compare_one(left, right, name, policy, [twin[i] for twin in checked_twins], bounds[i] if bounds else None)
        for i, (left, right, name) in enumerate(zip(actual, expected, names, strict=True))
    ]
    failing = [tensor for tensor in per_tensor if not tensor.all_close]
    structural = [tensor for tensor in failing if tensor.category is FailureCategory.STRUCTURAL]
    if not failing:
        return Comparison(True, per_tensor, None, "")
    first = (structural or failing)[0]
    return Comparison(False, per_tensor, first.category, first.message)


def detailed_tensor_compare(
    actual: torch.Tensor,
    expected: torch.Tensor,
    *,
    tensor_name: str = "tensor",
    atol: float | None = None,
    rtol: float | None = None,
    policy: str | dict[str, Any] | Policy | None = None,
    twins: Sequence[torch.Tensor] | None = None,
    verbose: bool = True,
    max_outliers_display: int = 0,
    return_tensors: bool = False,
) -> ComparisonDict:
    """Compare one output with its golden and return what was found; never raise on a mismatch.

    Args:
        actual: the candidate's output, any shape, dtype and device.
        expected: the golden; tolerances scale with it.
        tensor_name: named in messages.
        atol, rtol: the rule |a - e| <= atol + rtol * |e|, exactly; give both or neither.
        policy: instead of tolerances, a policy (`pypto_op.documents.policy.get_policy`); the default is `allclose@1`.
        twins: with a twin policy, this output of each honest twin; `expected` is then the float64 truth.
        verbose: print the metrics (no tensor values).
        max_outliers_display: also print and return this many of the worst elements, with their values.
        return_tensors: also return `diff_tensor` and `tolerance_mask` (True where within tolerance).

    Returns:
        A dict of JSON data: the fields of `TensorComparison`, also under the reference helper's names. If it says
        `all_close: False` and the program ends without reading it, the program's exit code becomes 1.

    Raises:
        CompareError: something is no tensor, a tolerance stands alone, is negative or not finite, or
            clashes with `policy`; twins are missing, superfluous or misshapen.
    """
    chosen = _chosen_policy(atol, rtol, policy)
    if chosen.needs_twins and not twins:
        raise CompareError("a twin policy needs twins", remedy="give twins=..., as `pypto-op tests new` does")
    peers = _check_twins(chosen, [expected], [[twin] for twin in twins or ()])
    _check_count(max_outliers_display)
    comparison = _compare_one(actual, expected, str(tensor_name), chosen, [twin[0] for twin in peers])
    extra: dict[str, Any] = {}
    structural = comparison.category is FailureCategory.STRUCTURAL
    if not structural and (max_outliers_display > 0 or return_tensors):
        extra = outliers(actual, expected, chosen, max(0, max_outliers_display), return_tensors)
    if verbose:
        print("\n".join(report_lines(comparison, extra)))
    result = ComparisonDict(comparison.as_dict() | extra)
    result.watch(comparison)
    return result


def _check_count(count: object) -> None:
    if isinstance(count, bool) or not isinstance(count, int):
        raise CompareError("max_outliers_display is not an integer", remedy="give a count, 0 for none")


def _chosen_policy(atol: float | None, rtol: float | None, policy: str | dict[str, Any] | Policy | None) -> Policy:
    if atol is None and rtol is None:
        return get_policy(policy)
    if policy is not None:
        raise CompareError("policy and tolerances exclude each other", remedy="give one of them")
    if atol is None or rtol is None:
        given, missing = ("rtol", "atol") if atol is None else ("atol", "rtol")
        raise CompareError(f"{given} is given without {missing}", remedy="give both or neither")
    try:
        bounds = {"atol": check_tolerance(atol, "atol"), "rtol": check_tolerance(rtol, "rtol")}
    except ContractError as error:
        raise CompareError(error.problem, remedy=error.remedy) from None
    # Tolerances given by hand mean the textbook rule and nothing else.
    return get_policy({"name": "allclose", "version": 1, **bounds, "zero_guard": None})


def _check_twins(
    policy: Policy, expected: Sequence[torch.Tensor], twins: Sequence[Sequence[torch.Tensor]] | None
) -> Sequence[Sequence[torch.Tensor]]:
    if not policy.needs_twins:
        if twins:
            raise CompareError(f"policy {policy.id} takes no twins")
        return []
    if not twins:
        raise CompareError(f"policy {policy.id} needs the outputs of at least one honest twin")
    for number, twin in enumerate(twins):
        if len(twin) != len(expected):
            raise CompareError(f"twin {number} has {len(twin)} output(s), the truth {len(expected)}")
        for leaf, (mine, truth) in enumerate(zip(twin, expected, strict=True)):
            _check_tensor(mine, f"twin {number}, output {leaf}")
            _check_tensor(truth, f"truth, output {leaf}")
            if mine.shape != truth.shape or mine.dtype != twins[0][leaf].dtype:
                raise CompareError(f"twin {number}, output {leaf}: shape or dtype differs from its peers")
            if mine.is_floating_point() and truth.dtype != torch.float64:
                raise CompareError(f"the truth of output {leaf} is {truth.dtype}, not torch.float64")
    return twins


def _check_tensor(value: object, what: str) -> torch.Tensor:
    if not isinstance(value, torch.Tensor):
        raise CompareError(f"{what} is {type(value).__name__}, not a tensor", remedy="pass torch tensors")
    if type(value) not in (torch.Tensor, torch.nn.Parameter):
        raise CompareError(
            f"{what} is a {type(value).__name__}, a tensor subclass, which may compute its values late",
            remedy="pass plain tensors",
        )
    if value.layout != torch.strided or value.is_meta or value.is_quantized or value.is_nested:
        raise CompareError(f"{what} is not a plain dense tensor", remedy="pass a dense, materialised tensor")
    return value.detach()


def _compare_one(
    actual: torch.Tensor,
    expected: torch.Tensor,
    name: str,
    policy: Policy,
    twins: Sequence[torch.Tensor],
    bounds: TwinBounds | None = None,
) -> TensorComparison:
    actual, expected = _check_tensor(actual, f"{name}: actual"), _check_tensor(expected, f"{name}: expected")
    dtype = twins[0].dtype if twins else expected.dtype
    common: dict[str, Any] = {
        "name": name,
        "policy": policy.id,
        "shape": tuple(expected.shape),
        "dtype": str(dtype).removeprefix("torch."),
        "total_elements": expected.numel(),
    }
    problem = _structural_problem(actual, expected, dtype)
    if problem:
        failed = FailureCategory.STRUCTURAL
        return TensorComparison(all_close=False, category=failed, message=f"{name}: {problem}", **common)
    if twins and (dtype.is_floating_point or dtype.is_complex):
        bounds = bounds or TwinBounds(policy, common["dtype"], expected, twins)
    with torch.no_grad():
        measured, rule = _measure(actual, expected, dtype, policy, twins, bounds)
    conditions = list(rule.conditions()) if rule and measured.finite else []
    if bounds is not None and isinstance(rule, Relative) and measured.finite:
        numbers, factor = policy.for_dtype(common["dtype"]), policy.as_dict()["factor"]
        bias = bias_condition(numbers, factor, actual, expected, lambda: bounds.bias, rule.clamp)
        conditions += [bias] if bias is not None else []
    zero, constant = _is_zero(measured, policy, common["dtype"]), _is_constant(measured, dtype)
    guard = policy.zero_guard(common["dtype"]) if rule else None
    if guard and measured.finite:
        share = measured.actual_max / measured.expected_max if measured.expected_max else 1.0
        # Capped at 1, so that a right output's share says nothing about the golden's values.
        conditions.append(Condition("not_all_zero", min(share, 1.0), guard[0], not zero))
    fields = numeric_fields(measured, expected.shape, expected.numel())
    close = fields["out_of_tolerance_count"] == 0 and all(condition.ok for condition in conditions)
    allowance = rule.allowance() if rule else (0.0, 0.0)
    message = "" if close else mismatch_message(name, fields, measured, expected.shape, expected.numel(), conditions, allowance)
    return TensorComparison(
        all_close=close,
        category=None if close else FailureCategory.PRECISION,
        message=message,
        zero_output=zero,
        constant_output=constant,
        conditions=tuple(conditions),
        **common,
        **fields,
    )


def _structural_problem(actual: torch.Tensor, expected: torch.Tensor, dtype: torch.dtype) -> str | None:
    if actual.shape != expected.shape:
        return f"the shape is {list(actual.shape)}, expected {list(expected.shape)}"
    if actual.dtype != dtype:
        return f"the dtype is {actual.dtype}, expected {dtype}"
    return None


def _measure(
    actual: torch.Tensor,
    expected: torch.Tensor,
    dtype: torch.dtype,
    policy: Policy,
    twins: Sequence[torch.Tensor],
    bounds: TwinBounds | None,
) -> tuple[Measured, Rule | None]:
    if not (dtype.is_floating_point or dtype.is_complex):
        return measure_exact(actual, expected), None
    rule = rule_for(policy, str(dtype), expected, twins, bounds)
    return measure_floating(actual, expected, rule, twins), rule


def _is_zero(measured: Measured, policy: Policy, dtype: str) -> bool:
    ratio, floor = policy.zero_guard(dtype) or get_policy().zero_guard(dtype) or (0.0, 0.0)
    if not measured.finite or measured.expected_max == 0 or measured.expected_max < floor:
        return False
    return measured.actual_max < ratio * measured.expected_max


def _is_constant(measured: Measured, dtype: torch.dtype) -> bool:
    if measured.finite < 2 or dtype.is_complex:
        return False
    (low, high), (expected_low, expected_high) = measured.actual_range, measured.expected_range
    rounding = 0.0
    if dtype.is_floating_point:
        # Below the least normal number steps no longer shrink: what is left of gradients that vanish is some of them.
        kind = torch.finfo(dtype)
        rounding = _VARIATION * kind.eps * max(measured.expected_max, kind.tiny)
    return low == high and expected_high - expected_low > rounding
