"""Tolerances: which rule decides that an output is right, by name and version. Data in `policies.yaml`.

Three rules (compare.py applies them, NaN and Inf places and integers are its business):

* `allclose@1`: |actual - expected| <= atol + rtol * |expected| for each element.
* `mere_mare@1`: mean and maximum of the relative error, both below the dtype's threshold (the NPU benchmark
rule).
* `twin@2`: the error against an fp64 truth stays within a factor of what several honest twins show
(`twin@1`: of what the golden alone shows).
"""

from __future__ import annotations

import copy
import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from pypto_op.documents import schema
from pypto_op.documents.reading import read_yaml
from pypto_op.errors import ContractError
from pypto_op.vocabulary import DTYPE_ALIASES

DEFAULT_POLICY = "allclose@1"

_TORCH_WORDS = {
    "float8_e4m3fn": "float8_e4m3",
    "float8_e4m3fnuz": "float8_e4m3",
    "float8_e5m2fnuz": "float8_e5m2",
    "double": "float64",
    "hf32": "hifloat32",
}


@dataclass(frozen=True)
class Policy:
    """A tolerance rule with all its numbers; immutable, and part of the evidence."""

    name: str  # `allclose`, `mere_mare` or `twin`
    version: int  # 1, 2, ...
    _data: str  # canonical JSON, so that a policy hashes and compares by value

    @property
    def id(self) -> str:
        """`name@version`."""
        return f"{self.name}@{self.version}"

    @property
    def needs_twins(self) -> bool:
        """Whether a comparison under this policy needs honest twins' outputs."""
        return self.name == "twin"

    @property
    def twins(self) -> tuple[str, ...]:
        """The honest twins that set the natural error (`pypto_op.twins`); () when the policy needs none."""
        return tuple(self.as_dict().get("twins", ("golden",))) if self.needs_twins else ()

    def as_dict(self) -> dict[str, Any]:
        """Return every parameter; `get_policy` takes it back (schemas/policy.schema.json)."""
        value = json.loads(self._data)
        assert isinstance(value, dict)
        return value

    def digest(self) -> str:
        """Return the sha256 of the canonical JSON of `as_dict()`."""
        return hashlib.sha256(self._data.encode()).hexdigest()

    def for_dtype(self, dtype: str) -> dict[str, Any]:
        """Return the numbers for `dtype` (`float16`, `fp16`, `torch.float16`).

        Raises:
            ContractError: the policy has no numbers for that dtype.
        """
        word = dtype_word(dtype)
        table = self.as_dict()["per_dtype"]
        if word not in table:
            raise ContractError(
                f"policy {self.id} has no tolerance for {word}",
                remedy=f"give one under per_dtype; it knows {', '.join(sorted(table))}",
            )
        numbers = table[word]
        assert isinstance(numbers, dict)
        return numbers

    def zero_guard(self, dtype: str) -> tuple[float, float] | None:
        """Return (ratio, floor) for `dtype`, or None when the guard is off."""
        guard = self.as_dict()["zero_guard"]
        if guard is None:
            return None
        return float(guard["ratio"]), float(guard["floor"].get(dtype_word(dtype), 0.0))

    def __str__(self) -> str:
        return self.id


def dtype_word(dtype: str) -> str:
    """Return the policy's word for a dtype: aliases and torch's own spellings are resolved."""
    word = str(dtype).removeprefix("torch.").strip()
    word = DTYPE_ALIASES.get(word, word)
    return _TORCH_WORDS.get(word, word)


