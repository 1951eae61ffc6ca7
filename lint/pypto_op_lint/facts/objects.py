"""Attributes and items: of modules, classes, instances, dicts and sequences of the file."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import libcst as cst

from pypto_op_lint.facts.values import (
    NOTHING_KNOWN,
    UNKNOWN,
    Cls,
    Const,
    Func,
    Instance,
    Member,
    Path,
    Seq,
    Table,
    Value,
)
from pypto_op_lint.tree import Scope, Tree

if TYPE_CHECKING:
    from pypto_op_lint.facts.evaluator import Evaluator

_CHANGING = {
    "append", "extend", "insert", "pop", "remove", "clear", "sort", "reverse", "update", "setdefault", "popitem",
    "__setitem__", "__delitem__",
}  # fmt: skip

Stores = dict[str, list[tuple[cst.BaseExpression, cst.BaseExpression]]]


def attribute_stores(tree: Tree) -> Stores:
    """Return every `base.name = value` by name."""
    stores: Stores = {}
    for site in tree.sites(cst.Assign, cst.AnnAssign):
        node = site.node
        targets = [t.target for t in node.targets] if isinstance(node, cst.Assign) else [node.target]  # type: ignore[attr-defined]
        for target in targets:
            if isinstance(target, cst.Attribute) and node.value is not None:  # type: ignore[attr-defined]
                stores.setdefault(target.attr.value, []).append((target.value, node.value))  # type: ignore[attr-defined]
    return stores


def changed_containers(tree: Tree) -> dict[str, list[Scope]]:
    """Return the names of containers that are stored into or changed by a method, with the scopes in which that happens."""
    found: dict[str, list[Scope]] = {}
    for site in tree.sites(cst.AssignTarget, cst.AugAssign, cst.Call, cst.Del):
        node = site.node
        owner: cst.CSTNode | None = None
        if isinstance(node, cst.Call):
            if isinstance(node.func, cst.Attribute) and node.func.attr.value in _CHANGING:
                owner = node.func.value
        else:
            target = node.target  # type: ignore[attr-defined]
            owner = target.value if isinstance(target, cst.Subscript) else None
        while isinstance(owner, cst.Subscript):
            owner = owner.value
        if isinstance(owner, cst.Name):
            found.setdefault(owner.value, []).append(site.scope)
    return found


def changed(ev: Evaluator, value: Value, name: str) -> Value:
    """Return what a container may be that the file changes: its items and length are not known any more."""
    return Member(Member(UNKNOWN, name), "[*]") if isinstance(value, (Seq, Table)) else value


def attribute(ev: Evaluator, base: Value, name: str) -> Iterable[Value]:
    """Return what `base.name` may be."""
    if isinstance(base, Path):
        return (Path(f"{base.name}.{name}"),)
    if isinstance(base, Table):
        return base.entries.get(name, (Member(base, name),))
    if isinstance(base, Cls):
        return class_attribute(ev, base, name, None) or (Member(base, name),)
    if isinstance(base, Instance):
        return _instance_attribute(ev, base, name) or (Member(base, name),)
    if isinstance(base, Const) and name == "value":
        return (base,)  # an Enum member's value
    return (Member(base, name),)


def class_attribute(ev: Evaluator, cls: Cls, name: str, instance: Instance | None) -> list[Value]:
    """Return what a class of the file, or a class of the file it derives from, binds `name` to."""
    found: list[Value] = []
    for binding in cls.scope.bindings.get(name, []):
        for value in ev.bound(binding, cls.scope):
            found.append(_method(ev, value, instance is not None) if isinstance(value, Func) else value)
    for owner, stored in ev.attribute_stores.get(name, []):
        if any(isinstance(v, Cls) and v == cls for v in ev.values(owner)):
            found.extend(ev.values(stored))
    if found:
        return found
    for base in cls.node.bases:
        for value in ev.values(base.value):
            if isinstance(value, Cls) and value != cls:
                found.extend(class_attribute(ev, value, name, instance))
    return found


def _method(ev: Evaluator, value: Func, on_instance: bool) -> Func:
    decorators = {path for d in value.function.decorators for path in ev.paths(d)}
    if "builtins.staticmethod" in decorators:
        return Func(value.function, 0, value.via_jit)
    takes_owner = on_instance or "builtins.classmethod" in decorators
    return Func(value.function, 1 if takes_owner else 0, value.via_jit)


def _instance_attribute(ev: Evaluator, base: Instance, name: str) -> list[Value]:
    found: list[Value] = []
    field = _field_argument(base, name)
    if field is not None:
        return list(ev.values(field))
    for owner, stored in ev.attribute_stores.get(name, []):
        if any(isinstance(v, Instance) and v.cls == base.cls for v in ev.values(owner)):
            found.extend(ev.values(stored))
    if found:
        return found
    inherited = class_attribute(ev, base.cls, name, base)
    properties: list[Value] = []
    for value in inherited:
        if isinstance(value, Func) and _is_property(ev, value):
            properties.extend(ev.returned(value.function))
        else:
            properties.append(value)
    return properties


def _is_property(ev: Evaluator, value: Func) -> bool:
    wanted = {"builtins.property", "functools.cached_property"}
    return any(wanted & ev.paths(d) for d in value.function.decorators)


def _field_argument(base: Instance, name: str) -> cst.BaseExpression | None:
    """Return the argument that set field `name` of a dataclass or NamedTuple."""
    if base.call is None or "__init__" in base.cls.scope.bindings:
        return None
    fields = [n for n, found in base.cls.scope.bindings.items() if isinstance(found[0].site.node, cst.AnnAssign)]
    if name not in fields:
        return None
    place = fields.index(name)
    for index, arg in enumerate(base.call.args):
        if arg.star:
            return None
        if arg.keyword is not None and arg.keyword.value == name:
            return arg.value
        if arg.keyword is None and index == place:
            return arg.value
    return None


def subscript(ev: Evaluator, node: cst.Subscript) -> Iterable[Value]:
    """Return what `base[index]` may be."""
    found: list[Value] = []
    index = node.slice[0].slice if len(node.slice) == 1 else None
    for base in ev.values(node.value):
        if isinstance(index, cst.Index):
            found.extend(_item(ev, base, index.value))
        elif isinstance(index, cst.Slice) and isinstance(base, Seq):
            found.extend(_slice(ev, base, index))
        else:
            found.append(Member(base, "[]"))
    return found or NOTHING_KNOWN


def _item(ev: Evaluator, base: Value, index: cst.BaseExpression) -> Iterable[Value]:
    constant = ev.constant(index)
    if isinstance(base, Seq):
        if constant is None:
            return [v for item in base.items for v in item] or (Member(base, "[]"),)
        if isinstance(constant.value, int) and -len(base.items) <= constant.value < len(base.items):
            return base.items[constant.value]
    if isinstance(base, Table):
        if constant is None:
            return [v for item in base.entries.values() for v in item] or (Member(base, "[]"),)
        if constant.value in base.entries:
            return base.entries[constant.value]
    key = constant.value if constant is not None and isinstance(constant.value, str) else None
    if isinstance(base, Path) and key is not None and base.name.endswith(".__dict__"):
        return (Path(f"{base.name.removesuffix('.__dict__')}.{key}"),)
    if isinstance(base, Cls) and key is not None:
        return class_attribute(ev, base, key, None) or (Member(base, "[]"),)
    return (Member(base, "[]"),)


def _slice(ev: Evaluator, base: Seq, index: cst.Slice) -> Iterable[Value]:
    bounds: list[int | None] = []
    for part in (index.lower, index.upper, index.step):
        constant = ev.constant(part) if part is not None else None
        if part is not None and (constant is None or not isinstance(constant.value, int)):
            return (Member(base, "[]"),)
        bounds.append(constant.value if constant is not None else None)
    if bounds[2] == 0:
        return (Member(base, "[]"),)
    return (Seq(base.kind, base.items[slice(*bounds)]),)
