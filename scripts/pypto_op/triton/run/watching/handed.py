"""Which arguments of a launch could compute: Python functions, and objects whose methods a kernel's expressions call.

The interpreter would run them inside a kernel; no device can. The static check looks for the same in the text
(`KernelFacts.takes`); here it is seen where that text and what Python runs differ.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import importlib
import os
import sys
import typing
from collections.abc import Set
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, GetSetDescriptorType, MemberDescriptorType, MethodType, ModuleType
from typing import Any

import torch

from pypto_op.triton.program import HELD_METHODS

_FUNCTIONS = (FunctionType, MethodType, BuiltinFunctionType, functools.partial, ModuleType)
_LIBRARIES = ("torch", "triton", "numpy", "builtins", "enum")
_NUMPY_VALUES = ("generic", "dtype")
_HARMLESS = (HELD_METHODS - {"__eq__"}) | {
    "__new__", "__format__", "__getnewargs__", "__setattr__", "__delattr__", "__reduce_ex__", "__init_subclass__",
    "__class_getitem__", "__enter__", "__exit__", "__del__",
}  # fmt: skip
_MADE_BY_PYTHON = 1 << 9
"""CPython's flag of classes that a class statement made (Py_TPFLAGS_HEAPTYPE); the type of None has no place in builtins."""
_DEEPEST = 4
_WRITES = frozenset({"<string>", *(str(module.__file__) for module in (collections, dataclasses, typing))})
"""Files that the methods of dataclasses and namedtuples come from."""
_PLAIN_FIELDS = (type(vars(collections.namedtuple("_Pair", "field"))["field"]), GetSetDescriptorType, MemberDescriptorType)


def computes(value: Any, names: Set[str], depth: int = _DEEPEST) -> bool:
    """Whether a value, or what it holds, brings code of its own into a kernel.

    Args:
        value: an argument of a launch.
        names: attributes that the kernel's body asks for.
        depth: how far to look into what holds something.
    """
    if isinstance(value, _FUNCTIONS):
        return True
    if isinstance(value, (list, tuple)) and depth and any(computes(item, names, depth - 1) for item in value):
        return True
    kind = type(value)
    library = library_of(kind)
    if library == "numpy":
        return not any(base.__name__ in _NUMPY_VALUES for base in kind.__mro__)
    if library is not None or not kind.__flags__ & _MADE_BY_PYTHON or issubclass(kind, torch.Tensor):
        return False  # operators of a tensor's class are under the gate
    own = [base for base in kind.__mro__ if library_of(base) is None]
    if any(_is_called(name, method, names) for base in own for name, method in vars(base).items()):
        return True
    return depth > 0 and any(computes(item, names, depth - 1) for item in getattr(value, "__dict__", {}).values())


def _is_called(name: str, method: Any, names: Set[str]) -> bool:
    """Whether an expression of the kernel may call a method: an operator's, or one that it names."""
    operator = name.startswith("__") and name not in _HARMLESS
    if not operator and name not in names:
        return False
    if isinstance(method, FunctionType):
        return method.__code__.co_filename != "<string>"  # where dataclasses and namedtuples write theirs
    return callable(method) or isinstance(method, property)


def library_of(kind: type) -> str | None:
    """Return the library that a class really belongs to: it stands where it says, in a file of that library.

    None for the candidate's own and for other libraries'.
    """
    name = str(kind.__module__)
    top = name.partition(".")[0]
    module = sys.modules.get(name)
    if top not in _LIBRARIES or module is None:
        return None
    found: Any = module
    for part in kind.__qualname__.split("."):
        found = getattr(found, part, None)
    file = getattr(module, "__file__", None)
    at_home = file is None or _resolved(file).startswith(_home_of(top))
    return top if found is kind and at_home else None


_resolved = functools.cache(os.path.realpath)
"""Kept: each value of a kernel asks for it, and no file of a library moves while a kernel runs."""


@functools.cache
def _home_of(library: str) -> str:
    """Return the folder of a package, or the file of a module; "" of what has none."""
    file = Path(importlib.import_module(library).__file__ or "")
    return os.path.realpath(file.parent if file.name == "__init__.py" else file)


def own_methods(kind: type) -> bool:
    """Whether a class has code of its own, other than what dataclasses and namedtuples write and inherit."""
    return any(map(_is_own, vars(kind).values()))


def _is_own(member: Any) -> bool:
    function = getattr(member, "__func__", member)
    if isinstance(function, FunctionType):
        return function.__code__.co_filename not in _WRITES
    return callable(member) or (hasattr(type(member), "__get__") and not isinstance(member, _PLAIN_FIELDS))


def is_jitted(value: Any, names: Set[str] = frozenset({"JITFunction", "InterpretedFunction"})) -> bool:
    """Whether a value is a jitted function, of Triton's own class."""
    return type(value).__name__ in names and library_of(type(value)) == "triton"
