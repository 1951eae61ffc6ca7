"""The stamp of a generated file: the sha256 of the rest of its text, by which an edited file is told from a generator's."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from pypto_op.errors import ContractError
from pypto_op.hashing import sha256_bytes, sha256_json

_STAMP = re.compile(r"^# pypto-op generated: ([0-9a-f]{64})\n", re.M)
_JSON_KEY = "x_generated"


def stamped_python(text: str) -> str:
    """Return a Python text with its stamp as the last line."""
    text = text.rstrip("\n") + "\n"
    return f"{text}# pypto-op generated: {_digest(text)}\n"


def stamped_suite(data: Mapping[str, Any]) -> str:
    """Return the text of a suite, one line per case, with its stamp under `x_generated`."""
    body = {key: value for key, value in data.items() if key != _JSON_KEY}
    return suite_text({**body, _JSON_KEY: sha256_json(body)})


def suite_text(data: Mapping[str, Any]) -> str:
    """Return JSON that people can read: one line per case, everything else one line per key."""
    lines = []
    for key, value in data.items():
        if key == "cases":
            cases = ",\n    ".join(json.dumps(case, ensure_ascii=False) for case in value)
            lines.append(f'  "cases": [\n    {cases}\n  ]')
        else:
            lines.append(f"  {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def is_untouched(text: str) -> bool:
    """Whether a text is exactly what some generator wrote."""
    stamps = list(_STAMP.finditer(text))
    if stamps:
        last = stamps[-1]
        return last.end() == len(text) and last[1] == _digest(text[: last.start()])
    if not text.lstrip().startswith("{"):
        return False
    try:
        data = json.loads(text)
        stamp = data.pop(_JSON_KEY, None) if isinstance(data, dict) else None
        return stamp is not None and stamp == sha256_json(data)
    except (ValueError, RecursionError, ContractError):  # not JSON, or more than JSON: nothing of ours
        return False


def _digest(text: str) -> str:
    return sha256_bytes(text.encode("utf-8"))
