"""What outlives a call of forward: attributes, globals, closures, defaults; and what of it forward changes.

The check executes one call. A constant that forward changes (a counter, a flag) is another one in the next call, so it is
executed again with such constants not known. Before that it is called until nothing new is left for a later call: functions,
objects and tables stand for all that any call left there.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, MutableMapping

from pypto_op.triton.static.machine import Bound
from pypto_op.triton.static.values import (
    ClassValue,
    Container,
    Ext,
    Function,
    Host,
    Instance,
    Scope,
    Union,
    Unknown,
    Value,
    options,
    tensors_in,
    union,
)


def holders(roots: Iterable[Scope | Value]) -> Iterator[MutableMapping[str, Value]]:
    """Yield each mapping from names to values that can be reached: of modules, closures, classes and objects."""
    waiting: list[Scope | Value] = list(roots)
    seen: set[int] = set()
    while waiting:
        held = waiting.pop()
        if id(held) in seen:
            continue
        seen.add(id(held))
        found: list[MutableMapping[str, Value]] = []
        if isinstance(held, Scope):
            found.append(held.names)
        elif isinstance(held, ClassValue):
            found.append(held.names)
            waiting += held.bases
        elif isinstance(held, Instance):
            found.append(held.attributes)
            waiting.append(held.cls)
        elif isinstance(held, Function):
            found.append(held.defaults)
            waiting += [held.scope, *([held.bound] if held.bound is not None else [])]
        elif isinstance(held, (Container, Union)):
            waiting += held.members() if isinstance(held, Container) else held.options
        for names in found:
            yield names
            waiting += names.values()


def reached(roots: Iterable[Scope | Value]) -> set[int]:
    """Return the identities of the containers, objects and classes that can be reached."""
    roots = list(roots)
    values = [root for root in roots if isinstance(root, Value)]
    values += [value for names in holders(roots) for value in names.values()]
    found: set[int] = set()
    while values:
        for option in options(values.pop()):
            if id(option) not in found and isinstance(option, (Container, Instance, ClassValue)):
                found.add(id(option))
                values += option.members() if isinstance(option, Container) else []
    return found


def names_of(changed: Iterable[Value], roots: Iterable[Scope | Value]) -> set[str]:
    """Return the names under which the containers `changed` are held."""
    wanted = {id(value) for value in changed}
    pairs = (pair for names in holders(roots) for pair in names.items())
    return {name for name, value in pairs if any(id(option) in wanted for option in options(value))}


def forget(names: Iterable[str], roots: Iterable[Scope | Value]) -> None:
    """Make the constants under these names unknown."""
    for held in list(holders(roots)):
        for name in set(names) & held.keys():
            held[name] = _forgotten(held[name])


def _forgotten(value: Value) -> Value:
    if isinstance(value, Container):
        value.items[:] = map(_forgotten, value.items)
        value.keyed.update({key: _forgotten(item) for key, item in value.keyed.items()})
        value.complete = value.complete and not value.members()
        return value
    if isinstance(value, Union):
        return union([_forgotten(option) for option in value.options])
    return Host(data=value.data) if isinstance(value, Host) and value.const is not None else value


def keep(bound: Iterable[Bound]) -> None:
    """Let each name stand for all that it may stand for when forward is called once more."""
    for names, name, before, after in bound:
        names[name] = union([*([] if before is None else [before]), after, *([names[name]] if name in names else [])])


def age(roots: Iterable[Scope | Value]) -> None:
    """Let memory that an earlier call allocated and kept be memory of the model, like a weight."""
    for names in holders(roots):
        for tensor in (tensor for value in names.values() for tensor in tensors_in(value)):
            for buffer in tensor.buffers:
                buffer.origin = "weight" if buffer.origin == "fresh" else buffer.origin


def doubt(names: Iterable[str], roots: Iterable[Scope | Value]) -> None:
    """Let what these names stand for be anything."""
    for held in list(holders(roots)):
        for name in set(names) & held.keys():
            for option in options(held[name]):
                if isinstance(option, Container):
                    option.items.append(Unknown("what an earlier call left"))
            held[name] = union([held[name], Unknown("what forward puts in the place of a function")])


def appearance(roots: Iterable[Scope | Value]) -> frozenset[Hashable]:
    """Return what kinds of things the names that can be reached stand for."""
    return frozenset((name, kind) for names in holders(roots) for name, value in names.items() for kind in _kinds(value))


def _kinds(value: Value, depth: int = 4) -> Iterator[Hashable]:
    for option in options(value):
        if isinstance(option, Host):
            yield "a constant"
        elif isinstance(option, Function):
            yield id(option.node)
        elif isinstance(option, Ext):
            yield option.name
        elif isinstance(option, Instance):
            yield from ((id(option.cls), name, kind) for name, held in option.attributes.items() for kind in _inner(held, depth))
            yield id(option.cls)
        elif isinstance(option, Container):
            named = [(repr(key), held) for key, held in option.keyed.items()] + [("", held) for held in option.items]
            yield from ((option.kind, key, kind) for key, held in named for kind in _inner(held, depth))
        else:
            yield type(option).__name__, getattr(option, "name", id(option) if isinstance(option, ClassValue) else "")


def _inner(value: Value, depth: int) -> Iterator[Hashable]:
    return _kinds(value, depth - 1) if depth else iter(())
