"""What a process printed, as its user should see it: lines about other people's files say nothing that he can change.

Left out are warnings that name a file of Python, of an installed package or of this bundle, and the stack frames of such files.
His own files, and what they print, stay; his folder is left out of their names.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from pypto_op.backends.worker.trusted import inside, trusted_folders

LONGEST = 2000
_FRAME = re.compile(
    r"""^(?P<indent>[ ]*)File[ ]"(?P<path>[^"\n]*)",[ ]line[ ]\d+.*\n?  # what names the frame
    (?:(?P=indent)[ ]{2}.*\n?|[ ]*\[Previous[ ]line[ ]repeated.*\n?)*   # its source, and the marks below it""",
    re.MULTILINE | re.VERBOSE,
)
_WARNING = re.compile(r"^(?P<path>[^\s:][^\n:]*):\d+: \w*Warning: .*\n?(?:[ ]{2}.*\n?)?", re.MULTILINE)
_MODULES = re.compile(r"^Extension modules: .*\n?", re.MULTILINE)
"""The fault handler's list of what was loaded from C."""


def own_words(printed: str, folders: Iterable[Path] = ()) -> str:
    """Return what in a text is the user's own, at most the last `LONGEST` characters of it, from the beginning of a line.

    Args:
        folders: of the user's files.
    """
    text = _MODULES.sub("", _WARNING.sub(_kept, _FRAME.sub(_kept, printed)))
    for folder in folders:
        text = text.replace(f"{folder}/", "")
    text = "\n".join(line.rstrip() for line in text.splitlines() if line.strip())
    return text if len(text) <= LONGEST else text[-LONGEST:].partition("\n")[2] or text[-LONGEST:]


def _kept(found: re.Match[str]) -> str:
    return "" if _is_foreign(found["path"]) else found[0]


@lru_cache(maxsize=256)
def _is_foreign(path: str) -> bool:
    if path.startswith("<"):  # what Python runs from no file
        return True
    return any(inside(os.path.realpath(path), folder) for folder in trusted_folders())
