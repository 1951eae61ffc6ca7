"""What `detailed_tensor_compare` prints, and the values that it hands out when asked."""

from __future__ import annotations

from typing import Any

import torch

from pypto_op.comparison.numbers import as_int64, as_wide, int_distance, json_number, special_kind
from pypto_op.comparison.result import TensorComparison
from pypto_op.comparison.twin_bounds import rule_for
from pypto_op.comparison.walk import unravel
from pypto_op.documents.policy import Policy


def report_lines(comparison: TensorComparison, extra: dict[str, Any]) -> list[str]:
    """Return the printed lines: verdict, metrics, the mismatch if any, and what `outliers` returned."""
    verdict = "close" if comparison.all_close else "NOT CLOSE"
    shape = "x".join(map(str, comparison.shape)) or "0-d"
    lines = [f"{comparison.name} [{comparison.dtype} {shape}] {verdict} under {comparison.policy}"]
    if comparison.max_abs_diff is not None:
        metrics = ("max_abs_diff", "max_rel_diff", "rel_to_scale", "max_violation", "fail_fraction", "sign_bias")
        lines.append("  " + "  ".join(f"{key}={getattr(comparison, key):.3g}" for key in metrics))
    lines += [f"  {line}" for line in comparison.message.splitlines()[1:] if line]
    if comparison.max_abs_diff is None:
        lines.append(f"  {comparison.message}")
    for row, index in enumerate(extra.get("outlier_indices", [])):
        first, second = extra["outlier_values1"][row], extra["outlier_values2"][row]
        lines.append(f"  {tuple(index)}: actual {first}, expected {second}")
    return lines


def outliers(actual: torch.Tensor, expected: torch.Tensor, policy: Policy, count: int, with_tensors: bool) -> dict[str, Any]:
    """Return the `count` worst elements with their values, and the difference and mask tensors if asked for.

    Keys: `outlier_indices`, `outlier_values1` (actual), `outlier_values2` (expected), `outlier_diffs`,
    `outlier_relative_diffs`; `diff_tensor` (float64) and `tolerance_mask`. Needs memory of several times
    the tensor.
    """
    diff, bad = _element_verdicts(actual.detach(), expected.detach(), policy)
    data: dict[str, Any] = {}
    if with_tensors:
        data["diff_tensor"] = diff.reshape(expected.shape)
        data["tolerance_mask"] = ~bad.reshape(expected.shape)
    if count > 0:
        candidates = bad.nonzero().reshape(-1)
        order = diff[candidates].argsort(descending=True, stable=True)[:count]
        chosen = candidates[order].tolist()
        left, right = actual.detach().cpu().reshape(-1), expected.detach().cpu().reshape(-1)
        magnitude = right.abs() if right.dtype.is_floating_point or right.is_complex() else as_int64(right).abs()
        data["outlier_indices"] = [unravel(flat, expected.shape) for flat in chosen]
        data["outlier_values1"] = [_json_value(left[flat].item()) for flat in chosen]
        data["outlier_values2"] = [_json_value(right[flat].item()) for flat in chosen]
        data["outlier_diffs"] = [json_number(float(diff[flat])) for flat in chosen]
        data["outlier_relative_diffs"] = [json_number(float(diff[flat]) / max(float(magnitude[flat]), 1e-12)) for flat in chosen]
    return data


def _element_verdicts(actual: torch.Tensor, expected: torch.Tensor, policy: Policy) -> tuple[torch.Tensor, torch.Tensor]:
    """Return, flat: |actual - expected| (inf where NaN or Inf disagree), and which elements are bad."""
    left, right = actual.cpu().reshape(-1), expected.cpu().reshape(-1)
    if not (right.is_floating_point() or right.is_complex()):
        diff = int_distance(as_int64(left), as_int64(right))
        return diff, diff > 0
    first, second = as_wide(left), as_wide(right)
    kind, expected_kind = special_kind(first), special_kind(second)
    finite = (kind == 0) & (expected_kind == 0)
    diff = torch.where(finite, (first - second).abs(), 0.0)
    diff[kind != expected_kind] = torch.inf
    bad = kind != expected_kind
    rule = rule_for(policy, str(right.dtype), expected, [])
    bad[finite] |= rule.add(diff[finite], second[finite].abs())[0]
    return diff, bad


def _json_value(value: object) -> object:
    """Return a tensor element for JSON: NaN, Inf and complex numbers become text."""
    if isinstance(value, complex):
        return str(value)
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return str(value)
    return value
