"""Reads a wheel of torch_npu for `interface.json`: `python -m tests.backends.torch_npu_wheel WHEEL` writes that file anew.

The wheel is read as text, never imported: on a machine without NPU an installed torch_npu breaks `import torch`. Python
sources tell the functions and classes. The schemas in the shared libraries tell the operators (`npu_...`), which torch_npu
offers under their own names.
"""

from __future__ import annotations

import ast
import re
import sys
import warnings
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pypto_op.backends.hostshim.interface import TABLE, UNKNOWN
from pypto_op.hashing import json_rows

_NPU = "torch_npu.npu"
_MODULES = {"torch_npu": "torch_npu", "torch.npu": _NPU, "torch_npu.profiler": "torch_npu.profiler"}
_CLASSES = ("torch.npu.Stream", "torch.npu.Event", "torch.npu.NPUGraph", "torch_npu.profiler.profile")
_SCHEMA = re.compile(rb"(?:npu::)?((?:_?npu_|get_npu_)[a-z0-9_]+)(?:\.\w+)?\(([^()]*(?:\([a-z]!?\)[^()]*)*)\) -> ")


def read_wheel(wheel: Path) -> dict[str, Any]:
    """Return the table of a wheel.

    Raises:
        zipfile.BadZipFile: the file is no wheel.
        KeyError: the wheel holds no torch_npu.
    """
    with zipfile.ZipFile(wheel) as archive:
        sources = _Sources(archive)
        modules = {name: {**sources.names(place)} for name, place in _MODULES.items()}
        modules["torch_npu"] |= _operators(archive)
        classes = {name: sources.methods(name.replace("torch.npu", _NPU)) for name in _CLASSES}
    public = {name: {key: ways for key, ways in sorted(names.items()) if key[:2] != "__"} for name, names in modules.items()}
    return {"version": wheel.name.split("-")[1], "modules": public, "classes": classes}


class _Sources:
    """The Python modules of a wheel."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self._files = set(archive.namelist())
        self._known: dict[str, dict[str, list[str]]] = {}

    def names(self, module: str) -> dict[str, list[str]]:
        """Return what a module offers, with what it takes from others."""
        if module in self._known:
            return self._known[module]
        found = self._known[module] = {}  # modules import each other in circles
        tree, package = self._tree(module)
        for node in _top(tree.body):
            if isinstance(node, ast.FunctionDef):
                found[node.name] = [_form(node)]
            elif isinstance(node, ast.ClassDef):
                found[node.name] = [_constructor(node)]
            elif isinstance(node, ast.Assign):
                found.update({target.id: [UNKNOWN] for target in node.targets if isinstance(target, ast.Name)})
                found.update({name: [UNKNOWN] for name in _listed(node) if name not in found})
            elif isinstance(node, ast.ImportFrom):
                found.update(self._taken(node, package))
        return found

    def methods(self, name: str) -> dict[str, list[str]]:
        """Return the public methods that the sources show of a class."""
        module, _, last = name.rpartition(".")
        home, node = self._class(module, last)
        found: dict[str, list[str]] = {}
        for base in node.bases:
            if isinstance(base, ast.Name) and self._has_class(home, base.id):
                found |= self.methods(f"{home}.{base.id}")
        found |= {item.name: [_form(item, bound=True)] for item in node.body if isinstance(item, ast.FunctionDef)}
        return {key: ways for key, ways in sorted(found.items()) if not key.startswith("_")}

    def _taken(self, node: ast.ImportFrom, package: str) -> dict[str, list[str]]:
        source = _source(node, package)
        if not source.startswith("torch_npu") or not self._place(source):
            return {alias.asname or alias.name: [UNKNOWN] for alias in node.names if alias.name != "*"}
        offered = self.names(source)
        if node.names[0].name != "*":
            return {alias.asname or alias.name: offered.get(alias.name, [UNKNOWN]) for alias in node.names}
        listed = [name for item in self._tree(source)[0].body if isinstance(item, ast.Assign) for name in _listed(item)]
        return {name: ways for name, ways in offered.items() if (name in listed if listed else not name.startswith("_"))}

    def _class(self, module: str, name: str) -> tuple[str, ast.ClassDef]:
        """Return a class and the module that writes it."""
        tree, package = self._tree(module)
        for node in _top(tree.body):
            if isinstance(node, ast.ClassDef) and node.name == name:
                return module, node
        for node in _top(tree.body):
            if not isinstance(node, ast.ImportFrom) or not self._place(source := _source(node, package)):
                continue
            for alias in node.names:
                if (alias.asname or alias.name) == name or (alias.name == "*" and name in self.names(source)):
                    return self._class(source, name if alias.name == "*" else alias.name)
        raise KeyError(f"{module}.{name}")

    def _has_class(self, module: str, name: str) -> bool:
        try:
            self._class(module, name)
        except KeyError:
            return False
        return True

    def _place(self, module: str) -> str:
        base = module.replace(".", "/")
        return next((path for path in (f"{base}/__init__.py", f"{base}.py") if path in self._files), "")

    def _tree(self, module: str) -> tuple[ast.Module, str]:
        """Return a module's tree, and the package that its relative imports start from."""
        place = self._place(module)
        if not place:
            raise KeyError(module)
        package = module if place.endswith("__init__.py") else module.rpartition(".")[0]
        with warnings.catch_warnings():  # of its escapes
            warnings.simplefilter("ignore")
            return ast.parse(self._archive.read(place)), package


