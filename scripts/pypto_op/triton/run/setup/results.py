"""Result files: sealed, checked against their schema, written whole or not at all."""

from __future__ import annotations

import hmac
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pypto_op.documents import schema, targets
from pypto_op.documents.writing import write_atomically
from pypto_op.errors import PyptoOpError
from pypto_op.hashing import canonical_json
from pypto_op.proof.key import key_id, load_key, mac

_DOMAIN = "pypto-op triton result"


def sealed(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return a result with `seal`, which binds every other field to this account's key."""
    clean = json.loads(json.dumps(_finite(dict(body))))
    try:
        key = load_key()
    except PyptoOpError:
        return clean  # type: ignore[no-any-return]
    return {**clean, "seal": f"hmac-sha256:{key_id(key)}:{mac(_DOMAIN, canonical_json(clean), key)}"}


def is_sealed(result: Mapping[str, Any]) -> bool:
    """Whether exactly this result was written by this account's verifier."""
    parts = str(result.get("seal", "")).split(":")
    if len(parts) != 3:
        return False
    body = {name: value for name, value in result.items() if name != "seal"}
    key = load_key()
    return parts[1] == key_id(key) and hmac.compare_digest(parts[2].encode(), mac(_DOMAIN, canonical_json(body), key).encode())


def check_target(path: Path, what: str, key: str, *, own: Path) -> None:
    """Refuse a file that a result must not replace; nothing is changed.

    Args:
        what: its kind, for the message.
        key: what every result of this kind has.
        own: where it lies by default.

    Raises:
        ContractError: something else lies there.
    """
    targets.check_target(path, what, lambda place: {"op_name", key} <= set(targets.json_object(place)), own=own)


def write(path: Path, result: Mapping[str, Any], name: str) -> None:
    """Write a result that fits schemas/<name>.schema.json."""
    schema.check(dict(result), name, file=path)
    write_atomically(path, json.dumps(result, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def _finite(value: Any) -> Any:
    """Return JSON data without NaN and Inf, which JSON does not have."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return value
