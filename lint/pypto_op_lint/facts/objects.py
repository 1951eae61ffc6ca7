"""Attributes and items: of modules, classes, instances, dicts and sequences of the file."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from pypto_op_lint.facts import custom_ops
from pypto_op_lint.facts.values import ANY, NOTHING_KNOWN, UNKNOWN, Cls, Const, Func, Instance, Member, Path, Seq, Table, Value
from pypto_op_lint.tree import Scope, Tree

if TYPE_CHECKING:
    from pypto_op_lint.facts.evaluator import Evaluator

_CHANGING = {
    "append", "extend", "insert", "pop", "remove", "clear", "sort", "reverse", "update", "setdefault", "popitem",
    "__setitem__", "__delitem__",
}  # fmt: skip

AUTOGRAD = {"torch.autograd.Function", "torch.autograd.function.Function"}
_OPERATORS = "torch.ops."
_PUTTING = {"append", "insert", "setdefault", "__setitem__"}
_TAKING = {"get", "setdefault", "pop"}


class Change(NamedTuple):
    """One place where the file changes a container; `stored` is the item put in, if that is told."""

    scope: Scope
    owner: cst.Name | cst.Attribute
    stored: cst.BaseExpression | None


Changes = dict[str, list[Change]]
Stores = dict[str, list[tuple[cst.BaseExpression, cst.BaseExpression]]]


def attribute_stores(tree: Tree) -> Stores:
    """Return every `base.name = value` by name."""
    stores: Stores = {}
    for site in tree.sites(cst.Assign, cst.AnnAssign):
        node = site.node
        targets = [t.target for t in node.targets] if type(node) is cst.Assign else [node.target]  # type: ignore[attr-defined]
        for target in targets:
            if type(target) is cst.Attribute and node.value is not None:  # type: ignore[attr-defined]
                stores.setdefault(target.attr.value, []).append((target.value, node.value))  # type: ignore[attr-defined]
    return stores


def changed_containers(tree: Tree) -> Changes:
    """Return, by name, where the file changes a container, and what it puts in where that is told."""
    found: Changes = {}
    for site in tree.sites(cst.Assign, cst.AugAssign, cst.Call, cst.Del):
        for target, stored in _stored(site.node):
            owner = target
            while isinstance(owner, cst.Subscript):
                owner = owner.value
            if isinstance(owner, (cst.Name, cst.Attribute)):
                name = owner.value if isinstance(owner, cst.Name) else owner.attr.value
                found.setdefault(name, []).append(Change(site.scope, owner, stored))
    return found


def _stored(node: cst.CSTNode) -> Iterable[tuple[cst.BaseExpression, cst.BaseExpression | None]]:
    """Return each container that a statement or call changes, with the item that it puts in."""
    if type(node) is cst.Call:
        if type(node.func) is cst.Attribute and node.func.attr.value in _CHANGING:
            last = node.args[-1].value if node.args and node.func.attr.value in _PUTTING else None
            yield node.func.value, last
    elif type(node) is cst.Assign:
        for target in (t.target for t in node.targets):
            if type(target) is cst.Subscript:
                yield target.value, node.value
    elif type(node.target) is cst.Subscript:  # type: ignore[attr-defined]
        yield node.target.value, None  # type: ignore[attr-defined]


def keeps_items(node: cst.Call) -> bool:
    """Whether a call only puts its arguments into a container, or takes one out."""
    return isinstance(node.func, cst.Attribute) and node.func.attr.value in _PUTTING | _TAKING


def put_in(ev: Evaluator, container: cst.BaseExpression) -> list[Value]:
    """Return what the file puts into the container that an expression names: `cache[key] = build(dtype)`."""
    if not isinstance(container, (cst.Name, cst.Attribute)):
        return []
    name = container.value if isinstance(container, cst.Name) else container.attr.value
    changes = ev.changed_containers.get(name, ())
    kind = type(container)
    if isinstance(container, cst.Name) and changes:
        site = ev.tree.site(container)
        home = site.scope.lookup(container.value) if site is not None else None
        changes = [c for c in changes if home is not None and (c.scope.lookup(name) or (None,))[0] is home[0]]
    return [v for c in changes if c.stored is not None and isinstance(c.owner, kind) for v in ev.values(c.stored)]


def changed(ev: Evaluator, value: Value, name: str) -> Value:
    """Return what a container may be that the file changes: its items and length are not known any more."""
    return Member(Member(UNKNOWN, name), "[*]") if isinstance(value, (Seq, Table)) else value


def attribute(ev: Evaluator, base: Value, name: str) -> Iterable[Value]:
    """Return what `base.name` may be."""
    if isinstance(base, Path):
        if base.name.startswith(_OPERATORS):
            own = custom_ops.registered(ev).get(f"{base.name.removeprefix(_OPERATORS)}.{name}")
            if own:
                return list(own)
        return (Path.of(f"{base.name}.{name}"),)
    if isinstance(base, Func) and name == "default":
        return (base,)  # the one overload of an operator that the file registered
    if isinstance(base, Table):
        return base.entries.get(name, (Member(base, name),))
    if isinstance(base, Seq) and name in base.names:
        return base.items[base.names.index(name)]
    if isinstance(base, Cls):
        return class_attribute(ev, base, name, None) or (Member(base, name),)
    if isinstance(base, Instance):
        return _instance_attribute(ev, base, name) or (Member(base, name),)
    if isinstance(base, Const) and name == "value":
        return (base,)  # an Enum member's value
    return (Member(base, name),)


def stored_in(ev: Evaluator, node: cst.Attribute) -> list[cst.BaseExpression]:
    """Return what the file stores into an object's attribute: the `y` of `self.y = y` for `self.y`."""
    stores = ev.attribute_stores.get(node.attr.value)
    if not stores:
        return []
    classes = {v.cls for v in ev.values(node.value) if isinstance(v, Instance)}
    return [stored for owner, stored in stores if any(isinstance(v, Instance) and v.cls in classes for v in ev.values(owner))]


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
            elif name == "apply" and isinstance(value, Path) and value.name in AUTOGRAD:
                # torch runs `forward(ctx, ...)` with what `apply` is given.
                forward = class_attribute(ev, cls, "forward", None)
                found.extend(Func(v.function, 1, v.via_jit) for v in forward if isinstance(v, Func))
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


