"""Writes the index of the installed pypto: `python -m pypto_op.api.probe FILE`. Imports pypto, so it runs on its own."""

from __future__ import annotations

import enum
import inspect
import json
import os
import re
import sys
import types
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

from pypto_op.api import docstring

FORMAT = 1
"""Counted up when the shape of the index changes, so that an older cached one is not used."""

_MODULES = ("", "frontend", "config", "distributed", "experimental")
_NOISE = re.compile(r"pypto\.(?:tensor\.Tensor|pypto_impl\.|symbolic_scalar\.|_element\.|frontend\.parser\.\w+\.)|typing\.")


def collect() -> dict[str, Any]:
    """Return the index of the installed pypto."""
    import pypto

    entries: dict[str, Any] = {}
    for module in _MODULES:
        owner = getattr(pypto, module) if module else pypto
        for name, value in _public(owner):
            path = f"pypto.{module}.{name}" if module else f"pypto.{name}"
            entries.setdefault(path, _entry(value, path))
    for owner in (pypto.Tensor, pypto.SymbolicScalar):
        for name in dir(owner):
            if not name.startswith("_"):
                path = f"pypto.{owner.__name__}.{name}"
                entries[path] = _entry(inspect.getattr_static(owner, name), path)
    return {"format": FORMAT, "pypto_version": metadata.version("pypto"), "entries": dict(sorted(entries.items()))}


def _public(owner: Any) -> Iterator[tuple[str, Any]]:
    for name in dir(owner):
        value = getattr(owner, name)
        home = (getattr(value, "__module__", None) or type(value).__module__ or "").split(".")[0]
        if name.startswith("_") or isinstance(value, types.ModuleType) or home not in ("pypto", "builtins"):
            continue
        if isinstance(value, (types.BuiltinFunctionType, dict, list)):
            continue
        yield name, value


def _entry(value: Any, path: str) -> dict[str, Any]:
    if isinstance(value, (staticmethod, classmethod)):
        value = value.__func__
    own = value.fget if isinstance(value, property) else value
    text = inspect.getdoc(own) or "" if not isinstance(value, (int, float, str)) else ""
    members = _members(value)
    return {
        "name": path,
        "kind": _kind(value, path, members),
        "signature": _signature(own, path),
        "members": members,
        "module": str(getattr(own, "__module__", "") or ""),
        **docstring.parse(text if _says_something(value, text) else ""),
    }


def _says_something(value: Any, text: str) -> bool:
    """Say whether a docstring is the object's own; that of the base class of all enumerations is not."""
    if isinstance(value, type):
        return not issubclass(value, enum.Enum) and not text.startswith("Members:")
    return callable(value) or isinstance(value, property)


def _members(value: Any) -> list[str]:
    found = getattr(value, "__members__", None) if isinstance(value, type) else None
    return [str(name) for name in found] if found else []


def _kind(value: Any, path: str, members: list[str]) -> str:
    if members:
        return "enum"
    if isinstance(value, property):
        return "property"
    if isinstance(value, type):
        return "class"
    if callable(value):
        return "method" if path.count(".") == 2 and path.split(".")[1][0].isupper() else "function"
    return "constant"


def _signature(value: Any, path: str) -> str:
    is_class = isinstance(value, type)
    target = vars(value).get("__init__", value) if is_class else value
    try:
        text = str(inspect.signature(target))
    except (TypeError, ValueError):
        return ""
    text = _NOISE.sub(lambda found: "Tensor" if found[0].endswith("Tensor") else "", text)
    return (
        path.rpartition(".")[2] + text.replace("(self, ", "(", 1) if isinstance(value, type) else path.rpartition(".")[2] + text
    )


def main(target: str) -> None:
    """Write the index to `target`, all at once."""
    path = Path(target)
    partial = path.with_name(f"{path.name}.{os.urandom(4).hex()}")
    partial.write_text(json.dumps(collect(), indent=1) + "\n", encoding="utf-8")
    partial.replace(path)


if __name__ == "__main__":
    main(sys.argv[1])
