"""Imports: files beside the one under check are executed like it, everything else is a name of an outer module."""

from __future__ import annotations

import importlib.util
import sys

import libcst as cst

from pypto_op.triton.static.calls import COMPILES
from pypto_op.triton.static.machine import Machine
from pypto_op.triton.static.source import SourceFile, load, sibling
from pypto_op.triton.static.values import ClassValue, Ext, Scope, Unknown, Value
from pypto_op_lint.import_statements import dotted
from pypto_op_lint.source import UnreadableSource


class Imports:
    """Executes import statements."""

    def __init__(self, machine: Machine) -> None:
        self.m = machine

    def plain(self, alias: cst.ImportAlias, scope: Scope) -> None:
        """Execute one name of `import a.b as c`."""
        module = alias.evaluated_name
        value = self._module(module, 0, alias, scope.source)
        if alias.asname is not None:
            self.m.statements.assign(alias.asname.name, value, scope)
            return
        top = module.partition(".")[0]
        scope.home(top).names[top] = value if top == module else self._module(top, 0, alias, scope.source)

    def chosen(self, node: cst.ImportFrom, scope: Scope) -> None:
        """Execute `from a import b`."""
        module, level = dotted(node.module), len(node.relative)
        origin = self._module(module, level, node, scope.source)
        if isinstance(node.names, cst.ImportStar):
            if isinstance(origin, ClassValue):
                scope.names.update({k: v for k, v in origin.names.items() if not k.startswith("_")})
            return
        for alias in node.names:
            name = alias.evaluated_name
            if isinstance(origin, Ext) and f"{origin.name}.{name}" == COMPILES:  # as a decorator it does no harm (`Calls.define`)
                value: Value = Unknown(COMPILES, denied=self.m.policy.forbidden(COMPILES) or "")
            else:
                value = self.m.members.get(origin, name, alias, scope.source)
            if isinstance(origin, ClassValue) and name not in origin.names:
                value = self._module(f"{module}.{name}" if module else name, level, alias, scope.source)
            self.m.statements.assign(alias.asname.name if alias.asname else cst.Name(name), value, scope)

    def fallback(self, node: cst.Try | cst.TryStar, source: SourceFile) -> cst.ExceptHandler | cst.ExceptStarHandler | None:
        """Return the clause that runs because `node` begins with the import of a package that is nowhere; else None."""
        handler = next((handler for handler in node.handlers if _catches_import(handler)), None)
        return handler if handler is not None and self._fails(node.body, source) else None

    def _fails(self, suite: cst.BaseSuite, source: SourceFile) -> bool:
        """Whether a suite begins with the import of a package that is nowhere; noted, since a run must not find it either."""
        first: cst.CSTNode = suite.body[0]
        if isinstance(first, cst.SimpleStatementLine):
            first = first.body[0]
        if isinstance(first, cst.ImportFrom) and not first.relative:
            name = dotted(first.module)
        elif isinstance(first, cst.Import):
            name = first.names[0].evaluated_name
        else:
            return False
        top = name.partition(".")[0]
        if top in sys.modules or sibling(source, top, 0) is not None or importlib.util.find_spec(top) is not None:
            return False
        self.m.absent.add(top)
        return True

    def module(self, name: str, node: cst.CSTNode, source: SourceFile) -> Value:
        """Return what `importlib.import_module(name)` yields, for a name without leading dots."""
        return self._module(name, 0, node, source)

    def _module(self, module: str, level: int, node: cst.CSTNode, source: SourceFile) -> Value:
        """Return what `import module` yields: the names of a file beside this one, or an outer module."""
        path = sibling(source, module, level) if module.partition(".")[0] not in _OUTSIDE else None
        if path is None:
            reason = self.m.policy.forbidden(module)
            if reason:
                self.m.deny(node, source, reason, call=f"import {module}")
            return Ext(module)
        if path.stem.endswith("_torch"):
            self.m.deny(node, source, "the implementation may not use the reference", call=f"import {module}")
            return Unknown("the reference")
        try:
            loaded = self.m.statements.module(load(path, path.name, source.root))
        except UnreadableSource as error:
            self.m.deny(node, source, f"the file beside it cannot be read: {error.told}", call=f"import {module}")
            return Unknown(module)
        if {"get_inputs", "get_input_groups"} & set(loaded.names):
            self.m.deny(node, source, "the implementation may not use the reference", call=f"import {module}")
        return ClassValue(path.stem, [], loaded.names, loaded)


_OUTSIDE = frozenset(
    {"torch", "triton", "math", "typing", "functools", "os", "sys", "torch_npu", "numpy", "operator", "__future__"}
)


def _catches_import(handler: cst.ExceptHandler | cst.ExceptStarHandler) -> bool:
    caught = handler.type
    parts = [element.value for element in caught.elements] if isinstance(caught, cst.Tuple) else [caught]
    names = {"ImportError", "ModuleNotFoundError", "Exception", "BaseException"}
    return caught is None or any(isinstance(part, cst.Name) and part.value in names for part in parts)
