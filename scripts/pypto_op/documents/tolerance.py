"""From the `tolerance` block of SPEC.md to a policy: the only source of tolerances."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pypto_op.documents.policy import Policy, dtype_word, get_policy
from pypto_op.errors import ContractError

_MATRICES = {"mare_matrix": "mare", "mere_matrix": "mere", "rmse_matrix": "rmse"}
_OWN_KEYS = {"atol", "rtol", "policy", "mode", "standard", "custom", *_MATRICES}


def policy_of(tolerance: Mapping[str, Any], *, file: Path | str | None = None) -> Policy:
    """Return the policy that a tolerance block stands for.

    The forms, which the schema has already checked one by one: `{atol, rtol}`; `{standard: {atol, rtol}}`;
    `{float16: {atol, rtol}, ...}`; `{policy: mere_mare@1}`, also with pairs per dtype for `allclose`;
    `{mare_matrix: {float16: limit}, ...}`, also below `custom`.

    Where pairs go by dtype, an output of a dtype that has none (supported dtypes have) may be off by as much as the
    loosest pair allows, or its own dtype's default.

    Raises:
        ContractError: forms that exclude each other, an unknown policy, or nothing that gives a tolerance.
    """
    pairs = {dtype_word(key): dict(value) for key, value in tolerance.items() if key not in _OWN_KEYS}
    uniform = {key: tolerance[key] for key in ("atol", "rtol") if key in tolerance}
    uniform = uniform or dict(tolerance.get("standard", {}))
    matrices = {key: tolerance[key] for key in _MATRICES if key in tolerance}
    matrices = matrices or dict(tolerance.get("custom", {}))
    named = tolerance.get("policy")
    if matrices and (pairs or uniform or named):
        raise _clash("limits on MARE, MERE and RMSE stand alone", file)
    if matrices:
        return get_policy({"name": "mere_mare", "per_dtype": _limits(matrices)})
    spec: dict[str, Any] = {"name": "allclose", **uniform}
    if named:
        name, _, version = named.partition("@")
        spec["name"] = name
        if version:
            spec["version"] = int(version)
        if name != "allclose" and (uniform or pairs):
            raise _clash(f"{named} takes no atol and rtol", file)
    elif not (uniform or pairs):
        raise _clash("gives no tolerance", file)
    if pairs:
        spec["per_dtype"] = {**_unnamed(pairs), **pairs}
    try:
        return get_policy(spec)
    except ContractError as error:
        raise ContractError(error.problem, file=file, where="tolerance", remedy=error.remedy) from None


def _unnamed(pairs: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float]]:
    loosest = {key: max(float(pair.get(key, 0.0)) for pair in pairs.values()) for key in ("atol", "rtol")}
    default = get_policy("allclose").as_dict()["per_dtype"]
    return {word: {key: max(row[key], loosest[key]) for key in loosest} for word, row in default.items() if word not in pairs}


def _limits(matrices: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float]]:
    rows: dict[str, dict[str, float]] = {}
    for key, matrix in matrices.items():
        for dtype, limit in matrix.items():
            rows.setdefault(dtype_word(dtype), {})[_MATRICES[key]] = float(limit)
    return rows


def _clash(problem: str, file: Path | str | None) -> ContractError:
    return ContractError(problem, file=file, where="tolerance", remedy="write {atol, rtol}, a pair per dtype, or {policy: name}")
