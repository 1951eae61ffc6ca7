"""Whether what watches a candidate is what it was: objects of this bundle, reached in ways that no name in the file shows.

The record lies in the candidate's process. Code that reads memory, or that text was turned into, can reach the object that
counts launches and put a function of its own on it. `Snapshot` compares what modules and classes stand for; this compares
what the watching objects hold, and the code of this bundle's functions.
"""

from __future__ import annotations

import sys
from builtins import all as _all
from builtins import map as _each
from collections.abc import Iterator, Sequence
from gc import get_referents as _referents
from operator import is_ as _is
from types import FunctionType
from typing import Any

from pypto_op.backends.worker.trusted import is_trusted

_PACKAGE = "pypto_op"
_MADE_BY_PYTHON = 1 << 9
"""Flag of a class that a `class` statement made."""
_ancestors, _members = type.__dict__["__mro__"].__get__, type.__dict__["__dict__"].__get__
"""What a metaclass cannot answer in the place of its class."""


class Intact:
    """Objects as they were when it was made.

    Args:
        watchers: objects whose class and whose functions, methods and further watchers must stay.
    """

    def __init__(self, watchers: Sequence[Any]) -> None:
        self._watchers = list(_reached(watchers))
        self._held = [(type(one), _lasting(one), set(vars(one))) for one in self._watchers]
        self._kinds = {type(value) for one in self._watchers for value in vars(one).values()}
        self._functions = list(_functions())
        self._codes = [function.__code__ for function in self._functions]
        self._defaults = [function.__defaults__ for function in self._functions]
        self._holds = _referents(*self._functions)

    def replaced(self) -> str | None:
        """Return what was replaced since; None when nothing was."""
        for one, (kind, before, names) in zip(self._watchers, self._held, strict=True):
            now = _lasting(one)
            changed = [name for name, value in before.items() if now.get(name) is not value]
            name = next(iter([*changed, *(name for name in now if name not in names)]), None)  # a new one hides a method
            if type(one) is not kind or name is not None:
                return f"{kind.__name__}.{name or '__class__'}"
            others = {name: type(value) for name, value in vars(one).items() if type(value) not in self._kinds}
            foreign = next((name for name, of in others.items() if _is_foreign(of)), None)
            if foreign is not None:
                return f"{kind.__name__}.{foreign}"
        # Thousands of functions, around every call of forward, and Python tells the guard each time that code is asked for. What
        # all of them hold is asked for at once; only where some of it is new (annotations are made when they are read), each is.
        holds = _referents(*self._functions)
        if len(holds) == len(self._holds) and _all(_each(_is, holds, self._holds)):
            return None
        for function, code, defaults in zip(self._functions, self._codes, self._defaults, strict=True):
            if function.__code__ is not code or function.__defaults__ is not defaults:
                return f"the code of {function.__qualname__}"
        self._holds = holds
        return None


def _reached(watchers: Sequence[Any]) -> Iterator[Any]:
    """Yield each watcher, and the objects of this bundle that it holds."""
    seen: set[int] = set()
    waiting = list(watchers)
    while waiting:
        one = waiting.pop()
        if id(one) in seen or not hasattr(one, "__dict__"):
            continue
        seen.add(id(one))
        yield one
        waiting += [value for value in vars(one).values() if _is_ours(value)]


def _is_ours(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] == _PACKAGE


def _is_foreign(kind: type) -> bool:
    """Whether a class has methods of a file that is no library's: a dict, say, that runs code whenever it is asked."""
    if not kind.__flags__ & _MADE_BY_PYTHON:
        return False
    functions = (value for base in _ancestors(kind) for value in _members(base).values() if type(value) is FunctionType)
    return any(not is_trusted(function.__code__.co_filename) for function in functions)


def _lasting(one: Any) -> dict[str, Any]:
    """Return what an object holds that no run changes: functions, and other watchers. A bound method is made anew each time."""
    return {name: value for name, value in vars(one).items() if callable(value) or _is_ours(value)}


def _functions() -> Iterator[FunctionType]:
    for name, module in list(sys.modules.items()):
        if module is None or name.partition(".")[0] != _PACKAGE:
            continue
        for value in list(vars(module).values()):
            inner = list(vars(value).values()) if isinstance(value, type) else [value]
            for one in inner:
                function = getattr(one, "__func__", None) or getattr(one, "fget", None) or one
                if isinstance(function, FunctionType):
                    yield function
