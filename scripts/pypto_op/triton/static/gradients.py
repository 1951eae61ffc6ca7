"""The file's own `torch.autograd.Function`s: what their context keeps from forward to backward, and where backward is called."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from pypto_op.triton.static.machine import YES, Machine
from pypto_op.triton.static.source import SourceFile
from pypto_op.triton.static.values import ClassValue, Container, Ext, Instance, Scope, Value, options, union

CONTEXT = "torch.autograd.function.ctx"
SAVES = "save_for_backward"
GRAD = "torch.autograd.grad"


@dataclass(frozen=True)
class _Applied:
    owner: ClassValue
    context: Instance
    given: Container
    found: Value


class Gradients:
    """Calls forward of such classes where they are applied; `setup_context`, and backward, where gradients are asked for."""

    def __init__(self, machine: Machine) -> None:
        self.m = machine
        self._applied: list[_Applied] = []

    def apply(
        self, owner: ClassValue, args: list[Value], kwargs: dict[str, Value], node: cst.CSTNode, source: SourceFile
    ) -> Value | None:
        """Return what `owner.apply(...)` does; None where the class has no forward."""
        forward, setup = owner.find("forward"), owner.find("setup_context")
        if forward is None:
            return None
        context = Instance(ClassValue("ctx", [Ext(CONTEXT)], {}, Scope({}, None, source)))
        found = self.m.calls.call(forward[0], [*([] if setup else [context]), *args], kwargs, node, source)
        self._applied.append(_Applied(owner, context, Container("tuple", args), found))
        return found

    def save(self, context: Instance, tensors: list[Value]) -> None:
        """Keep what `ctx.save_for_backward(...)` is given."""
        context.attributes["saved_tensors"] = Container("tuple", tensors)

    def grad(self, args: list[Value], kwargs: dict[str, Value], node: cst.CSTNode, source: SourceFile) -> Value | None:
        """Return what `torch.autograd.grad(...)` does: backward of each applied class runs, on gradients that no kernel made yet.

        None where nothing was applied: then PyTorch differentiates its own operators. What views add is for the run to see.
        """
        returned: list[Value] = []
        for one in reversed(self._applied):
            setup, backward = one.owner.find("setup_context"), one.owner.find("backward")
            if setup is not None:
                self.m.calls.call(setup[0], [one.context, one.given, one.found], {}, node, source)
            if backward is not None:
                gradient = self.m.fresh("copy", YES)
                returned.append(self.m.calls.call(backward[0], [one.context, gradient], {}, node, source))
        parts = [option for value in returned for option in options(value)]
        found = [item for part in parts for item in (part.members() if isinstance(part, Container) else [part])]
        return Container("tuple", [union(found)], complete=False) if found else None
