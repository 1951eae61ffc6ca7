"""How files of proof are written."""

from __future__ import annotations

import os
from pathlib import Path


def write_whole(path: Path, text: str) -> None:
    """Write a file of proof, whole or not at all; two processes may write the same one.

    Raises:
        OSError: it cannot be written; what was begun is gone.
    """
    draft = path.with_suffix(f".{os.getpid()}.tmp")
    try:
        draft.write_text(text, encoding="utf-8")
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise
