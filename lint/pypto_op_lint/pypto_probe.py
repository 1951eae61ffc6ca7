"""Writes the table of pypto's public names: `python -m pypto_op_lint.pypto_probe FILE`. Imports pypto."""

from __future__ import annotations

import enum
import inspect
import os
import sys
import types
import typing
from importlib import metadata
from pathlib import Path
from typing import Any

from pypto_op.hashing import json_rows

_INTERNAL = {"pypto.pypto_impl"}
"""Modules of which only the names are listed: nobody writes kernels with them."""


def collect(version: str | None = None) -> dict[str, Any]:
    """Return the table for the pypto that `import pypto` finds; `version`: its release, else that of its metadata."""
    import pypto

    found: dict[str, Any] = {"members": {}, "returns_tensor": set(), "parameters": {}, "positional": {}}
    _module(pypto, "pypto", found, 0)
    return {
        "pypto_version": version or metadata.version("pypto"),
        "aliases": _aliases(pypto),
        "members": {owner: sorted(public) for owner, public in sorted(found["members"].items())},
        "returns_tensor": sorted(found["returns_tensor"]),
        "parameters": dict(sorted(found["parameters"].items())),
        "positional": dict(sorted(found["positional"].items())),
    }


def _aliases(pypto: Any) -> dict[str, str]:
    """Return the names that `pypto` itself has for functions of its frontend, as `pypto.jit` in 0.2.1."""
    functions = {name: value for name, value in vars(pypto.frontend).items() if inspect.isfunction(value)}
    return {f"pypto.{name}": f"pypto.frontend.{name}" for name, value in functions.items() if vars(pypto).get(name) is value}


def _module(owner: types.ModuleType, path: str, found: dict[str, Any], depth: int) -> None:
    """List a module; of pypto itself also its submodules and classes."""
    public = [n for n in dir(owner) if not n.startswith("_") and _own(getattr(owner, n), n)]
    found["members"][path] = public
    for name in public:
        value, inner = getattr(owner, name), f"{path}.{name}"
        if isinstance(value, types.ModuleType):
            if depth == 0:
                _module(value, inner, found, 1)
        elif path in _INTERNAL or (depth and not getattr(value, "__module__", "").startswith(path)):
            continue
        elif isinstance(value, type):
            if depth == 0:
                _class(value, inner, found)
        elif callable(value):
            _function(value, inner, found)


def _class(value: type, path: str, found: dict[str, Any]) -> None:
    if issubclass(value, dict) or "__getattr__" in vars(value):
        return  # its members cannot be listed
    members = list(value.__members__) + ["name", "value"] if issubclass(value, enum.Enum) else dir(value)
    found["members"][path] = [n for n in members if not n.startswith("_")]
    if value.__name__ == "Tensor":
        found["returns_tensor"].add(path)
        for name in found["members"][path]:
            member = inspect.getattr_static(value, name)
            if isinstance(member, types.FunctionType):
                _function(member, f"{path}.{name}", found)
    elif not issubclass(value, enum.Enum):
        _function(value, path, found)


def _function(value: Any, path: str, found: dict[str, Any]) -> None:
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return
    marks: dict[object, str] = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    found["parameters"][path] = [marks.get(p.kind, "") + p.name for p in signature.parameters.values()]
    kinds = [p.kind for p in signature.parameters.values()]
    if inspect.Parameter.VAR_POSITIONAL not in kinds:
        places = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        found["positional"][path] = sum(kind in places for kind in kinds)
    result = signature.return_annotation
    if (result if isinstance(result, str) else getattr(result, "__name__", "")).strip("'\"") == "Tensor":
        found["returns_tensor"].add(path)


def _own(value: Any, name: str) -> bool:
    """Whether a name that pypto shows is its own and not one it imported from elsewhere."""
    if isinstance(value, types.ModuleType):
        return value.__name__.split(".")[0] == "pypto"
    home = getattr(value, "__module__", None) or type(value).__module__
    if home == "typing":
        return not hasattr(typing, name)
    return home.split(".")[0] in ("pypto", "builtins") or type(value).__module__.split(".")[0] == "pypto"


def write(table: dict[str, Any], path: Path) -> None:
    """Write a table, all at once."""
    partial = path.with_name(f"{path.name}.{os.urandom(4).hex()}")
    partial.write_text(json_rows(table) + "\n", encoding="utf-8")
    partial.replace(path)


if __name__ == "__main__":
    write(collect(), Path(sys.argv[1]))