def get_policy(spec: str | Mapping[str, Any] | Policy | None = None) -> Policy:
    """Return the policy that `spec` asks for.

    Args:
        spec: `"mere_mare@1"`; `"mere_mare"` for its newest version; None for `allclose@1`; or a dict with
            `name`, optionally `version`, and overrides: `atol` and `rtol` (both, for every dtype; `allclose`
            only), `per_dtype` (merged by dtype), `factor`, `zero_guard` (None switches it off).

    Raises:
        ContractError: unknown name, version, key or dtype; a bound that is negative, infinite or no number;
            one of `atol` and `rtol` without the other.
    """
    if isinstance(spec, Policy):
        return spec
    if spec is None:
        spec = DEFAULT_POLICY
    if isinstance(spec, str):
        return _build(_base(spec))
    if not isinstance(spec, Mapping):
        raise ContractError(f"a policy is a name or a mapping, not {type(spec).__name__}", remedy='write "allclose@1"')
    overrides = {key: copy.deepcopy(value) for key, value in spec.items()}
    name, version = overrides.pop("name", None), overrides.pop("version", None)
    if not isinstance(name, str):
        raise ContractError("a policy needs a name", where="policy.name", remedy='write name: "allclose"')
    data = _base(name if version is None else f"{name.split('@')[0]}@{version}")
    _apply_tolerances(data, overrides)
    for dtype, numbers in _mapping(overrides.pop("per_dtype", {}), "per_dtype").items():
        row = data["per_dtype"].setdefault(dtype_word(dtype), {})
        row.update(_mapping(numbers, f"per_dtype.{dtype}"))
    data.update(overrides)
    return _build(data)


def _apply_tolerances(data: dict[str, Any], overrides: dict[str, Any]) -> None:
    given = {key: overrides.pop(key) for key in ("atol", "rtol") if key in overrides}
    if not given:
        return
    if data["name"] != "allclose":
        raise ContractError(f"policy {data['name']} takes no {' or '.join(given)}", where="policy")
    if len(given) == 1:
        missing = ({"atol", "rtol"} - set(given)).pop()
        raise ContractError(f"{next(iter(given))} is given without {missing}", where="policy", remedy="give both or neither")
    for key, value in given.items():
        check_tolerance(value, key)
    data["per_dtype"] = {dtype: dict(given) for dtype in data["per_dtype"]}


def check_tolerance(value: object, name: str) -> float:
    """Return `value` as float if it may be a tolerance; raise ContractError otherwise."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ContractError(f"{name} is a {type(value).__name__}, not a number", remedy=f"write {name}=1e-3")
    if not 0 <= value <= 1e300:
        raise ContractError(f"{name} is {str(value)[:40]}", remedy="give a number of at least 0, and a finite one")
    return float(value)


def _base(spec: str) -> dict[str, Any]:
    known = _known()
    name, _, version = spec.partition("@")
    if not version:
        versions = [int(key.split("@")[1]) for key in known if key.split("@")[0] == name]
        spec = f"{name}@{max(versions)}" if versions else spec
    if spec not in known:
        raise ContractError(f"there is no policy {spec[:40]!r}", remedy=f"use one of {', '.join(known)}")
    return copy.deepcopy(known[spec])


@lru_cache(maxsize=1)
def _known() -> dict[str, dict[str, Any]]:
    data = read_yaml(Path(__file__).with_name("policies.yaml"))
    guard = data.pop("zero_guard")
    return {key: {**value, "zero_guard": guard} for key, value in data.items()}


def _build(data: dict[str, Any]) -> Policy:
    _refuse_non_finite(data, "policy")
    return _checked(json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False))


@lru_cache(maxsize=256)
def _checked(canonical: str) -> Policy:
    """Return the policy of a canonical text; each case of a suite asks for one, and most ask for the same."""
    data = json.loads(canonical)
    schema.check(data, "policy", prefix=["policy"])
    return Policy(data["name"], data["version"], canonical)


def _refuse_non_finite(value: Any, where: str) -> None:
    if isinstance(value, Mapping):
        for key, item in value.items():
            _refuse_non_finite(item, f"{where}.{key}")
    elif isinstance(value, float) and not math.isfinite(value):
        raise ContractError(f"{value} is not a tolerance", where=where, remedy="give a finite number")


def _mapping(value: object, where: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ContractError(f"not a mapping but {type(value).__name__}", where=f"policy.{where}")
    return value
