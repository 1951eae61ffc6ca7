"""What a comparison found: plain numbers, never a tensor's values unless somebody asks for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pypto_op.comparison.measure import Measured
from pypto_op.comparison.numbers import json_number
from pypto_op.comparison.rules import Condition
from pypto_op.comparison.walk import unravel
from pypto_op.vocabulary import FailureCategory


@dataclass(frozen=True)
class TensorComparison:
    """The comparison of one output. All numbers are JSON numbers: the greatest float64 stands for infinity."""

    name: str  # the output's name
    all_close: bool  # the verdict
    category: FailureCategory | None  # None, `structural` (shape, dtype) or `precision`
    message: str  # what is wrong, in the manner of torch.testing; no tensor values
    policy: str  # `name@version` of the rule
    # shape, dtype: of the expectation (of the twins, when the policy has twins)
    shape: tuple[int, ...]
    dtype: str
    total_elements: int  # elements of the expectation
    finite_elements: int = 0  # elements finite on both sides; 0 means that no difference was ever taken
    out_of_tolerance_count: int = 0  # finite elements that break the rule, and wrong NaN or Inf places
    fail_fraction: float = 0.0  # their share; also under the name `out_of_tolerance_ratio`
    max_abs_diff: float | None = None  # greatest |a - e| over finite elements; also `max_diff`
    # mean_diff, std_diff: mean and population standard deviation of |a - e|
    mean_diff: float | None = None
    std_diff: float | None = None
    # max_out_of_tolerance_diff, mean_out_of_tolerance_diff: the same over elements that break the rule
    max_out_of_tolerance_diff: float | None = None
    mean_out_of_tolerance_diff: float | None = None
    max_rel_diff: float | None = None  # greatest |a - e| / max(|e|, 1e-12)
    rel_to_scale: float | None = None  # max_abs_diff / max |e|; 0 when both are 0
    max_violation: float | None = None  # greatest |a - e| as a multiple of what the rule allows there; above 1 is a failure
    ulp_max: float | None = None  # greatest distance in representable numbers of the dtype; None for complex, ints and bools
    worst_index: tuple[int, ...] | None = None  # where max_violation is, or the first wrong NaN or Inf; None when all is equal
    # nan_actual, nan_expected, inf_actual, inf_expected: how many elements are NaN or Inf
    nan_actual: int = 0
    nan_expected: int = 0
    inf_actual: int = 0
    inf_expected: int = 0
    special_mismatch_count: int = 0  # elements whose NaN, Inf or sign of Inf disagrees
    sign_bias: float | None = None  # (elements above - elements below) / (elements that differ), in [-1, 1]; 0 when none differs
    zero_output: bool = False  # the output is all zero at the expectation's scale
    constant_output: bool = False  # the output is one constant where the expectation varies
    conditions: tuple[Condition, ...] = ()  # what the policy demands of the whole tensor

    def as_dict(self) -> dict[str, Any]:
        """Return every field as JSON data, with the names of the reference helper beside ours."""
        data = {key: value for key, value in vars(self).items() if key != "conditions"}
        data["category"] = None if self.category is None else self.category.value
        data["shape"] = list(self.shape)
        data["worst_index"] = None if self.worst_index is None else list(self.worst_index)
        data["conditions"] = [condition.as_dict() for condition in self.conditions]
        data["tensor_name"] = self.name
        data["max_diff"] = self.max_abs_diff
        data["out_of_tolerance_ratio"] = self.fail_fraction
        return data


@dataclass(frozen=True)
class Comparison:
    """The comparison of all outputs of one case."""

    all_close: bool  # every leaf is close, and there is at least one
    per_tensor: list[TensorComparison]  # one entry per leaf; empty when the number of leaves is wrong
    category: FailureCategory | None  # None, `structural` or `precision`
    message: str  # the first failing leaf's message, or what is wrong with the number of leaves

    def as_dict(self) -> dict[str, Any]:
        """Return the comparison as JSON data."""
        return {
            "all_close": self.all_close,
            "category": None if self.category is None else self.category.value,
            "message": self.message,
            "per_tensor": [tensor.as_dict() for tensor in self.per_tensor],
        }


def numeric_fields(measured: Measured, shape: Sequence[int], total: int) -> dict[str, Any]:
    """Return the fields of TensorComparison that are numbers about the differences."""
    count = max(measured.finite, 1)
    mean = measured.diff_sum / count
    variance = max(measured.diff_squares / count - mean * mean, 0.0)
    bad = measured.bad + measured.special_mismatches
    differing = measured.above + measured.below
    worst = measured.worst_at
    return {
        "finite_elements": measured.finite,
        "out_of_tolerance_count": bad,
        "fail_fraction": bad / total if total else 0.0,
        "max_abs_diff": json_number(measured.diff_max),
        "mean_diff": json_number(mean),
        "std_diff": json_number(variance**0.5) if variance == variance else json_number(mean),
        "max_out_of_tolerance_diff": json_number(measured.bad_diff_max),
        "mean_out_of_tolerance_diff": json_number(measured.bad_diff_sum / max(measured.bad, 1)),
        "max_rel_diff": json_number(measured.rel_max),
        "rel_to_scale": json_number(_relative_to_scale(measured)),
        "max_violation": json_number(measured.violation_max),
        "ulp_max": None if measured.ulp_max is None else json_number(measured.ulp_max),
        "worst_index": None if worst is None else tuple(unravel(worst, shape)),
        "nan_actual": measured.nan[0],
        "nan_expected": measured.nan[1],
        "inf_actual": measured.inf[0],
        "inf_expected": measured.inf[1],
        "special_mismatch_count": measured.special_mismatches,
        "sign_bias": (measured.above - measured.below) / differing if differing else 0.0,
    }


def _relative_to_scale(measured: Measured) -> float:
    if measured.diff_max == 0:
        return 0.0
    return measured.diff_max / measured.expected_max if measured.expected_max else float("inf")


def mismatch_message(
    name: str,
    fields: dict[str, Any],
    measured: Measured,
    shape: Sequence[int],
    total: int,
    conditions: Sequence[Condition],
    allowance: tuple[float | None, float | None],
) -> str:
    """Say how an output differs, in the manner of torch.testing, without any value of either side."""
    bad = fields["out_of_tolerance_count"]
    lines = [f"{name}: tensor-likes are not close!", ""]
    if bad or total:
        lines.append(f"Mismatched elements: {bad} / {total} ({100 * fields['fail_fraction']:.1f}%)")
    if measured.special_mismatches:
        where = tuple(unravel(measured.special_at or 0, shape))
        count = measured.special_mismatches
        lines.append(f"NaN, Inf or the sign of Inf disagree in {count} element(s), first at index {where}")
    greatest = (
        ("absolute", measured.diff_max, measured.diff_max_at, allowance[0]),
        ("relative", measured.rel_max, measured.rel_max_at, allowance[1]),
    )
    for word, value, flat, allowed in greatest:
        at = "" if flat is None else f" at index {tuple(unravel(flat, shape))}"
        bound = "" if allowed is None else f" (up to {allowed:g} allowed)"
        lines.append(f"Greatest {word} difference: {value:g}{at}{bound}")
    for condition in conditions:
        if not condition.ok:
            lines.append(_condition_line(condition))
    return "\n".join(lines)


def _condition_line(condition: Condition) -> str:
    if condition.name == "not_all_zero":
        return "The output is zero at the expectation's scale, which no tolerance excuses"
    return f"{condition.name.upper()} is {condition.value:g}, the limit is {condition.limit:g}"
