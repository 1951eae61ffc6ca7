"""Notices when a candidate replaced what the worker itself uses: functions, methods, classes.

A candidate shares its interpreter with the code that counts launches and takes the outputs. Replacing
`torch.Tensor.clone` or `hashlib.blake2b` would decide what that code sees. So their names are compared, by
identity, with what they were before the candidate was loaded. While candidate code runs, this bundle's modules are
not in `sys.modules` either; importing them again is refused by `guard`.
"""

from __future__ import annotations

import ast
import builtins
import hashlib
import inspect
import json
import linecache
import os
import sys
import time
from builtins import all as _all
from builtins import map as _each
from collections.abc import Iterable, Iterator, Mapping
from itertools import repeat
from operator import is_ as _is
from types import CellType, FunctionType, ModuleType
from typing import Any

import safetensors
import safetensors.torch
import torch

from pypto_op.backends.worker.loading import Failure
from pypto_op.backends.worker.trusted import is_trusted
from pypto_op.vocabulary import Outcome

_PACKAGE = "pypto_op"
_TABLES = (dict, list, set)
_PLAIN = (int, float, str)
_ABSENT = repeat(object())
"""What stands under a name that is gone: no end of it, so it serves every comparison."""


class Snapshot:
    """What certain names stood for when it was taken.

    Args:
        more: modules that the candidate's code computes with, of which nothing may be replaced either: their functions,
            classes and constants, what stands in their tables, and the methods of their objects.
    """

    def __init__(self, more: Iterable[str] = ()) -> None:
        self._modules = {name: m for name, m in list(sys.modules.items()) if name.partition(".")[0] == _PACKAGE}
        self._active_modes = _modes()
        spaces: dict[str, Any] = {
            "ast": ast,
            "builtins": builtins,
            "hashlib": hashlib,
            "inspect": inspect,
            "json": json,
            "linecache": linecache,
            "os": os,
            "os.path": os.path,
            "safetensors": safetensors,
            "safetensors.torch": safetensors.torch,
            "time": time,
            "torch": torch,
            **self._modules,
        }
        classes: dict[str, Any] = {
            "ast.NodeVisitor": ast.NodeVisitor,
            "torch.Tensor": torch.Tensor,
            "torch._C.TensorBase": torch._C.TensorBase,
            "torch.UntypedStorage": torch.UntypedStorage,
        }
        further = self._further = {name: sys.modules[name] for name in more if name in sys.modules}
        spaces |= further
        for name, module in (*self._modules.items(), *further.items()):
            own = {k: v for k, v in vars(module).items() if isinstance(v, type) and v.__module__ == name}
            classes |= {f"{name}.{k}": v for k, v in own.items()}
        entry = sys.modules.get("pypto.frontend.parser.entry")
        if entry is not None:
            classes["pypto.frontend.parser.entry.JitCallableWrapper"] = entry.JitCallableWrapper
        self._spaces = {name: (space, callables(space)) for name, space in spaces.items()}
        self._classes = {name: (kind, callables(kind)) for name, kind in classes.items()}
        held = {f"{name}.{k}": v for name in further for k, v in vars(further[name]).items() if _is_object_of(further, v)}
        self._classes |= {name: (one, callables(one)) for name, one in held.items()}
        self._kinds = [(name, one, type(one)) for name, one in held.items()]
        watched = self._spaces | self._classes
        self._every = {name: dict(vars(one)) for name, (one, _) in self._classes.items()}
        homes = further | {name: kind for name, kind in classes.items() if getattr(kind, "__module__", "") in further}
        tables = {f"{name}.{k}": v for name, home in homes.items() for k, v in vars(home).items() if _is_table(k, v)}
        self._tables = [(name, table, _contents(table)) for name, table in tables.items()]
        held_by = {f"{name}.{k}": v for name, (home, own) in watched.items() if name in homes for k, v in own.items()}
        self._cells = list(_closed_over(held_by))

    def changes(self) -> list[str]:
        """Return what is replaced now, and what stands between a call of torch and torch."""
        found = ["what every call of torch does"] if _modes() > self._active_modes else []
        return found + self.replaced()

    def replaced(self) -> list[str]:
        """Return the dotted names that stand for something else now; for classes, also new ones, which may hide others."""
        found: list[str] = []
        # It looks at thousands of names around every call of the wrapper, under the tripwire, which hears of each call
        # of a function that Python's code makes: so nothing is called for each name that is what it was.
        for name, (space, before) in self._spaces.items():
            now = vars(space)
            if _keeps(now, before):
                continue
            others = [key for key, value in before.items() if key not in now or now[key] is not value]
            found += [f"{name}.{key}" for key in others if not _stands_for(now.get(key), before[key])]
        for name, (kind, before) in self._classes.items():
            now, every = vars(kind), self._every[name]
            if same_names(now, every):
                continue
            others = [key for key, value in now.items() if every.get(key, self) is not value]
            found += [f"{name}.{key}" for key in _changed(now, before, others)]
        found += [name for name, module in self._further.items() if sys.modules.get(name) is not module]
        found += [name for name, one, kind in self._kinds if type(one) is not kind]
        found += [f"what {name} calls" for name, cell, held in self._cells if cell.cell_contents is not held]
        found += [name for name, table, (ids, _) in self._tables if _ids(table) != ids and not _remembers(table, ids)]
        return found

    def hide_modules(self) -> None:
        """Take this bundle's modules out of `sys.modules`."""
        for name in self._modules:
            sys.modules.pop(name, None)

    def show_modules(self) -> None:
        """Put them back, in the place of whatever stands there now."""
        sys.modules.update(self._modules)


