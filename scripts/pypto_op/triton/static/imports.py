"""Imports: files beside the one under check are executed like it, everything else is a name of an outer module."""

from __future__ import annotations

import libcst as cst
from libcst.helpers import get_full_name_for_node

from pypto_op.triton.static.machine import Machine
from pypto_op.triton.static.source import Unreadable, read_source, sibling
from pypto_op.triton.static.values import ClassValue, Ext, Scope, Unknown, Value


class Imports:
    """Executes import statements."""

    def __init__(self, machine: Machine) -> None:
        self.m = machine

    def plain(self, alias: cst.ImportAlias, scope: Scope) -> None:
        """Execute one name of `import a.b as c`."""
        dotted = alias.evaluated_name
        value = self._module(dotted, 0, alias, scope)
        if alias.asname is not None:
            self.m.statements.assign(alias.asname.name, value, scope)
            return
        top = dotted.split(".")[0]
        scope.home(top).names[top] = value if top == dotted else self._module(top, 0, alias, scope)

    def chosen(self, node: cst.ImportFrom, scope: Scope) -> None:
        """Execute `from a import b`."""
        dotted, level = (get_full_name_for_node(node.module) if node.module else None) or "", len(node.relative)
        origin = self._module(dotted, level, node, scope)
        if isinstance(node.names, cst.ImportStar):
            if isinstance(origin, ClassValue):
                scope.names.update({k: v for k, v in origin.names.items() if not k.startswith("_")})
            return
        for alias in node.names:
            name = alias.evaluated_name
            value = self.m.members.get(origin, name, alias, scope.source)
            if isinstance(origin, ClassValue) and name not in origin.names:
                value = self._module(f"{dotted}.{name}" if dotted else name, level, alias, scope)
            self.m.statements.assign(alias.asname.name if alias.asname else cst.Name(name), value, scope)

    def _module(self, dotted: str, level: int, node: cst.CSTNode, scope: Scope) -> Value:
        """Return what `import dotted` yields: the names of a file beside this one, or an outer module."""
        path = sibling(scope.source, dotted, level) if dotted.split(".", maxsplit=1)[0] not in _OUTSIDE else None
        if path is None:
            reason = self.m.policy.forbidden(dotted)
            if reason:
                self.m.deny(node, scope.source, reason, call=f"import {dotted}")
            return Ext(dotted)
        if path.stem.endswith("_torch"):
            self.m.deny(node, scope.source, "the implementation may not use the reference", call=f"import {dotted}")
            return Unknown("the reference")
        try:
            loaded = self.m.statements.module(read_source(path, path.name))
        except Unreadable as error:
            self.m.deny(node, scope.source, f"the file beside it cannot be read: {error}", call=f"import {dotted}")
            return Unknown(dotted)
        if {"get_inputs", "get_input_groups"} & set(loaded.names):
            self.m.deny(node, scope.source, "the implementation may not use the reference", call=f"import {dotted}")
        return ClassValue(path.stem, [], loaded.names, loaded)


_OUTSIDE = frozenset(
    {"torch", "triton", "math", "typing", "functools", "os", "sys", "torch_npu", "numpy", "operator", "__future__"}
)
