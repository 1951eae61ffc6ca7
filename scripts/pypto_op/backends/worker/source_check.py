"""Refuses a file that names the interpreter's back doors, before any of it runs: the kernel's, and every helper's
that it loads.

Frames, `gc` and made-up code are refused when they are used (`guard`). These names are not seen by an audit hook,
and no kernel needs one.
"""

from __future__ import annotations

from pypto_op import back_doors


def back_door(source: str | bytes) -> str | None:
    """Return "`name` (line 7)" for the first of `back_doors.NAMES` that a file names; None where there is none.

    A file that does not parse has none; loading it will say so.
    """
    try:
        found = [(line, name) for line, _, name in back_doors.named(source)]
    except (SyntaxError, ValueError):
        return None
    except (RecursionError, MemoryError):
        return "an expression too deep to be read"
    return f"`{min(found)[1]}` (line {min(found)[0]})" if found else None
