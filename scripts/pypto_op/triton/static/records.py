"""Objects of the file's classes: dataclasses, named tuples, plain holders, and their use as tuples and lists."""

from __future__ import annotations

import libcst as cst

from pypto_op.triton.static.evaluate import TUPLES
from pypto_op.triton.static.machine import Machine
from pypto_op.triton.static.source import SourceFile
from pypto_op.triton.static.values import (
    ClassValue,
    Container,
    Ext,
    ExtInstance,
    Function,
    Host,
    Instance,
    Scope,
    Unknown,
    Value,
    union,
)

TUPLE_METHODS = frozenset({"_asdict", "_replace"})
_FIELD = "dataclasses.field"


class Records:
    """Makes objects, and says what they hold when they are unpacked."""

    def __init__(self, machine: Machine) -> None:
        self.m = machine

    def make(
        self, cls: ClassValue, args: list[Value], kwargs: dict[str, Value], node: cst.CSTNode, source: SourceFile
    ) -> Instance:
        """Return a new object of a class: its constructor is executed, or its fields are set in order."""
        instance = Instance(cls)
        self.m.instances.append(instance)
        init = self.m.members.find(instance, "__init__")
        if init is not None:
            self.m.calls.call(init, args, kwargs, node, source)
            return instance
        names = [] if cls.extends("torch.nn.") else _fields(cls) or _plain(cls)
        instance.attributes.update(zip(names, args, strict=False))
        instance.attributes.update(kwargs)
        instance.attributes.update({f"#{position}": value for position, value in enumerate(args[len(names) :])})
        self._defaults(instance, names, node, source)
        self._after(instance, node, source)
        return instance

    def _defaults(self, instance: Instance, names: list[str], node: cst.CSTNode, source: SourceFile) -> None:
        for name in names:
            found = instance.cls.find(name)
            default = found[0] if found is not None else None
            if name in instance.attributes or not isinstance(default, ExtInstance) or default.name != _FIELD:
                continue
            made = [self.m.calls.call(hook, [], {}, node, source) for hook in default.hooks]
            instance.attributes[name] = union(made) if made else Host()

    def _after(self, instance: Instance, node: cst.CSTNode, source: SourceFile) -> None:
        after = self.m.members.find(instance, "__post_init__")
        if after is not None:
            self.m.calls.call(after, [], {}, node, source)

    def call(self, name: str, args: list[Value], kwargs: dict[str, Value], node: cst.CSTNode, source: SourceFile) -> Value | None:
        """Return the result of a call that makes a record or a class of records; None for any other name."""
        if name in ("collections.namedtuple", "typing.NamedTuple") and len(args) >= 2:
            return _named_tuple(args[1], kwargs.get("defaults"), source)
        if name == "types.SimpleNamespace":
            instance = Instance(ClassValue("SimpleNamespace", [], {}, Scope({}, None, source)), dict(kwargs))
            self.m.instances.append(instance)
            return instance
        if name == _FIELD:
            if "default" in kwargs:
                return kwargs["default"]
            return ExtInstance(_FIELD, (kwargs["default_factory"],) if "default_factory" in kwargs else ())
        if name == "dataclasses.replace" and args and isinstance(args[0], Instance):
            changed = Instance(args[0].cls, {**args[0].attributes, **kwargs})
            self.m.instances.append(changed)
            self._after(changed, node, source)
            return changed
        if name in ("dataclasses.asdict", "dataclasses.astuple") and args and isinstance(args[0], Instance):
            held = self._held(args[0])
            return Container("dict", keyed=held) if name.endswith("asdict") else Container("tuple", list(held.values()))
        return None

    def method(self, owner: Instance, name: str, kwargs: dict[str, Value]) -> Value:
        """Return the result of a method that every named tuple has (TUPLE_METHODS)."""
        held = self._held(owner)
        return Container("dict", keyed=held) if name == "_asdict" else Instance(owner.cls, {**held, **kwargs})

    def as_tuple(self, value: Value) -> Value:
        """Return a named tuple as a tuple, an object that can be iterated as what that yields, anything else as it is."""
        if not isinstance(value, Instance):
            return value
        if value.cls.extends(*TUPLES):
            return Container("tuple", list(self._held(value).values()))
        found = value.cls.find("__iter__")
        if found is None or not isinstance(found[0], Function):
            return value
        node, source = found[0].node, found[0].scope.source
        iterated = self.m.calls.call(self.m.members.get(value, "__iter__", node, source), [], {}, node, source)
        following = iterated.cls.find("__next__") if isinstance(iterated, Instance) else None
        if following is None:
            return iterated if isinstance(iterated, Container) else Container("list", [iterated], complete=False)
        item = self.m.calls.call(self.m.members.get(iterated, "__next__", node, source), [], {}, node, source)
        return Container("list", [item], complete=False)

    def _held(self, instance: Instance) -> dict[str, Value]:
        """Return an object's fields with their values, in order."""
        held: dict[str, Value] = {}
        for name in _fields(instance.cls):
            found = instance.cls.find(name)
            held[name] = instance.attributes.get(name) or (found[0] if found is not None else Host())
        return {**held, **{name: value for name, value in instance.attributes.items() if name not in held}}


def _fields(cls: ClassValue) -> list[str]:
    """Return the annotated names of a class and its bases, the bases' first."""
    owners = [owner for owner in cls.lineage() if isinstance(owner, ClassValue)]
    return list(dict.fromkeys(name for owner in reversed(owners) for name in owner.fields))


def _plain(cls: ClassValue) -> list[str]:
    """Return the public names of a class that no method has: its arguments would otherwise stand where its methods do."""
    return [name for name, value in cls.names.items() if not name.startswith("_") and not isinstance(value, Function)]


def _named_tuple(fields: Value, defaults: Value | None, source: SourceFile) -> Value:
    """Return the class that `namedtuple(name, fields)` makes; fields are one string, strings, or pairs."""
    words: list[Value] = [fields] if isinstance(fields, Host) else fields.members() if isinstance(fields, Container) else []
    firsts = [word.items[0] if isinstance(word, Container) and word.items else word for word in words]
    texts = [first.const for first in firsts if isinstance(first, Host) and isinstance(first.const, str)]
    if not texts or len(texts) != len(words):
        return Unknown("a named tuple whose fields are not known")
    names = [name for text in texts for name in text.replace(",", " ").split()]
    known = defaults.items if isinstance(defaults, Container) else []
    held = dict(zip(names[len(names) - len(known) :], known, strict=False))
    return ClassValue("namedtuple", [Ext("typing.NamedTuple")], held, Scope({}, None, source), names)
