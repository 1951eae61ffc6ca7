"""What outlives a call of forward: attributes, globals, closures, defaults; and what of it forward changes.

The check executes one call. A constant that forward changes (a counter, a flag, a chosen function) is another one in the next
call, so it is executed again with such constants not known.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableMapping

from pypto_op.triton.static.values import (
    ClassValue,
    Container,
    Function,
    Host,
    Instance,
    Scope,
    Tensor,
    Union,
    Unknown,
    Value,
    options,
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
        value.items.append(Host() if value.members() else Unknown("what an earlier call left"))
        value.complete = False
        return value
    if isinstance(value, Union):
        return union([_forgotten(option) for option in value.options])
    if isinstance(value, Host):
        return union([value, Host()]) if value.const is None else Host(data=value.data)
    return (
        value
        if isinstance(value, (Tensor, Instance))
        else union([value, Unknown("what forward puts in the place of a function")])
    )