def _top(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a module, also those under a condition."""
    for node in body:
        if isinstance(node, ast.If | ast.Try):
            yield from _top([*node.body, *node.orelse])
        else:
            yield node


def _source(node: ast.ImportFrom, package: str) -> str:
    if not node.level:
        return node.module or ""
    above = package.split(".")[: len(package.split(".")) - node.level + 1]
    return ".".join([*above, *([node.module] if node.module else [])])


def _listed(node: ast.Assign) -> list[str]:
    """Return what an assignment of `__all__` lists."""
    if not any(isinstance(target, ast.Name) and target.id == "__all__" for target in node.targets):
        return []
    return [item.value for item in ast.walk(node.value) if isinstance(item, ast.Constant) and isinstance(item.value, str)]


def _constructor(node: ast.ClassDef) -> str:
    made = {item.name: item for item in node.body if isinstance(item, ast.FunctionDef)}
    for name in ("__init__", "__new__"):
        if name in made:
            return _form(made[name], bound=True)
    return UNKNOWN


def _form(node: ast.FunctionDef, bound: bool = False) -> str:
    """Return a function's parameters without types, with `...` for defaults, and without the object where it is bound."""
    given = node.args
    static = any(isinstance(item, ast.Name) and item.id == "staticmethod" for item in node.decorator_list)
    drop = 1 if bound and not static else 0
    plain = ast.arguments(
        posonlyargs=[ast.arg(argument.arg) for argument in given.posonlyargs],
        args=[ast.arg(argument.arg) for argument in given.args[drop:]],
        vararg=ast.arg(given.vararg.arg) if given.vararg else None,
        kwonlyargs=[ast.arg(argument.arg) for argument in given.kwonlyargs],
        kw_defaults=[None if default is None else ast.Constant(...) for default in given.kw_defaults],
        kwarg=ast.arg(given.kwarg.arg) if given.kwarg else None,
        defaults=[ast.Constant(...) for _ in given.defaults],
    )
    return f"({ast.unparse(plain)})"


def _operators(archive: zipfile.ZipFile) -> dict[str, list[str]]:
    """Return the operators whose schemas stand in the shared libraries."""
    found: dict[str, list[str]] = {}
    for name in sorted(archive.namelist()):
        if not re.fullmatch(r"torch_npu/lib/[^/]+\.so", name):
            continue
        for operator, parameters in _SCHEMA.findall(archive.read(name)):
            form, ways = _of_schema(parameters.decode()), found.setdefault(operator.decode(), [])
            if form not in ways:
                ways.append(form)
    return found


def _of_schema(parameters: str) -> str:
    """Return the form of `Tensor x, int y=0, *, Tensor? z=None`."""
    words, depth = [""], 0
    for letter in parameters:
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and not depth:
            words.append("")
        else:
            words[-1] += letter
    made = []
    for word in (word.strip() for word in words if word.strip()):
        declared, _, default = word.partition("=")
        made.append("*" if word == "*" else declared.split()[-1] + ("=..." if default else ""))
    return f"({', '.join(made)})"


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("python -m tests.backends.torch_npu_wheel WHEEL")
    TABLE.write_text(json_rows(read_wheel(Path(sys.argv[1]))) + "\n", encoding="utf-8")
