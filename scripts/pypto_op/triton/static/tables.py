"""Lists, dicts, sets and tuples: what their methods change, and what they may hold afterwards.

A member that may have been replaced stays beside the one that replaced it. So do all members once their order is not known.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from pypto_op.triton.static.machine import Machine
from pypto_op.triton.static.source import SourceFile
from pypto_op.triton.static.values import Container, Host, Scope, Unknown, Value, options, union
from pypto_op_lint.constants import NOTHING

_ADDS = frozenset({"append", "add", "insert", "appendleft"})
_JOINS = frozenset({"extend", "extendleft", "update", "__iadd__", "__ior__"})
_SHUFFLES = frozenset({"pop", "popitem", "popleft", "remove", "discard", "clear", "sort", "reverse", "rotate", "move_to_end",
                       "__delitem__"})  # fmt: skip
_SETS = frozenset({"setdefault", "__setitem__"})
_CHANGES = _ADDS | _JOINS | _SHUFFLES | _SETS
"""Methods that change a container."""

_QUIET = frozenset({"index", "count", "__len__", "__contains__", "__iter__", "isdisjoint", "issubset", "issuperset", "total"})
"""Methods that change nothing and return no member."""

_OWNERS = ("builtins.list.", "builtins.dict.", "builtins.set.", "collections.deque.", "collections.OrderedDict.",
           "collections.defaultdict.")  # fmt: skip
_OF_OPERATOR = {"operator.setitem": "__setitem__", "operator.delitem": "__delitem__", "operator.iadd": "__iadd__",
                "operator.iconcat": "__iadd__", "operator.ior": "__ior__", "operator.getitem": "__getitem__"}  # fmt: skip

_LEAVE_ALONE = ("builtins.", "torch", "triton", "itertools.", "functools.", "typing.", "dataclasses.", "math.", "collections.",
                "copy.", "types.", "numpy.", "contextlib.", "importlib.")  # fmt: skip
"""Modules whose functions change no container that they are given, or are followed."""


class Tables:
    """Changes containers."""

    def __init__(self, machine: Machine) -> None:
        self.m = machine

    def put(self, owner: Container, key: Value, value: Value) -> None:
        """Bind `owner[key]`."""
        const = key.const if isinstance(key, Host) else NOTHING
        known = const is not NOTHING and not isinstance(const, (list, dict, set))
        sure = self.m.sure and not self._lasts(owner)
        if owner.kind != "list":
            if known:
                before = owner.keyed.get(const)
                owner.keyed[const] = value if sure or before is None else union([before, value])
            else:
                owner.items.append(value)
                owner.complete = False
        elif known and sure and owner.complete and isinstance(const, int) and -len(owner.items) <= const < len(owner.items):
            owner.items[const] = value
        else:
            self.shuffle(owner)
            owner.items += value.members() if isinstance(key, Host) and key.is_slice and isinstance(value, Container) else [value]

    def shuffle(self, owner: Container) -> None:
        """Forget the order of members, and their keys."""
        owner.items += owner.keyed.values()
        owner.keyed.clear()
        owner.complete = False

    def called(self, name: str, args: list[Value]) -> str | None:
        """Return the method that a function of the library calls on its first argument (`operator.setitem`, `list.append`)."""
        if not args or not any(isinstance(option, Container) for option in options(args[0])):
            return None
        if name in _OF_OPERATOR:
            return _OF_OPERATOR[name]
        return name.rpartition(".")[2] if name.startswith(_OWNERS) else None

    def given(self, name: str, args: list[Value]) -> None:
        """Let a function of a library that is not known change the containers that it is given (`heapq.heappush`)."""
        if not name.startswith(_LEAVE_ALONE):
            for owner in (option for value in args for option in options(value) if isinstance(option, Container)):
                self.shuffle(owner)
                owner.items += [value for value in args if value is not owner and not isinstance(value, Container)]

    def method(
        self, owner: Container, name: str, args: list[Value], kwargs: dict[str, Value], node: cst.CSTNode, source: SourceFile
    ) -> Value:
        """Call a method of a list, tuple or dict."""
        if name == "send":
            return self.m.expressions.item_of(owner)
        if self.m.phase == "forward" and name in _CHANGES and self._lasts(owner):
            self.m.changed_containers.append(owner)
        if name in _ADDS | _JOINS | _SETS:
            return self._add(owner, name, args, kwargs, node, source)
        if name == "items":
            keyed: list[Value] = [Container("tuple", [Host(key), value]) for key, value in owner.keyed.items()]
            rest: list[Value] = [Container("tuple", [Host(), value]) for value in owner.items]
            return Container("list", keyed + rest, complete=owner.complete)
        if name in ("values", "copy", "keys"):
            if name == "copy":
                return Container(owner.kind, list(owner.items), dict(owner.keyed), owner.complete)
            return Container("list", owner.members() if name != "keys" else [Host(key) for key in owner.keyed], complete=False)
        if name in ("get", "pop", "popitem", "popleft", "__getitem__"):
            found = self._found(owner, args, node, source)
            if name.startswith("pop"):
                self.shuffle(owner)
            return found
        if name == "sort":
            self.m.following.hand_over("builtins.sorted", [owner, *kwargs.values()], node, source)
        if name not in _QUIET:
            self.shuffle(owner)
            owner.items += args if name not in _SHUFFLES else []
        return Host()

    def _found(self, owner: Container, args: list[Value], node: cst.CSTNode, source: SourceFile) -> Value:
        found = self.m.expressions.select(owner, args[0] if args else Host(), node, source)
        if not isinstance(found, Unknown) or len(args) < 2:
            return union([found, *args[1:]])
        return union([args[1], Unknown("an element")]) if owner.members() or not owner.complete else args[1]

    def _add(
        self, owner: Container, name: str, args: list[Value], kwargs: dict[str, Value], node: cst.CSTNode, source: SourceFile
    ) -> Value:
        pairs = list(self._pairs(owner, name, args, kwargs))
        added = [value for _, value in pairs]
        if self.m.phase == "forward" and self._lasts(owner):
            self.m.statements.deny_keeping(node, Container("list", added), Scope({}, None, source))
        if name == "append" and owner.kind in ("list", "deque") and self.m.sure and not self._lasts(owner):
            owner.items += added
        elif owner.kind in ("list", "deque"):
            self.shuffle(owner)
            owner.items += added
        else:
            for key, value in pairs:
                before = owner.keyed.get(key.const) if name == "setdefault" and isinstance(key, Host) else None
                self.put(owner, key, value if before is None else union([before, value]))
        if name == "setdefault":
            return self.m.expressions.select(owner, args[0] if args else Host(), node, source)
        return owner if name in ("__iadd__", "__ior__") else Host(None)

    @staticmethod
    def _pairs(owner: Container, name: str, args: list[Value], kwargs: dict[str, Value]) -> Iterator[tuple[Value, Value]]:
        """Yield what a method adds, with its keys."""
        if name in _SETS:
            yield (args[0] if args else Host()), (args[1] if len(args) > 1 else Host(None))
            return
        for value in args[1:] if name == "insert" else args:
            if name in _ADDS:
                yield Host(), value
                continue
            for option in options(value):
                if not isinstance(option, Container):
                    yield Host(), Host(data=option.data) if isinstance(option, Host) else Unknown("an element that is added")
                    continue
                yield from ((Host(key), item) for key, item in option.keyed.items())
                for item in option.items:
                    pair = isinstance(item, Container) and len(item.items) == 2 and owner.kind == "dict" and option.kind != "dict"
                    yield (item.items[0], item.items[1]) if pair else (Host(), item)  # type: ignore[attr-defined]
        yield from ((Host(key), item) for key, item in kwargs.items())

    def _lasts(self, owner: Container) -> bool:
        """Whether a container outlives forward, which changes it: it is reached from a module, a class or self."""
        return self.m.phase == "forward" and id(owner) in self.m.lasting
