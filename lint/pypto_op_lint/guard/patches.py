"""Which files a patch changes: unified diffs, and the `apply_patch` format of some models."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pypto_op_lint.guard.effects import Kind
from pypto_op_lint.guard.words import ANY

if TYPE_CHECKING:
    from pypto_op_lint.guard.shell import Walker

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


def note_patch(walker: Walker, program: str, files: list[str], read_from: str | None = None) -> None:
    """Note the targets of the patches in `files`, or on stdin when there are none."""
    target_folder = walker.cwd
    walker.cwd = read_from or walker.cwd
    texts = [walker.read_script(name) for name in files] if files else [walker.stdin]
    walker.cwd = target_folder
    for text in texts:
        if text is None or ANY in text:
            walker.add(Kind.OPAQUE, "the patch cannot be read before it is applied", program)
        else:
            for target in sorted(diff_targets(text)):
                walker.add(Kind.WRITE, target, program)