def same_names(now: Mapping[str, Any], before: Mapping[str, Any]) -> bool:
    """Whether names are the same and stand for the same objects; no object is asked whether it equals another."""
    return len(now) == len(before) and _keeps(now, before)


def _keeps(now: Mapping[str, Any], before: Mapping[str, Any]) -> bool:
    return _all(_each(_is, _each(now.get, before, _ABSENT), before.values()))


def _changed(now: Mapping[str, Any], before: Mapping[str, Any], others: Iterable[str]) -> list[str]:
    """Return what decides in a class and is gone or another, and what is new there and decides.

    Args:
        now: its names.
        before: those that decided.
        others: names that stand for something else now, or are new.
    """
    lost = [key for key, value in before.items() if not _stands_for(now.get(key), value)]
    return lost + [key for key in others if key not in before and _decides(now[key])]


def _stands_for(now: Any, before: Any) -> bool:
    """Whether a name still stands for the same object. It may lead through a wrapper that torch put on when it loaded dynamo."""
    if now is before:
        return True
    if not isinstance(now, FunctionType) or not now.__code__.co_filename.endswith("/torch/_compile.py"):
        return False
    cells = dict(zip(now.__code__.co_freevars, now.__closure__ or (), strict=True))
    wrapped = is_trusted(now.__code__.co_filename) and "fn" in cells
    return wrapped and cells["fn"].cell_contents is before


def _is_object_of(modules: Mapping[str, ModuleType], value: Any) -> bool:
    """Whether a value is an object of a class that one of these modules makes in Python: it may be given methods of its own."""
    return type(value).__module__ in modules and hasattr(value, "__dict__") and not _is_constant(value) and not _decides(value)


def _closed_over(functions: Mapping[str, Any]) -> Iterator[tuple[str, CellType, Any]]:
    """Yield the variables around functions in which other functions lie, to any depth: name, variable, and what lies in it."""
    waiting, seen = list(functions.items()), set[int]()
    while waiting:
        name, function = waiting.pop()
        cells = getattr(getattr(function, "__func__", function), "__closure__", None)
        for cell in cells if type(cells) is tuple else ():
            try:
                held = cell.cell_contents
            except ValueError:  # nothing lies in it
                continue
            if callable(held) and id(cell) not in seen:
                seen.add(id(cell))
                waiting.append((name, held))
                yield name, cell, held


def _is_table(name: str, value: Any) -> bool:
    """Whether a value is a table of a module's or class's own that is filled when it is loaded, so that it is no cache."""
    return type(value) in _TABLES and bool(value) and not name.startswith("__")


def _ids(table: Any) -> list[int]:
    """Return the identity of everything in a table: what is put there may answer for equality as it likes."""
    return [id(item) for pair in table.items() for item in pair] if type(table) is dict else list(map(id, table))


def _remembers(table: Any, before: list[int]) -> bool:
    """Whether all that a table does beside its former contents is to map plain values to plain values, as a cache does.

    `numpy.iinfo(dtype).max` puts what it finds into a table of its class. A function or class that is put anywhere may compute.
    """
    if type(table) is not dict or _ids(table)[: len(before)] != before:
        return False
    return _all(type(one) in _PLAIN for pair in list(table.items())[len(before) // 2 :] for one in pair)


def _contents(table: Any) -> tuple[list[int], Any]:
    """Return the identities in a table, and a copy that keeps them from being given to others."""
    return _ids(table), table.copy()


def _modes() -> int:
    """Return how many modes stand between a call of torch and torch."""
    return int(torch._C._len_torch_function_stack()) + int(torch._C._len_torch_dispatch_stack())


def settings() -> dict[str, Any]:
    """Return what torch is told for the whole process, in words; a wrapper that leaves it changed changes its caller."""
    return {
        "whether torch records gradients": torch.is_grad_enabled(),
        "torch's default dtype": torch.get_default_dtype(),
        "the seed of torch's random numbers": torch.initial_seed(),
        "the seed of the device's random numbers": npu.initial_seed() if (npu := getattr(torch, "npu", None)) else None,
        "whether torch's algorithms are deterministic": torch.are_deterministic_algorithms_enabled(),
        "the precision of torch's float32 products": torch.get_float32_matmul_precision(),
    }


def refuse_other(before: Mapping[str, Any]) -> None:
    """Raise Failure where a setting of torch is not what it was before the wrapper was called."""
    left = [words for words, now in settings().items() if now != before[words]]
    if left:
        raise Failure(Outcome.FORBIDDEN, f"the wrapper changes {', '.join(left)}, and leaves it so for its caller")


def callables(space: Any) -> dict[str, Any]:
    """Return what decides what a module or class does, by name."""
    return {key: value for key, value in vars(space).items() if _decides(value)}


def _decides(value: Any) -> bool:
    return callable(value) or isinstance(value, (property, staticmethod, classmethod)) or _is_constant(value)


def _is_constant(value: Any) -> bool:
    """Whether a value is one of C++, such as a dtype of pypto: another in its place is another program."""
    return type(type(value)).__name__ == "pybind11_type"
