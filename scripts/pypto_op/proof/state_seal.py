"""The seal of a state file: the state machine writes it, the hooks look whether it still holds."""

from __future__ import annotations

import hmac
import json
from pathlib import Path
from typing import Any

from pypto_op.errors import PyptoOpError
from pypto_op.hashing import canonical_json, open_regular
from pypto_op.proof.key import key_file, mac

_DOMAIN = "pypto-op state"
_MAX_BYTES = 8 << 20


def state_seal(body: Any, position: Any) -> str:
    """Return the seal of a state's `body` that stands at `position` of its journal."""
    return mac(_DOMAIN, canonical_json({"body": body, "journal": position}))


def is_sealed(path: Path) -> bool:
    """Say whether a state file holds what the state machine wrote under this account's key. Makes no key."""
    try:
        with open_regular(path) as file:
            body = json.loads(file.read(_MAX_BYTES))
        if not isinstance(body, dict) or not key_file().exists():
            return False
        seal, position = body.pop("seal", None), body.pop("journal", None)
        return isinstance(seal, str) and hmac.compare_digest(seal.encode(), state_seal(body, position).encode())
    except (OSError, ValueError, RecursionError, PyptoOpError):
        return False