def named_tuple(ev: Evaluator, cls: Cls, node: cst.Call) -> list[Value]:
    """Return what a call of a `typing.NamedTuple` without methods makes; [] for other classes and unknown fields."""
    if not any("typing.NamedTuple" in ev.paths(base.value) for base in cls.node.bases):
        return []
    made, fields = Instance(cls, node), {n: b[0].site.node for n, b in cls.scope.bindings.items()}
    if any(arg.star for arg in node.args) or not all(isinstance(field, cst.AnnAssign) for field in fields.values()):
        return []
    items = [tuple(_instance_attribute(ev, made, name)) for name in fields]
    return [Seq("tuple", tuple(items), tuple(fields))] if all(items) else []


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
    return [*found, *put_in(ev, node.value)] or NOTHING_KNOWN


def taken(ev: Evaluator, node: cst.Call) -> list[Value]:
    """Return the items that `table.get(key)`, `table.setdefault(key, item)` or `table.pop(key)` may give; [] for other calls."""
    if not isinstance(node.func, cst.Attribute) or node.func.attr.value not in _TAKING:
        return []
    tables = [v for v in ev.values(node.func.value) if isinstance(v, Table)]
    items = [v for table in tables for item in table.entries.values() for v in item]
    return [*items, *put_in(ev, node.func.value)]


def _item(ev: Evaluator, base: Value, index: cst.BaseExpression) -> Iterable[Value]:
    constant = ev.constant(index)
    if isinstance(base, Seq):
        if constant is None:
            return [v for item in base.items for v in item] or (Member(base, "[]"),)
        if isinstance(constant.value, int) and -len(base.items) <= constant.value < len(base.items):
            return base.items[constant.value]
    if isinstance(base, Table):
        wanted = table_key(ev, index)
        if wanted is ANY:
            return [v for item in base.entries.values() for v in item] or (Member(base, "[]"),)
        if wanted in base.entries or ANY in base.entries:
            return base.entries.get(wanted) or base.entries[ANY]
    key = constant.value if constant is not None and isinstance(constant.value, str) else None
    if isinstance(base, Path) and key is not None and base.name.endswith(".__dict__"):
        return (Path(f"{base.name.removesuffix('.__dict__')}.{key}"),)
    if isinstance(base, Cls) and key is not None:
        return class_attribute(ev, base, key, None) or (Member(base, "[]"),)
    return (Member(base, "[]"),)


def table_key(ev: Evaluator, key: cst.BaseExpression) -> object:
    """Return what `key` is in `Table.entries`."""
    found = ev.values(key)
    if len(found) == 1 and isinstance(found[0], Const):
        return found[0].value
    return found[0] if len(found) == 1 and isinstance(found[0], Path) else ANY


def key_value(key: object) -> Value:
    """Return what a key of `Table.entries` stands for."""
    if isinstance(key, Path):
        return key
    return UNKNOWN if key is ANY else Const.of(key)


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
