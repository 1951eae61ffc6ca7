"""Attributes: what `owner.name` stands for, for each kind of owner."""

from __future__ import annotations

import re

import libcst as cst

from pypto_op.triton.static import emptiness
from pypto_op.triton.static.evaluate import TUPLES
from pypto_op.triton.static.gradients import CONTEXT, SAVES
from pypto_op.triton.static.kernels import Kernel, Launcher
from pypto_op.triton.static.machine import Machine
from pypto_op.triton.static.records import TUPLE_METHODS
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
    Storage,
    Super,
    Tensor,
    TensorMethod,
    Unknown,
    Value,
    likely,
    options,
    union,
)

_PARAMETERS = frozenset({"weight", "bias", "running_mean", "running_var", "in_proj_weight", "in_proj_bias"})
_MADE = re.compile(r"torch\.nn\.utils\.parametrizations\.\w+\.parametrizations(\.\w+)?")
_ORIGINAL = re.compile(r"original\d*")
"""What PyTorch's own ways to make a weight (`weight_norm`) make it of, behind a name that is no weight there."""
_WHERE = {"is_cuda": True, "is_cpu": False}
"""What a tensor on a GPU says of itself, and the interpreter's shim of one."""
_MODULE_FLAGS = frozenset({"training"})
REGISTERS = {"register_buffer": "tensor", "register_parameter": "param"}
"""Methods of a module that bind an attribute, and the name of the argument with its value."""
_KERNEL_CHANGES = frozenset({"add_pre_run_hook", "fn", "pre_run_hooks", "cache", "device_caches", "src", "rewriter", "__dict__"})


