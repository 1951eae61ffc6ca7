"""Which files a patch changes: unified diffs, and the `apply_patch` format of some models."""

from __future__ import annotations

import re

_HEADER = re.compile(r"^(?:---|\+\+\+|rename (?:from|to)|copy to|diff --git|Index:) ?(.+?)(?:\t.*)?$", re.MULTILINE)
_APPLY_PATCH = re.compile(r"^\*\*\* (?:(Add|Update|Delete) File|Move to): (.+?)\s*$", re.MULTILINE)


def diff_targets(text: str) -> set[str]:
    """Return the paths that a unified diff may touch, under every number of stripped folders up to two."""
    found: set[str] = set()
    for name in _HEADER.findall(text):
        for piece in name.strip().split(" ") if name.startswith(("a/", '"a/')) else [name.strip()]:
            path = piece.strip('"')
            if path in ("/dev/null", ""):
                continue
            parts = path.split("/")
            found.update("/".join(parts[n:]) for n in range(3) if parts[n:])
    return found


def apply_patch_targets(text: str) -> list[str]:
    """Return the paths named by an `apply_patch` text (`*** Update File: x`), in order, each once."""
    return list(dict.fromkeys(path for _, path in _APPLY_PATCH.findall(text)))
