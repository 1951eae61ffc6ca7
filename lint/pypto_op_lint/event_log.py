"""A short memory of what the hooks saw, for people and reports: JSON Lines in the private folder.

Two files of at most 1 MiB each: the log never grows without end.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

LOG_FILE = "events.jsonl"
MAX_BYTES = 1 << 20


def log_event(folder: Path | None, **facts: object) -> None:
    """Append one line; failing to is nobody's concern but the reader's."""
    if folder is None:
        return
    path = folder / LOG_FILE
    line = json.dumps({"time": round(time.time(), 3), **facts}, ensure_ascii=False) + "\n"
    try:
        if path.exists() and path.stat().st_size > MAX_BYTES:
            path.replace(path.with_suffix(".1.jsonl"))
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            os.write(descriptor, line.encode("utf-8", "replace"))
        finally:
            os.close(descriptor)
    except OSError:
        return
