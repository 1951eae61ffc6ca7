"""What a report tells of one output that was compared."""

from __future__ import annotations

from typing import Any

from pypto_op.compare import TensorComparison


def leaf_entry(leaf: TensorComparison, unwritten: int, *, close: bool) -> dict[str, Any]:
    """Return the report's `per_tensor` entry: metrics only, and only those that the schema names."""
    data = leaf.as_dict()
    kept = (
        "name",
        "shape",
        "dtype",
        "max_abs_diff",
        "max_rel_diff",
        "mean_diff",
        "rel_to_scale",
        "max_violation",
        "fail_fraction",
        "ulp_max",
        "sign_bias",
        "out_of_tolerance_count",
        "total_elements",
        "special_mismatch_count",
        "worst_index",
        "zero_output",
        "constant_output",
    )
    entry = {key: data[key] for key in kept}
    entry["all_close"] = close
    entry["unwritten_elements"] = unwritten
    entry["measures"] = leaf_measures(leaf)
    return entry


def leaf_measures(leaf: TensorComparison) -> dict[str, Any]:
    """Return what the policy itself measured.

    The limit of the all-zero condition is a function of the golden's largest value, so only its verdict is told.
    """
    return {c.name: c.as_dict()["value"] for c in leaf.conditions if c.name != "not_all_zero"}
