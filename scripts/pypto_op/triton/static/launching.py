"""Launches of kernels: what they are given, what they write, and what in them no device can execute."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import libcst as cst

from pypto_op.triton.static.kernels import Kernel, Launcher
from pypto_op.triton.static.machine import MAYBE, NO, YES, Launch, Machine
from pypto_op.triton.static.plain_globals import plain_globals
from pypto_op.triton.static.source import SourceFile
from pypto_op.triton.static.values import Host, Tensor, Value, likely, options, tensors_in, union


@dataclass(eq=False)
class Spread(Value):
    """What `*strides` hands to a launch where nobody knows how many there are."""

    item: Value  # any of them


def spread(callee: Value, item: Value) -> Value:
    """Return what stands for items of unknown number among the arguments of a call: only a launch knows how many it takes."""
    return Spread(item) if any(isinstance(option, Launcher) for option in likely(callee)) else item


def _by_parameter(
    parameters: Sequence[str], args: list[Value], keywords: dict[str, Value]
) -> tuple[dict[str, Value], frozenset[str]]:
    """Return the arguments of a launch by the kernel's parameters, and the parameters of which nobody knows what they get.

    Nobody knows where `*strides` ends. So each parameter from there on may get any argument from there on; the run sees to which
    memory a kernel really stores.
    """
    first = next((at for at, value in enumerate(args) if isinstance(value, Spread)), len(args))
    names = [name for name in parameters if name not in keywords]
    behind = [value.item if isinstance(value, Spread) else value for value in args[first:]]
    loose = names[first:] if behind else []
    given = dict(zip(names, args[:first], strict=False)) | dict.fromkeys(loose, union(behind))
    return given | keywords, frozenset(loose)


class Launching:
    """Launches kernels."""

    def __init__(self, machine: Machine) -> None:
        self.m = machine

    def launch(
        self, launcher: Launcher, args: list[Value], kwargs: dict[str, Value], node: cst.CSTNode, source: SourceFile
    ) -> Value:
        """Launch a kernel: what it stores to is written afterwards."""
        if self.m.phase != "forward":
            return Host()
        facts = launcher.kernel.facts
        given, loose = _by_parameter(facts.parameters, [*launcher.arguments, *args], {**launcher.keywords, **kwargs})
        grid = launcher.grid or kwargs.get("grid") or Host()
        self.m.following.launch([*self.m.following.callables(grid), *launcher.kernel.hooks], given, node, source)
        self._read([launcher.kernel, *given.values()])
        if self.m.dead:
            return Host()
        self.m.launches.append(Launch(facts.name, node, source))
        if self.m.loops and not self.m.policy.allows("in_loops"):
            self.m.deny(node, source, "a launch inside a loop; one launch covers the whole tensor through its grid")
        constant = not self.m.addressed and all(map(_is_constant, given.values()))
        for name, value in given.items():
            if name in facts.parameters and not facts.takes(name, value):
                self.m.deny(node, source, f"the kernel's `{name}` is a Python function or object, which no device can execute")
            if name in loose:
                pass  # it may be a tensor or a number
            elif name in facts.pointers:
                self.m.suspects.as_tensor([value], node, source)
            else:
                self.m.suspects.confirm([value])
            if name in facts.stored:
                for tensor in tensors_in(value):
                    state = YES if len(tensor.buffers) == 1 else MAYBE
                    self.m.heap.update(dict.fromkeys(tensor.buffers, state))
                    for buffer in tensor.buffers:
                        buffer.constant = buffer.constant and constant
        if facts.follows_addresses and facts.stored:
            self.m.heap.update({buffer: max(MAYBE, self.m.heap.get(buffer, NO)) for buffer in self.m.addressed})
        return Host()

    def _read(self, values: list[Value]) -> None:
        """Deny what no device can execute in jitted functions, and in those that they name."""
        waiting = values
        while waiting:
            for kernel in options(waiting.pop()):
                if not isinstance(kernel, Kernel) or id(kernel.facts) in self.m.read:
                    continue
                facts = self.m.read[id(kernel.facts)] = kernel.facts
                waiting += facts.device_functions()
                for where, what in facts.outside():
                    self.m.deny(where, facts.source, f"the kernel uses {what}, which no device can execute", call=what)
                for where, name in plain_globals(facts.node, facts.source.module):
                    told = f"the kernel reads `{name}` of the module, which Triton's compiler refuses; make it a tl.constexpr"
                    self.m.deny(where, facts.source, told, call=name)


def _is_constant(value: Value) -> bool:
    """Whether an argument of a launch is a number of the host's, or memory into which no value of an input came."""
    if isinstance(value, Host):
        return not value.data
    return isinstance(value, Tensor) and all(buffer.origin == "fresh" and buffer.constant for buffer in value.buffers)
