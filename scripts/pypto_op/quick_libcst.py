"""Imports libcst, in half the time of a plain import. Import this module before anything that imports libcst.

Most of that import is `dataclasses` writing and compiling five methods for each of libcst's 180 kinds of nodes. A run uses
some forty kinds, and two methods in five are replaced at once. So while libcst is imported, a method is only noted down;
it is compiled when it is first called. Where `dataclasses` has no such function to stand in for (Python 3.13), this is a
plain import.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Sequence
from typing import Any

_Method = Callable[..., Any]
_CREATE = "_create_fn"


def _compiled_when_called(create: Callable[..., _Method]) -> Callable[..., _Method]:
    """Return a function that stands in for `create` (name, arguments, body, ... -> method) and puts the work off."""

    def put_off(name: str, arguments: Sequence[str], body: Sequence[str], **rest: Any) -> _Method:
        compiled: _Method | None = None

        def method(self: object, *args: Any, **kwargs: Any) -> Any:
            nonlocal compiled
            if compiled is None:
                compiled = create(name, arguments, body, **rest)
                compiled.__qualname__ = method.__qualname__
                for owner in type(self).__mro__:
                    if owner.__dict__.get(name) is method:
                        setattr(owner, name, compiled)
            return compiled(self, *args, **kwargs)

        method.__name__ = name
        return method

    return put_off


def _load() -> None:
    create = getattr(dataclasses, _CREATE, None)
    if "libcst" in sys.modules or create is None:
        return
    setattr(dataclasses, _CREATE, _compiled_when_called(create))
    try:
        import libcst  # noqa: F401
    finally:
        setattr(dataclasses, _CREATE, create)


_load()
