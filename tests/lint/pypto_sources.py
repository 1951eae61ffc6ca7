"""The names of a pypto release that is not installed, from its Python sources: a checkout's folder `python`.

`python -m tests.lint.pypto_sources FOLDER VERSION FILE` writes the table that `pypto_probe` writes for an installed release.
The compiled module is stood in for by its stub (`pypto_impl.pyi`), so nothing runs but the package's own import. Run it on
sources that you trust, in a process of its own.
"""

from __future__ import annotations

import ast
import importlib.abc
import importlib.machinery
import sys
import types
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pypto_op_lint import pypto_probe

_COMPILED = "pypto.pypto_impl"
_LOADER = "pypto._loader"


class _Unknown:
    """What the stub does not tell: an object that answers anything."""

    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Unknown()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return _Unknown()

    def __int__(self) -> int:
        return 0

    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def __or__(self, other: Any) -> Any:
        return self

    __ror__ = __or__


class _Module(types.ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Unknown()


class _Stubs(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the compiled module in its stub, and the loader of shared libraries nowhere."""

    def __init__(self, package: Path) -> None:
        self._package = package

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name != _LOADER and not f"{name}.".startswith(f"{_COMPILED}."):
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=name == _COMPILED)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return _Module(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        stem = self._package.joinpath(*module.__name__.split(".")[1:])
        for stub in (stem.with_suffix(".pyi"), stem / "__init__.pyi"):
            if stub.is_file():
                tree = _with_values(ast.parse("from __future__ import annotations\n" + stub.read_text(encoding="utf-8")))
                exec(compile(tree, str(stub), "exec"), module.__dict__)  # noqa: S102


def _with_values(tree: ast.Module) -> ast.Module:
    """Give each member of a class, which a stub names alone or sets to `...`, a number; an enumeration needs different ones."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            for place, line in enumerate(node.body):
                value = getattr(line, "value", None)
                empty = isinstance(value, ast.Constant) and value.value is ...
                if isinstance(line, ast.AnnAssign) and (value is None or empty):
                    node.body[place] = ast.copy_location(ast.Assign([line.target], ast.Constant(place)), line)
                elif isinstance(line, ast.Assign) and empty:
                    line.value = ast.copy_location(ast.Constant(place), line)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):  # a default may be a member that is not yet there
            node.args.defaults = [ast.copy_location(ast.Constant(None), default) for default in node.args.defaults]
            node.args.kw_defaults = [d and ast.copy_location(ast.Constant(None), d) for d in node.args.kw_defaults]
    return ast.fix_missing_locations(tree)


def collect(folder: Path, version: str) -> dict[str, Any]:
    """Return the table of the release whose package `pypto` lies in `folder`.

    Names of the compiled module are left out: its stub names only some of them.
    """
    sys.path.insert(0, str(folder))
    sys.meta_path.insert(0, _Stubs(folder / "pypto"))
    table = pypto_probe.collect(version)
    return {**table, "members": {owner: names for owner, names in table["members"].items() if owner != _COMPILED}}


if __name__ == "__main__":
    pypto_probe.write(collect(Path(sys.argv[1]).resolve(), sys.argv[2]), Path(sys.argv[3]))
