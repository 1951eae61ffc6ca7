"""What the file hands to code that is not followed: callbacks, hooks of launches, special methods.

Python, Triton and other libraries call these where no call is written. Each is executed with what it may be given, so what it
computes is found. Its result is known only where the caller passes it on.
"""

from __future__ import annotations

from collections.abc import Iterable

import libcst as cst

from pypto_op.triton.static.machine import Machine, join
from pypto_op.triton.static.source import SourceFile
from pypto_op.triton.static.values import (
    ClassValue,
    Container,
    Ext,
    ExtInstance,
    Function,
    Host,
    Instance,
    Member,
    Tensor,
    TensorMethod,
    Unknown,
    Value,
    options,
    union,
)

_TAKES_FUNCTIONS = ("itertools.", "functools.", "collections.", "contextlib.", "re.", "builtins.")
_FOLLOWED = frozenset(
    {"__init__", "__new__", "__call__", "__post_init__", "__getattr__", "__class_getitem__", "__init_subclass__", "__iter__"}
)
"""Special methods that are executed where they are called."""

_QUIET_BASES = ("torch.nn.", "torch.autograd", "abc.", "enum.", "typing.", "builtins.object", "builtins.tuple", "builtins.dict")
"""Outer classes that call no method of a class of the file, but those that are followed."""

_NO_ENTRY = ("builtins.isinstance", "builtins.issubclass", "dataclasses.", "typing.", "torch.nn.", "torch.autograd.function.ctx")


class Following:
    """Executes functions of the file that other code calls: `sorted`, `re.sub`, hooks of launches."""

    def __init__(self, machine: Machine) -> None:
        self.m = machine

    def callables(self, value: Value, depth: int = 5) -> list[Value]:
        """Return the functions and callable objects of the file that a value is or holds."""
        found: list[Value] = []
        for option in options(value):
            of_class = isinstance(option, Member) and isinstance(option.owner, ClassValue)
            callable_object = isinstance(option, Instance) and option.cls.find("__call__") is not None
            denied = isinstance(option, Unknown) and option.denied
            if isinstance(option, (Function, TensorMethod)) or of_class or callable_object or denied:
                found.append(option)
            elif isinstance(option, ExtInstance):
                found += option.hooks
            elif isinstance(option, Container) and depth:
                found += [inner for member in option.members() for inner in self.callables(member, depth - 1)]
        return found

    def hand_over(self, name: str, given: list[Value], node: cst.CSTNode, source: SourceFile) -> list[Value]:
        """Execute what a call of the outer function `name` may call back.

        Args:
            name: dotted; "" for something that is not known.
            given: its arguments.

        Returns:
            What the functions returned.
        """
        if name.startswith(_NO_ENTRY):
            return []
        self.m.handed += [option for value in given for option in options(value) if isinstance(option, Instance)]
        found = [called for value in given for called in self.callables(value)]
        if name.startswith(_TAKES_FUNCTIONS):
            found += [option for value in given for option in options(value) if isinstance(option, (Ext, ClassValue))]
        if self.m.phase != "forward":  # it may be kept and called while forward runs (a filter of a logger)
            self.m.handed += (
                [called for called in found if isinstance(called, (Function, Instance))] if name[:6] != "torch." else []
            )
            return [self._call(f, [Host()], node, source) for f in found] if name == "collections.defaultdict" else []
        pool = union(_pool(given))
        return [self._call(called, [pool], node, source) for called in found]

    def launch(self, hooks: Iterable[Value], given: dict[str, Value], node: cst.CSTNode, source: SourceFile) -> None:
        """Execute what a launch calls on the host: its grid, heuristics, hooks of configurations, pruning.

        Args:
            hooks: the functions.
            given: the launch's arguments by the kernel's parameters.
        """
        arguments = Container("arguments", keyed=dict(given))
        for hook in hooks:
            self._call(hook, [arguments], node, source, {**given, "configs": Container("list", [Host()], complete=False)})

    def rest(self) -> None:
        """Execute, after forward, what was handed over before it and the special methods of every object."""
        with self.m.around(dead=1, branches=1):
            for value in list(self.m.handed):
                if isinstance(value, Function):
                    self._call(value, [Host()], value.node, value.scope.source)
            done: set[int] = set()
            position = 0
            while position < len(self.m.instances):  # a method may make more of them
                instance = self.m.instances[position]
                position += 1
                if id(instance.cls) not in done or instance.past:
                    done.add(id(instance.cls))
                    self._methods(instance, any(instance is value for value in self.m.handed))

    def _methods(self, instance: Instance, handed: bool) -> None:
        bases = [base for base in instance.cls.lineage() if isinstance(base, Ext)]
        all_of_them = (handed and not bases) or any(not base.name.startswith(_QUIET_BASES) for base in bases)
        for name, values in instance.past.items():
            instance.attributes[name] = union([*values, instance.attributes.get(name, Host())])
        for owner in instance.cls.lineage():
            for name, method in list(owner.names.items()) if isinstance(owner, ClassValue) else ():
                special = name.startswith("__") and name.endswith("__") and name not in _FOLLOWED
                if isinstance(method, Function) and (special or (all_of_them and name not in _FOLLOWED)):
                    bound = self.m.members.get(instance, name, method.node, method.scope.source)
                    self._call(bound, [Host()], method.node, method.scope.source)

    def _call(
        self, called: Value, pool: list[Value], node: cst.CSTNode, source: SourceFile, named: dict[str, Value] | None = None
    ) -> Value:
        """Call a function as often as it may be called, none included, each parameter with one of `pool`."""
        heap = dict(self.m.heap)
        args = [union(pool)] * 2
        if isinstance(called, Function):
            parameters = [*called.node.params.posonly_params, *called.node.params.params]
            taken = (called.bound is not None) + len(called.arguments)
            args = [(named or {}).get(p.name.value, union(pool)) for p in parameters[taken:] if p.default is None]
        with self.m.around(branches=1):
            result = self.m.calls.call(called, args, {}, node, source)
        self.m.heap = join(heap, self.m.heap)
        return result


def _pool(given: list[Value]) -> list[Value]:
    """Return what a callback may be given: the elements of what its caller was given, two levels deep."""
    found: list[Value] = [Host()]
    for value in given:
        for option in options(value):
            if isinstance(option, Container):
                members = option.members()
                found += [*members, *(inner for member in members if isinstance(member, Container) for inner in member.members())]
            elif isinstance(option, (Tensor, Instance)) or (isinstance(option, Host) and option.data):
                found.append(option)
    return [value for value in found if not isinstance(value, (Function, Ext))]
