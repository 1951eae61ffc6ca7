"""Notices when a candidate replaced what the worker itself uses: functions, methods, classes.

A candidate shares its interpreter with the code that counts launches and takes the outputs. Replacing
`torch.Tensor.clone` or `hashlib.blake2b` would decide what that code sees. So their names are compared, by
identity, with what they were before the candidate was loaded. While candidate code runs, this bundle's modules are
not in `sys.modules` either; importing them again is refused by `guard`.
"""

from __future__ import annotations

import builtins
import hashlib
import json
import os
import sys
import time
from collections.abc import Iterable, Mapping
from types import FunctionType, ModuleType
from typing import Any

import safetensors
import safetensors.torch
import torch

from pypto_op.backends.worker.loading import Failure
from pypto_op.backends.worker.trusted import is_trusted
from pypto_op.vocabulary import Outcome

_PACKAGE = "pypto_op"


class Snapshot:
    """What certain names stood for when it was taken.

    Args:
        more: modules that the candidate's code computes with, of which nothing may be replaced either.
    """

    def __init__(self, more: Iterable[str] = ()) -> None:
        self._modules = _own_modules()
        self._active_modes = _modes()
        spaces: dict[str, Any] = {
            "builtins": builtins,
            "hashlib": hashlib,
            "json": json,
            "os": os,
            "os.path": os.path,
            "safetensors": safetensors,
            "safetensors.torch": safetensors.torch,
            "time": time,
            "torch": torch,
            **self._modules,
        }
        classes: dict[str, Any] = {
            "torch.Tensor": torch.Tensor,
            "torch._C.TensorBase": torch._C.TensorBase,
            "torch.UntypedStorage": torch.UntypedStorage,
        }
        further = {name: sys.modules[name] for name in more if name in sys.modules}
        spaces |= further
        for name, module in (*self._modules.items(), *further.items()):
            own = {k: v for k, v in vars(module).items() if isinstance(v, type) and v.__module__ == name}
            classes |= {f"{name}.{k}": v for k, v in own.items()}
        entry = sys.modules.get("pypto.frontend.parser.entry")
        if entry is not None:
            classes["pypto.frontend.parser.entry.JitCallableWrapper"] = entry.JitCallableWrapper
        self._spaces = {name: (space, callables(space)) for name, space in spaces.items()}
        self._classes = {name: (kind, callables(kind)) for name, kind in classes.items()}

    def changes(self) -> list[str]:
        """Return what is replaced now, and what stands between a call of torch and torch."""
        found = ["what every call of torch does"] if _modes() > self._active_modes else []
        return found + self.replaced()

    def replaced(self) -> list[str]:
        """Return the dotted names that stand for something else now; for classes, also new ones, which may hide others."""
        found: list[str] = []
        # It looks at thousands of names around every call of the wrapper, under the tripwire, which hears of each call
        # of a function: so nothing is called for a name that is what it was.
        for name, (space, before) in (*self._spaces.items(), *self._classes.items()):
            now = vars(space)
            others = [key for key, value in before.items() if key not in now or now[key] is not value]
            found += [f"{name}.{key}" for key in others if not _stands_for(now.get(key), before[key])]
        for name, (kind, before) in self._classes.items():
            now = vars(kind)
            found += [f"{name}.{key}" for key in list(now) if key not in before and _decides(now[key])]
        return found

    def hide_modules(self) -> None:
        """Take this bundle's modules out of `sys.modules`."""
        for name in self._modules:
            sys.modules.pop(name, None)

    def show_modules(self) -> None:
        """Put them back, in the place of whatever stands there now."""
        sys.modules.update(self._modules)


def _stands_for(now: Any, before: Any) -> bool:
    """Whether a name still stands for the same object. It may lead through a wrapper that torch put on when it loaded dynamo."""
    if now is before:
        return True
    if not isinstance(now, FunctionType) or not now.__code__.co_filename.endswith("/torch/_compile.py"):
        return False
    cells = dict(zip(now.__code__.co_freevars, now.__closure__ or (), strict=True))
    wrapped = is_trusted(now.__code__.co_filename) and "fn" in cells
    return wrapped and cells["fn"].cell_contents is before


def _own_modules() -> dict[str, ModuleType]:
    return {name: m for name, m in list(sys.modules.items()) if name.partition(".")[0] == _PACKAGE}


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
    return callable(value) or isinstance(value, (property, staticmethod, classmethod))
