"""Assignments: to names, attributes and elements, one or several at once, and what forward keeps by them for later calls."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from pypto_op.triton.static.kernels import Kernel, Launcher
from pypto_op.triton.static.machine import YES, Machine
from pypto_op.triton.static.persistent import reached
from pypto_op.triton.static.values import (
    Buffer,
    ClassValue,
    Container,
    Ext,
    Function,
    Instance,
    Scope,
    Tensor,
    Unknown,
    Value,
    holds_data,
    options,
    tensors_in,
    union,
)
from pypto_op_lint.constants import NOTHING

_DESCRIPTOR_SIZES = frozenset({"block_shape", "shape", "strides"})
"""What an autotuner's hook sets on a tensor descriptor; a tensor itself refuses it."""


class Assignments:
    """Binds targets."""

    def __init__(self, machine: Machine) -> None:
        self.m = machine
        self._tries: list[tuple[Scope, dict[str, list[Value]]]] = []

    def assign(self, target: cst.BaseExpression, value: Value, scope: Scope) -> None:
        """Bind a target: a name, an attribute, an element, or several at once."""
        if isinstance(target, cst.Name):
            home = scope.home(target.value)
            before = home.names.get(target.value)
            if home is not scope and self.m.phase == "forward" and not home.fleeting:
                self.deny_keeping(target, value, scope)
                self._note_change(target.value, before)
                self.m.bound.append((home.names, target.value, before, value))
            keep = before is not None and home is not scope and self.m.phase == "forward" and not self.m.sure
            home.names[target.value] = union([before, value]) if keep and before is not None else value
            for trying, meanwhile in self._tries:
                if trying is home:
                    meanwhile.setdefault(target.value, []).append(value)
        elif isinstance(target, (cst.Tuple, cst.List)):
            self._unpack(target, value, scope)
        elif isinstance(target, cst.StarredElement):
            self.assign(target.value, Container("list", [value], complete=False), scope)
        elif isinstance(target, cst.Attribute):
            self.set_attribute(self.m.expressions.evaluate(target.value, scope), target.attr.value, value, target, scope)
        elif isinstance(target, cst.Subscript):
            self._set_item(target, value, scope)

    def _unpack(self, target: cst.Tuple | cst.List, value: Value, scope: Scope) -> None:
        elements = target.elements
        tuples = [self.m.records.as_tuple(option) for option in options(value)]
        exact = [parts for one in tuples if (parts := _parts(one, elements)) is not None]
        item = self.m.expressions.item_of(union(tuples)) if len(exact) != len(tuples) else None
        for position, element in enumerate(elements):
            if item is None:
                self.assign(element.value, union([parts[position] for parts in exact]), scope)
            elif isinstance(element, cst.StarredElement):
                self.assign(element.value, Container("list", [item], complete=False), scope)
            else:
                self.assign(element.value, item, scope)

    def set_attribute(self, owner: Value, name: str, value: Value, node: cst.CSTNode, scope: Scope) -> None:
        """Bind an attribute of a value."""
        reason = self.m.policy.forbidden(f"own.{name}") or self.m.policy.forbidden(f"set.{name}")
        if reason:
            self.m.deny(node, scope.source, reason)
        for option in options(owner):
            if isinstance(option, Instance):
                known = option.attributes.get(name)
                option.past.setdefault(name, []).append(value)
                if self.m.phase == "forward" and id(option) in self.m.lasting:
                    before = known or option.cls.names.get(name)
                    self._note_change(name, before)
                    self.m.bound.append((option.attributes, name, before, value))
                    if not self._next_state(known, value):
                        self.deny_keeping(node, value, scope)
                keep = known is not None and not self.m.sure
                option.attributes[name] = union([known, value]) if keep and known is not None else value
            elif isinstance(option, ClassValue):
                if self.m.phase == "forward" and id(option) in self.m.lasting:
                    self._note_change(name, option.names.get(name))
                    self.m.bound.append((option.names, name, option.names.get(name), value))
                    self.deny_keeping(node, value, scope)
                option.names[name] = value
            elif isinstance(option, (Ext, Kernel, Launcher)):
                what = option.name if isinstance(option, Ext) else "a kernel"
                if what != "torch.autograd.function.ctx":
                    self.m.deny(node, scope.source, f"it replaces `{name}` of {what}, so later code is not what it says")
            elif isinstance(option, Tensor):
                if name not in _DESCRIPTOR_SIZES:
                    self.m.deny(node, scope.source, f"it replaces `{name}` of a tensor")
            elif isinstance(option, Function) and tensors_in(value):
                self.deny_keeping(node, value, scope)

    def _set_item(self, target: cst.Subscript, value: Value, scope: Scope) -> None:
        owner = self.m.expressions.evaluate(target.value, scope)
        key = self.m.expressions.index(target.slice, scope)
        for option in options(owner):
            if isinstance(option, Tensor):
                if self.m.phase == "forward" and (holds_data(value) or holds_data(key)):
                    self.m.deny(target, scope.source, "PyTorch moves the data of this assignment; store it in a kernel")
            elif isinstance(option, Container):
                if self.m.phase == "forward" and id(option) in self.m.lasting:
                    self.deny_keeping(target, value, scope)
                    self.m.changed_containers.append(option)
                self.m.tables.put(option, key, value)
            elif isinstance(option, (Ext, Unknown)) and tensors_in(value) and self.m.phase == "forward":
                self.deny_keeping(target, value, scope)
            elif isinstance(option, Ext) and option.name.startswith(("sys.modules", "builtins", "torch")):
                self.m.deny(target, scope.source, f"it changes {option.name}")
            elif isinstance(option, Instance):
                setter = self.m.members.find(option, "__setitem__")
                if setter is not None:
                    self.m.calls.call(setter, [key, value], {}, target, scope.source)

    def _next_state(self, known: Value | None, value: Value) -> bool:
        """Whether every call replaces a tensor of the constructor by what a launch wrote: the state of a recurrent model.

        An output that is kept to be handed out again is kept or handed out under a condition. That a state really is one is
        for the run to say, whose second call has other values.
        """
        always = not (self.m.branches or self.m.loops)
        before = isinstance(known, Tensor) and all(buffer.origin == "weight" for buffer in known.buffers)
        return always and before and isinstance(value, Tensor) and self.m.written(value) == YES

    def _note_change(self, name: str, known: Value | None) -> None:
        """Note that forward changes what was known so far: a counter, a flag, a function."""
        if any(
            not isinstance(option, (Tensor, Unknown)) and getattr(option, "const", 0) is not NOTHING
            for option in options(known or Unknown(""))
        ):
            self.m.changed.add(name)

    def deny_keeping(self, node: cst.CSTNode, value: Value, scope: Scope) -> None:
        """Deny that forward keeps results, or inputs, for another call.

        Scratch memory, rearranged weights and tables that a kernel made of numbers alone may be kept.
        """
        self.m.lasting |= reached([value])
        for tensor in tensors_in(value):
            if any(not self._may_stay(buffer) for buffer in tensor.buffers):
                self.m.deny(node, scope.source, "forward keeps a tensor for later calls, which must compute their own")
                return
            self.m.kept |= tensor.buffers

    def _may_stay(self, buffer: Buffer) -> bool:
        if buffer.origin == "fresh" and buffer.constant:
            return True
        return buffer.origin in ("fresh", "weight") and not self.m.heap.get(buffer)


def _parts(value: Value, elements: Sequence[cst.BaseElement]) -> list[Value] | None:
    """Return what each target of an assignment to several gets of a value, one starred target among them; None: not known."""
    if not isinstance(value, Container) or not value.complete or value.keyed:
        return None
    items = value.items
    star = next((i for i, element in enumerate(elements) if isinstance(element, cst.StarredElement)), None)
    if star is None:
        return items if len(items) == len(elements) else None
    behind = len(items) - (len(elements) - star - 1)
    return [*items[:star], Container("list", items[star:behind]), *items[behind:]] if behind >= star else None
