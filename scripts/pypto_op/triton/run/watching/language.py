"""Whether the classes of Triton's language are what they were: operators of values run without being called by name.

The interpreter itself replaces parts of them for each launch, by functions that its own code makes of the parts.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any

from pypto_op.backends.worker.tampering import callables, same_names

_MODULES = ("triton.language.core", "triton.language.semantic")
_ABSENT = object()


class Language:
    """What the classes held when this was made, before the candidate's file was loaded."""

    def __init__(self) -> None:
        modules = [module for name in _MODULES if (module := sys.modules.get(name)) is not None]
        kinds = {value for module in modules for value in vars(module).values() if _is_of(value, module)}
        self._held = {kind: callables(kind) for kind in kinds}
        self._every = {kind: dict(vars(kind)) for kind in kinds}
        interpreter = sys.modules.get("triton.runtime.interpreter")
        self._codes = set(_codes(interpreter)) if interpreter is not None else set()

    def replaced(self) -> str | None:
        """Return what stands for something else now, None for nothing."""
        for kind, before in self._held.items():
            if same_names(vars(kind), self._every[kind]):  # of some sixty classes the interpreter changes a few
                continue
            now = callables(kind)
            for name in before.keys() | now.keys():
                value = now.get(name, _ABSENT)
                if value is not before.get(name, _ABSENT) and not self._is_the_interpreters(kind, name, value):
                    return f"triton's {kind.__name__}.{name}"
        return None

    def _is_the_interpreters(self, kind: type, name: str, value: Any) -> bool:
        """Whether the interpreter put a part there: its own function around the one that was there, or what is inherited."""
        held = next((self._held[base][name] for base in kind.__mro__ if name in self._held.get(base, ())), _ABSENT)
        inherited = next((vars(base)[name] for base in kind.__mro__[1:] if name in vars(base)), _ABSENT)
        if value is inherited or value is held:
            return True
        if isinstance(value, property):
            return value.fset is None and self._is_code_of_it(value.fget)
        if not self._is_code_of_it(value):
            return False
        around = (value.__kwdefaults__ or {}).get("member", held)
        return around is held or getattr(held, "__func__", held) is around or not value.__kwdefaults__

    def _is_code_of_it(self, value: Any) -> bool:
        return isinstance(value, FunctionType) and value.__code__ in self._codes


def _is_of(value: Any, module: ModuleType) -> bool:
    return isinstance(value, type) and value.__module__ == module.__name__


def _codes(module: ModuleType) -> Iterator[CodeType]:
    """Yield the code of every function of a module, with what these define."""
    waiting: list[Any] = [value for value in vars(module).values() if getattr(value, "__module__", "") == module.__name__]
    while waiting:
        value = waiting.pop()
        if isinstance(value, type):
            waiting += vars(value).values()
        code = value if isinstance(value, CodeType) else getattr(value, "__code__", None)
        if isinstance(code, CodeType):
            yield code
            waiting += [const for const in code.co_consts if isinstance(const, CodeType)]