class Members:
    """Looks attributes up."""

    def __init__(self, machine: Machine) -> None:
        self.m = machine

    def get(self, owner: Value, name: str, node: cst.CSTNode, source: SourceFile) -> Value:
        """Return `owner.name`; deny it where reaching for it is forbidden."""
        return union([self._get(option, name, node, source) for option in likely(owner)])

    def check(self, name: str, node: cst.CSTNode, source: SourceFile) -> None:
        """Deny a dotted name that is forbidden wherever it is reached."""
        reason = self.m.policy.forbidden(name)
        if reason:
            self.m.deny(node, source, reason)

    def _get(self, owner: Value, name: str, node: cst.CSTNode, source: SourceFile) -> Value:
        if isinstance(owner, Ext):
            operators = self._of_operators(f"{owner.name}.{name}")
            if operators is not None:
                return operators
            self.check(f"{owner.name}.{name}", node, source)
            return Ext(f"{owner.name}.{name}")
        if isinstance(owner, Tensor):
            self.m.suspects.as_tensor([owner], node, source)
            return self._of_tensor(owner, name)
        if isinstance(owner, Instance):
            found = self.find(owner, name, node, source)
            if isinstance(found, Instance) and name in owner.cls.names and found.cls.find("__get__"):
                return self.m.calls.call(self._of_object(found, "__get__"), [owner, owner.cls], {}, node, source)
            return found if found is not None else self._missing(owner, name, node, source)
        if isinstance(owner, ClassValue):
            self.check(f"own.{name}", node, source)
            return self._of_class(owner, name)
        if isinstance(owner, ExtInstance):
            made = _MADE.fullmatch(owner.name)
            if (name in _PARAMETERS if made is None else made[1] and _ORIGINAL.fullmatch(name)) and owner.name.startswith(
                "torch.nn."
            ):
                return self.m.fresh("weight")
            self.check(f"{owner.name}.{name}", node, source)
            return ExtInstance(f"{owner.name}.{name}", owner.hooks)
        if isinstance(owner, Kernel):
            return self._of_kernel(owner, name, node, source)
        if isinstance(owner, Super):
            return self._of_super(owner, name)
        if isinstance(owner, (Container, Storage, TensorMethod)):
            return Member(owner, name)
        if isinstance(owner, Host):
            if name == "value" and isinstance(owner.const, (bool, int, float)):
                return Host(owner.const)  # of a constexpr
            if (owner.kind, name) == ("given device", "type"):
                return Host("cuda", kind="device type")
            return Host(data=owner.data, kind="device type" if (owner.kind, name) == ("device", "type") else "")
        if isinstance(owner, (Function, Launcher, Member)):
            self.check(f"own.{name}", node, source)
            return Unknown(f"`{name}` of a function") if name != "__name__" else Host()
        self.check(f"own.{name}", node, source)
        return Unknown(f"`{name}` of something unknown")

    def _of_operators(self, name: str) -> Value | None:
        """Return what `torch.ops.space.name` stands for where the file itself made that operator; None for anything else."""
        if name == "torch.ops" and self.m.operators:
            return Ext(name)
        word = name.removeprefix("torch.ops.") if name.startswith("torch.ops.") else ""
        if word in self.m.operators:
            return union(list(self.m.operators[word]))
        return Ext(name) if word and any(made.startswith(word + ".") for made in self.m.operators) else None

    def _of_tensor(self, owner: Tensor, name: str) -> Value:
        kind = self.m.policy.attribute(name)
        if kind == "host":
            given = self.m.on_device and all(buffer.origin == "input" for buffer in owner.buffers)
            if given and name in _WHERE:
                return Host(_WHERE[name])
            where = "given device" if given else "device"
            return Host(kind=where if name == "device" else emptiness.attribute(name))
        return owner if kind == "view" else TensorMethod(owner, name)

    def find(self, owner: Instance, name: str, node: cst.CSTNode | None = None, source: SourceFile | None = None) -> Value | None:
        """Return an attribute of an instance that the analysed code defines; None when there is none."""
        if name in owner.attributes:
            return owner.attributes[name]
        if name == "__class__":
            return owner.cls
        found = owner.cls.find(name)
        if found is None:
            return None
        return union([self._bound(option, owner, node, source) for option in options(found[0])])

    def _of_object(self, owner: Instance, name: str) -> Value:
        return self.find(owner, name) or Unknown(f"`{name}`")

    def _bound(self, value: Value, owner: Instance | ClassValue, node: cst.CSTNode | None, source: SourceFile | None) -> Value:
        if not isinstance(value, Function) or value.bound is not None or value.kind == "static":
            return value
        if value.kind == "class":
            return _bind(value, owner.cls if isinstance(owner, Instance) else owner)
        bound = _bind(value, owner)
        if value.kind == "property" and node is not None and source is not None:
            return self.m.calls.call(bound, [], {}, node, source)
        return bound

    def _missing(self, owner: Instance, name: str, node: cst.CSTNode, source: SourceFile) -> Value:
        self.check(f"own.{name}", node, source)
        if name in _MODULE_FLAGS:
            return Host()
        getter = owner.cls.find("__getattr__")
        if getter is not None:
            return self.m.calls.call(self._of_object(owner, "__getattr__"), [Host(name)], {}, node, source)
        if name in TUPLE_METHODS and owner.cls.extends(*TUPLES):
            return Member(owner, name)
        for base in owner.cls.lineage():
            if isinstance(base, Ext):
                if base.name == CONTEXT:
                    return Member(owner, name) if name == SAVES else Ext(f"{base.name}.{name}")
                if name in _PARAMETERS and base.name != "torch.nn.Module":
                    return self.m.fresh("weight")
                if name in REGISTERS:
                    return Member(owner, name)
                return ExtInstance(f"{base.name}.{name}")
        return Unknown(f"`{name}`, which is set nowhere")

    def _of_class(self, owner: ClassValue, name: str) -> Value:
        found = owner.find(name)
        if found is not None:
            return self._bound(found[0], owner, None, None) if _is_classmethod(found[0]) else found[0]
        if name in ("apply", "__new__", "__name__", "__init__"):
            return Member(owner, name)
        for base in owner.lineage():
            if isinstance(base, Ext):
                return Ext(f"{base.name}.{name}")
        return Unknown(f"`{name}` of {owner.name}")

    def _of_kernel(self, owner: Kernel, name: str, node: cst.CSTNode, source: SourceFile) -> Value:
        if name == "run":
            return Launcher(owner)
        if name in _KERNEL_CHANGES and self.m.phase == "forward":
            self.m.deny(node, source, f"`{name}` of a kernel leads around its launch")
        if name == "add_pre_run_hook":
            self.m.deny(node, source, "a hook of a kernel runs code that forward does not show")
        return Member(owner, name)

    def _of_super(self, owner: Super, name: str) -> Value:
        for base in owner.after.bases:
            if isinstance(base, ClassValue):
                found = base.find(name)
                if found is not None and isinstance(owner.instance, (Instance, ClassValue)):
                    return self._bound(found[0], owner.instance, None, None)
            elif isinstance(base, Ext):
                return Ext(f"{base.name}.{name}")
        return Ext(f"builtins.object.{name}")


def _bind(function: Function, owner: Value) -> Function:
    return Function(
        function.node, function.scope, function.name, function.kind, owner, function.owner, function.arguments,
        function.keywords, function.defaults,
    )  # fmt: skip


def _is_classmethod(value: Value) -> bool:
    return isinstance(value, Function) and value.kind == "class"
