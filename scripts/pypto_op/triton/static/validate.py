"""`validate_file`: the verdict of the static check, with the keys of the kernel-verifier contract."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import libcst as cst

from pypto_op.triton.program import LAMBDA, Line, Program
from pypto_op.triton.static.compile_time import followed
from pypto_op.triton.static.interpreter import new_machine
from pypto_op.triton.static.kernels import Kernel
from pypto_op.triton.static.machine import MAYBE, Finding, Machine, Recursion, TooComplex
from pypto_op.triton.static.persistent import age, appearance, doubt, forget, keep, names_of, reached
from pypto_op.triton.static.policy import StaticPolicy, load_policy
from pypto_op.triton.static.source import SourceFile, load
from pypto_op.triton.static.suspects import SUSPECT
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
    tensors_in,
    union,
)
from pypto_op_lint.source import UnreadableSource

ENTRY_CLASS = "ModelNew"
_MOST_CALLS = 6
_CALL_PROTOCOL = ("__call__", "__getattribute__", "__new__", "__init_subclass__", "_call_impl", "_wrapped_call_impl")

_SUGGESTIONS = {
    1: "write the computation as a @triton.jit kernel that loads, computes and stores, and launch it from ModelNew.forward",
    2: "launch the kernel in ModelNew.forward as kernel[grid](...) and return the tensor that it stores to",
    3: "move what the listed lines compute into a Triton kernel; forward may allocate, view, and launch (an argument that is no "
    "tensor needs its annotation, `alpha: float`, or it is taken for one)",
}


def validate_file(path: Path, policy: StaticPolicy | None = None) -> dict[str, Any]:
    """Check one implementation file without running it.

    Args:
        path: the file that defines ModelNew; files beside it that it imports are followed.
        policy: default: the built-in one.

    Returns:
        `valid`, `regression_type` (None, 1, 2 or 3), `checks`, `suggestion`, `policy`, and `error` for a file that cannot
        be read. Every entry of `violations` has `line`, `call`, `reason`, and `file` when it is another file.
    """
    return read_file(path, policy).result


@dataclass(frozen=True)
class Reading:
    """What the static check says of a file, and what it looked at to say so."""

    result: dict[str, Any]  # of `validate_file`
    programs: frozenset[Program] = frozenset()  # the jitted functions whose bodies were read
    absent: frozenset[str] = frozenset()  # packages that must not be there
    # where the statements begin that were executed in forward, and the lambdas that were called there
    executed: frozenset[Line] = frozenset()


def read_file(path: Path, policy: StaticPolicy | None = None, scalars: Sequence[bool | str | None] | None = None) -> Reading:
    """Check one implementation file; arguments as in `validate_file`."""
    policy = policy or load_policy()
    try:
        source = load(Path(path))
    except UnreadableSource as error:
        return Reading(_result(policy, [], [], [], error=f"{path}: {error.told}"))
    result, verdict = _every_call(policy, source, scalars, frozenset())
    doubtful = verdict.doubtful() if scalars is None and not result["valid"] else frozenset()
    if doubtful:
        other, second = _every_call(policy, source, scalars, doubtful)
        if other["valid"] and not second.unconfirmed():
            result, verdict = other, second
    if not result["valid"]:  # `not x.is_cuda`, `isinstance(x, list)`: no judged call comes there, or it is refused
        other, second = _every_call(policy, source, scalars, frozenset(), on_device=True)
        if other["valid"]:
            result, verdict = other, second
    programs = frozenset(facts.program() for facts in verdict.m.read.values())
    return Reading(result, programs, frozenset(verdict.m.absent), frozenset(_begins(verdict.m)))


def _begins(machine: Machine) -> Iterator[Line]:
    """Yield the lines at which begins what was executed; a decorated definition has two."""
    for source, node in machine.executed:
        file = os.path.realpath(source.path)
        if isinstance(node, cst.Lambda):
            yield file, source.line_of(node), LAMBDA
            continue
        yield file, source.line_of(node), ""
        if isinstance(node, (cst.FunctionDef, cst.ClassDef)):
            yield file, source.line_of(node.name), ""


def _every_call(
    policy: StaticPolicy,
    source: SourceFile,
    scalars: Sequence[bool | str | None] | None,
    suspects: frozenset[int],
    *,
    on_device: bool = False,
) -> tuple[dict[str, Any], _Verdict]:
    """Execute forward until what it changes for later calls is known not to be constant."""
    changing: frozenset[str] = frozenset()
    while True:
        verdict = _Verdict(new_machine(policy, on_device=on_device), source, scalars, changing, suspects)
        result = verdict.run()
        changed = verdict.changed()
        if changed <= changing:
            return result, verdict
        changing |= changed


class _Verdict:
    """Runs the machine over a file and reads the three checks off it."""

    def __init__(
        self,
        machine: Machine,
        source: SourceFile,
        scalars: Sequence[bool | str | None] | None,
        changing: frozenset[str],
        suspects: frozenset[int],
    ) -> None:
        self.m, self.source, self.scalars = machine, source, scalars
        self.changing, self.suspects = changing, suspects
        self.unannotated: dict[int, Tensor] = {}
        self.arrival: list[Finding] = []
        self.roots: list[Scope | Value] = []

    def run(self) -> dict[str, Any]:
        """Execute the module, `ModelNew.__init__` and `ModelNew.forward`; return the result."""
        kernels: list[Kernel] = []
        try:
            scope = self.m.statements.module(self.source)
            kernels = [value for loaded in self.m.modules.values() for value in _kernels(loaded)]
            self._enter(scope)
        except TooComplex:
            self.m.deny(self.source.module, self.source, "the file is too complex to be checked", call="(the whole file)")
        except (Recursion, RecursionError):
            self.m.deny(self.source.module, self.source, "the file is nested too deeply to be checked", call="(the whole file)")
        self.m.executed.update(place for function in self.m.compile_time for place in followed(function))
        kernels += [k for k in self.m.late_kernels if k not in kernels]
        names = sorted({kernel.facts.name for kernel in kernels if kernel.facts.stored})
        shells = sorted({kernel.facts.name for kernel in kernels if not kernel.facts.stored} - set(names))
        called = sorted({launch.kernel for launch in self.m.launches if launch.kernel in names})
        most = self.m.policy.most_launches
        if most is not None and len(self.m.launches) > most:
            for launch in self.m.launches[most:]:
                self.m.deny(launch.node, launch.source, f"the policy allows {most} launch(es) in forward")
        return _result(self.m.policy, names, called, [*self.arrival, *self.m.findings], shells=shells)

    def changed(self) -> set[str]:
        """Return the names of what forward changes and a later call finds."""
        return self.m.changed | names_of(self.m.changed_containers, self.roots)

    def doubtful(self) -> frozenset[int]:
        """Return which arguments may be tensors or numbers, and are never used as tensors."""
        return frozenset(p for p, tensor in self.unannotated.items() if not tensor.buffers & self.m.suspects.tensors)

    def unconfirmed(self) -> bool:
        """Whether an argument that was taken for a number is nowhere used as one."""
        return any(not self.unannotated[p].buffers <= self.m.suspects.numbers for p in self.suspects)

    def _enter(self, scope: Scope) -> None:
        found = scope.names.get(ENTRY_CLASS)
        if not isinstance(found, ClassValue):
            self._lost(self.source.module, f"the file defines no class {ENTRY_CLASS}", ENTRY_CLASS)
            return
        instance = Instance(found)
        self.m.instances.append(instance)
        init = self.m.members.find(instance, "__init__")
        self.m.phase = "init"
        if isinstance(init, Function):
            self.m.calls.call(init, _given(init), {}, init.node, self.source)
        self.roots = [instance, *self.m.modules.values()]
        self.m.lasting = reached(self.roots)
        self.m.phase = "forward"
        for name in _CALL_PROTOCOL:
            overridden = found.find(name)
            if overridden is not None:
                where = overridden[0].node if isinstance(overridden[0], Function) else self.source.module
                self.m.deny(
                    where, self.source, "making and calling the model must run __init__ and forward, nothing else", call=name
                )
        forward = self.m.members.find(instance, "forward")
        if not isinstance(forward, Function) or not isinstance(forward.node, (cst.FunctionDef, cst.Lambda)):
            self._lost(self.source.module, f"{ENTRY_CLASS} has no forward of its own that can be followed", "forward")
            return
        if self.changing:
            self._earlier_calls(forward)
        self._forward(forward)

    def _earlier_calls(self, forward: Function) -> None:
        """Execute forward until its calls leave nothing that an earlier one did not; what they return is not looked at."""
        heap, launches, arrival = dict(self.m.heap), len(self.m.launches), list(self.arrival)
        left: frozenset[Hashable] | None = None
        for _ in range(_MOST_CALLS):
            forget(self.changing | self.m.changed, self.roots)
            self.m.lasting = reached(self.roots)
            before, left = left, appearance(self.roots)
            if left == before:
                break
            self.m.heap, self.m.bound, self.m.steps = dict(heap), [], 0
            self.m.calls.call(forward, *self._inputs(forward), forward.node, self.source)
            keep(self.m.bound)
        else:
            doubt(self.changing | self.m.changed, self.roots)
        age(self.roots)
        self.m.heap = heap
        del self.m.launches[launches:]
        self.arrival = arrival

    def _forward(self, forward: Function) -> None:
        node = forward.node
        args, kwargs = self._inputs(forward)
        frames: list[tuple[Value, dict[Any, int], cst.CSTNode, bool]] = []
        self.m.watch(node, frames)
        result = self.m.calls.call(forward, args, kwargs, node, self.source)
        if isinstance(node, cst.Lambda):
            frames.append((result, dict(self.m.heap), node, False))
        self.m.following.rest()
        if not self.m.launches:
            self._lost(node, "forward reaches no launch of a kernel that counts", "forward")
            return
        arrived = False
        for value, heap, where, conditional in frames:
            states = _leaves(value, heap)
            arrived = arrived or any(state in ("written", "computed") for state, _ in states)
            for state, why in states:
                if state == "lost" or (state == "fresh" and not conditional):
                    self._lost(where, why, self._source_of(where).text_of(where))
        if not arrived and not self.arrival:
            self._lost(node, "what the kernels store does not reach the value that forward returns", "forward")

    def _source_of(self, node: cst.CSTNode) -> SourceFile:
        return self.source

    def _inputs(self, forward: Function) -> tuple[list[Value], dict[str, Value]]:
        params = forward.node.params
        positional = [*params.posonly_params, *params.params]
        if forward.bound is not None:
            positional = positional[1:]
        args = [self._input(one, SUSPECT if p in self.suspects else "input") for p, one in enumerate(positional)]
        plain = [p for p, parameter in enumerate(positional) if "Tensor" not in self._note(parameter)]
        self.unannotated = {p: tensor for p in plain for tensor in tensors_in(args[p])}
        if isinstance(params.star_arg, cst.Param):
            count = max(0, len(self.scalars) - len(args)) if self.scalars is not None else 2
            args += [self.m.fresh("input") for _ in range(count)]
        scalars = self.scalars or ()
        named = {one for one in scalars if isinstance(one, str)}
        for position, known in enumerate(scalars[: len(args)]):
            if known and not isinstance(known, str):
                args[position] = Host()
        for position, parameter in enumerate(positional):
            if parameter.name.value in named:
                args[position] = Host()
        keywords = [parameter for parameter in params.kwonly_params if isinstance(parameter, cst.Param)]
        kwargs = {one.name.value: Host() if one.name.value in named else self._input(one) for one in keywords}
        return args, kwargs

    def _note(self, parameter: cst.Param) -> str:
        return "" if parameter.annotation is None else self.source.module.code_for_node(parameter.annotation.annotation)

    def _input(self, parameter: cst.Param, origin: str = "input") -> Value:
        """Return what an argument of forward may be, going by its annotation and its default."""
        note, default = self._note(parameter), parameter.default
        is_none = isinstance(default, cst.Name) and default.value == "None"
        tensor = self.m.fresh(origin)
        if "Tensor" in note:
            plural = any(word in note for word in ("ist[", "uple[", "equence[", "terable["))
            value: Value = Container("list", [tensor], complete=False) if plural else tensor
            return union([value, Host(None)]) if is_none or "Optional" in note or "None" in note else value
        if any(word in note for word in ("int", "float", "bool", "str", "dtype", "device", "complex")):
            return Host()
        if default is None:
            return tensor
        return union([tensor, Host(None)]) if is_none else Host()

    def _lost(self, node: cst.CSTNode, reason: str, call: str) -> None:
        self.arrival.append(Finding(2, node, self.source, call, reason))


def _leaves(value: Value, heap: dict[Any, int]) -> list[tuple[str, str]]:
    """Return (written, fresh, computed or lost; why) for everything in a returned value that holds tensor data."""
    if isinstance(value, Tensor):
        if "computed" in {buffer.origin for buffer in value.buffers}:
            return [("computed", "")]  # a finding of the third kind says so
        if all(heap.get(buffer, 0) >= MAYBE for buffer in value.buffers):
            return [("written", "")]
        origins = {buffer.origin for buffer in value.buffers}
        if origins == {"fresh"}:
            return [("fresh", "no kernel that is reached stores to the memory that is returned")]
        return [("lost", f"an {'input' if 'input' in origins else 'earlier value'} is returned that no kernel stores to")]
    if isinstance(value, Union):
        states = [state for option in value.options for state in _leaves(option, heap)]
        if any(state == "written" for state, _ in states):  # as where forward itself returns early: the run tells
            states = [("written", ""), *(state for state in states if state[0] not in ("written", "fresh"))]
        return states
    if isinstance(value, Container):
        return [state for member in value.members() for state in _leaves(member, heap)]
    if isinstance(value, Instance):
        return [state for member in value.attributes.values() for state in _leaves(member, heap)]
    if isinstance(value, Host) and value.data:
        return [("lost", "data that was read out of a tensor is returned")]
    if isinstance(value, Unknown):
        return [("lost", f"what is returned is not known to come from a kernel: {value.why}")]
    return []


def _kernels(scope: Scope) -> list[Kernel]:
    found: list[Kernel] = []
    waiting: list[Value] = list(scope.names.values())
    seen: set[int] = set()
    while waiting:
        value = waiting.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, Kernel):
            found.append(value)
        elif isinstance(value, Container):
            waiting += value.members()
        elif isinstance(value, ClassValue):
            waiting += value.names.values()
    return found


def _given(function: Function) -> list[Value]:
    """Return what a task may give a constructor: numbers and words, or nothing where a default is an object."""
    parameters = [*function.node.params.posonly_params, *function.node.params.params]
    names = [parameter.name.value for parameter in parameters[0 if function.bound is None else 1 :]]
    defaults = (function.defaults.get(name, Host()) for name in names)
    return [Host() if isinstance(default, Host) else union([default, Host()]) for default in defaults]


def _result(
    policy: StaticPolicy,
    kernels: list[str],
    called: list[str],
    findings: list[Finding],
    *,
    shells: list[str] | None = None,
    error: str | None = None,
) -> dict[str, Any]:
    lost = [_entry(finding) for finding in findings if finding.kind == 2]
    denied = sorted((_entry(finding) for finding in findings if finding.kind == 3), key=lambda entry: entry["line"])
    passed = {1: bool(kernels) and error is None, 2: bool(called) and not lost, 3: not denied and error is None}
    passed[2] = passed[1] and passed[2]
    kind = next((number for number in (1, 2, 3) if not passed[number]), None)
    suggestion = None if kind is None else _SUGGESTIONS[kind]
    if error is not None:
        suggestion = "give a readable Python file in UTF-8"
    elif kind == 1 and shells:
        suggestion = f"{', '.join(shells)} stores nothing, so it is an empty shell; " + _SUGGESTIONS[1]
    result: dict[str, Any] = {
        "valid": kind is None,
        "regression_type": kind,
        "checks": {
            "triton_kernel_exists": {"passed": passed[1], "kernels": kernels, "empty_shells": shells or []},
            "kernel_called_from_forward": {"passed": passed[2], "called": called, "violations": lost},
            "no_forbidden_torch_ops": {"passed": passed[3], "violations": denied},
        },
        "suggestion": suggestion,
        "policy": policy.data["name"],
    }
    if error is not None:
        result["error"] = error
    return result


def _entry(finding: Finding) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "line": 1 if isinstance(finding.node, cst.Module) else finding.source.line_of(finding.node),
        "call": finding.call,
        "reason": finding.reason,
    }
    if finding.source.name:
        entry["file"] = finding.source.name
    return entry
