"""Which files a patch of the `apply_patch` format of some models changes."""

from __future__ import annotations

import re

_APPLY_PATCH = re.compile(r"^\*\*\* (?:(Add|Update|Delete) File|Move to): (.+?)\s*$", re.MULTILINE)


def apply_patch_targets(text: str) -> list[str]:
    """Return the paths named by an `apply_patch` text (`*** Update File: x`), in order, each once."""
    return list(dict.fromkeys(path for _, path in _APPLY_PATCH.findall(text)))
