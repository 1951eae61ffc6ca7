"""Calls: into the file's own code by executing it, into anything else by asking the policy."""

from __future__ import annotations

import libcst as cst

from pypto_op.triton.static import compile_time, storages
from pypto_op.triton.static.builtin_calls import Builtins
from pypto_op.triton.static.gradients import SAVES
from pypto_op.triton.static.kernels import Kernel, KernelFacts, Launcher
from pypto_op.triton.static.launching import Launching, spread
from pypto_op.triton.static.machine import Frame, Machine, Recursion, join
from pypto_op.triton.static.members import REGISTERS
from pypto_op.triton.static.persistent import reached
from pypto_op.triton.static.source import SourceFile, nodes_in
from pypto_op.triton.static.values import (
    ClassValue,
    Container,
    Ext,
    ExtInstance,
    Function,
    Host,
    Instance,
    Member,
    Scope,
    Storage,
    Super,
    TensorMethod,
    Unknown,
    Value,
    Wrapping,
    holds_data,
    likely,
    tensors_in,
    union,
)

_DEEPEST = 40
_TURNS = 2  # so often a function may be inside itself; what a further call would return, it returns on its other paths
_KINDS = {
    "builtins.staticmethod": "static",
    "builtins.classmethod": "class",
    "builtins.property": "property",
    "functools.cached_property": "property",
    "functools.lru_cache": "cached",
    "functools.cache": "cached",
    "contextlib.contextmanager": "context",
}
COMPILES = "torch.compile"
_TRANSPARENT = (
    "torch.no_grad", "torch.inference_mode", "torch.enable_grad", "typing.", "dataclasses.dataclass", "torch.library.triton_op",
    "torch.library.custom_op", "torch.library.wrap_triton", "torch.amp.custom_", "torch.cuda.amp.custom_", "abc.",
    "torch.autograd.function.once_differentiable", "torch.compiler.disable", "torch.jit.ignore",
)  # fmt: skip


class Calls:
    """Calls values, defines functions, applies decorators."""

    def __init__(self, machine: Machine) -> None:
        self.m = machine
        self.builtins = Builtins(machine)
        self._launching = Launching(machine)

    def evaluate(self, node: cst.Call, scope: Scope) -> Value:
        """Evaluate a call expression."""
        evaluate = self.m.expressions.evaluate
        callee = evaluate(node.func, scope)
        if isinstance(callee, Ext) and callee.name == "builtins.super":
            return _super(scope)
        arguments: list[Value] = []
        keywords: dict[str, Value] = {}
        for argument in node.args:
            value = evaluate(argument.value, scope)
            if argument.star == "*":
                value = self.m.records.as_tuple(value)
                known = isinstance(value, Container)
                item = self.m.expressions.item_of(value)
                arguments += value.members() if isinstance(value, Container) and known else [spread(callee, item)]
            elif argument.star == "**":
                if isinstance(value, Container):
                    keywords.update({str(key): item for key, item in value.keyed.items()})
            elif argument.keyword is not None:
                keywords[argument.keyword.value] = value
            else:
                arguments.append(value)
        return self.call(callee, arguments, keywords, node, scope.source)

    def call(self, callee: Value, args: list[Value], kwargs: dict[str, Value], node: cst.CSTNode, source: SourceFile) -> Value:
        """Call a value and return what comes back."""
        self.m.step()
        return union([self._call(option, args, kwargs, node, source) for option in likely(callee)])

    def _call(self, callee: Value, args: list[Value], kwargs: dict[str, Value], node: cst.CSTNode, source: SourceFile) -> Value:
        if isinstance(callee, Function):
            return self._function(callee, args, kwargs, node, source)
        if isinstance(callee, Launcher):
            return self._launching.launch(callee, args, kwargs, node, source)
        if isinstance(callee, Ext):
            return self.builtins.call(callee.name, args, kwargs, node, source)
        if isinstance(callee, TensorMethod):
            return self.builtins.method(callee, args, kwargs, node, source)
        if isinstance(callee, ExtInstance):
            return self.builtins.ext_instance(callee, args, kwargs, node, source)
        if isinstance(callee, ClassValue):
            return self.m.records.make(callee, args, kwargs, node, source)
        if isinstance(callee, Instance):
            return self._call_instance(callee, args, kwargs, node, source)
        if isinstance(callee, Member):
            return self._member(callee, args, kwargs, node, source)
        if isinstance(callee, Wrapping):
            return self.decorate(callee, args[0] if args else Host(), node, source)
        if isinstance(callee, Kernel):
            return Unknown("a kernel called without a grid")
        return self._unknown(callee, args, kwargs, node, source)

    def _unknown(
        self, callee: Value, args: list[Value], kwargs: dict[str, Value], node: cst.CSTNode, source: SourceFile
    ) -> Value:
        """A call of something that is not known: harmless as long as it gets no tensor."""
        given = [*args, *kwargs.values()]
        if isinstance(callee, Unknown) and callee.denied:
            self.m.deny(node, source, callee.denied)
            return self.m.computed()
        if self.m.phase != "forward":
            return Unknown("what an unknown call returned")
        if any(holds_data(value) for value in given):
            why = callee.why if isinstance(callee, Unknown) else "a value that is not known"
            self.m.deny(node, source, f"a tensor goes into {why}, so it is denied")
            return self.m.computed()
        self.m.following.hand_over("", given, node, source)
        self.m.tables.given("", given)
        return Host() if isinstance(callee, Host) else Unknown("what an unknown call returned")

    # -- functions -------------------------------------------------------------------------------------------------

    def define(self, node: cst.FunctionDef | cst.Lambda, scope: Scope) -> Value:
        """Return the value of a function definition, decorators applied."""
        name = node.name.value if isinstance(node, cst.FunctionDef) else "<lambda>"
        defaults = {
            p.name.value: self.m.expressions.evaluate(p.default, scope)
            for p in (*node.params.posonly_params, *node.params.params, *node.params.kwonly_params)
            if p.default is not None
        }
        returned = getattr(node, "returns", None)
        for note in (*nodes_in(node.params, cst.Annotation), *([returned] if returned is not None else [])):
            self.m.expressions.annotation(note, scope)
        value: Value = Function(node, scope, name, defaults=defaults)
        if isinstance(node, cst.FunctionDef):
            for decorator in reversed(node.decorators):
                if isinstance(value, Function) and (reason := self._compiles(decorator.decorator, scope)):
                    value = Unknown(f"a function under {COMPILES}", denied=reason)
                    continue
                wrapping = self.m.expressions.evaluate(decorator.decorator, scope)
                value = self.decorate(wrapping, value, decorator, scope.source)
        return value

    def _compiles(self, decorator: cst.BaseExpression, scope: Scope) -> str:
        """Return why what PyTorch compiles may not be called, for a decorator that lets it; a file may hold such a function.

        Public files do, for gradients that no forward asks for. PyTorch compiles where the function is called, not before.
        """
        named = decorator.func if isinstance(decorator, cst.Call) else decorator
        found = _resolve(named, scope)
        if not (isinstance(found, Ext) and found.name == COMPILES) and not (isinstance(found, Unknown) and found.why == COMPILES):
            return ""
        if isinstance(decorator, cst.Call):
            for argument in decorator.args:
                self.m.expressions.evaluate(argument.value, scope)
        return self.m.policy.forbidden(COMPILES) or ""

    def decorate(self, decorator: Value, value: Value, node: cst.CSTNode, source: SourceFile) -> Value:
        """Return what a decorator makes of a value."""
        if isinstance(decorator, Ext):
            decorator = self.wrapping(decorator.name) or decorator
        if isinstance(decorator, Wrapping):
            if decorator.makes_kernel:
                return self._kernel(value, decorator.hooks)
            if isinstance(value, Kernel):
                value.hooks += decorator.hooks
            if decorator.operator and isinstance(value, Function):
                self.m.operators.setdefault(decorator.operator.replace("::", "."), []).append(value)
            if decorator.kind and isinstance(value, Function):
                value.kind = decorator.kind
            return value
        if isinstance(decorator, (Function, ClassValue, Instance)):
            return self.call(decorator, [value], {}, node, source)
        if isinstance(decorator, Member) and decorator.name in ("setter", "getter", "deleter", "register"):
            return value
        if isinstance(decorator, Host):
            return value
        name = decorator.name if isinstance(decorator, (Ext, ExtInstance)) else "a decorator that is not known"
        if name in compile_time.NAMES and isinstance(value, Function):
            self.m.compile_time.append(value)
        reason = self.m.policy.forbidden(name)
        if reason:
            self.m.deny(node, source, reason)
        return Unknown(f"a function under {name}") if isinstance(value, Function) else value

    def wrapping(self, name: str) -> Wrapping | None:
        """Return what a decorator of this name does; None when it is not known."""
        if self.m.policy.makes_kernel(name):
            return Wrapping(makes_kernel=True)
        if name in _KINDS:
            return Wrapping(kind=_KINDS[name])
        if self.m.policy.wraps_kernel(name) or name.startswith(_TRANSPARENT):
            return Wrapping()
        return None

    def _kernel(self, value: Value, hooks: tuple[Value, ...]) -> Value:
        if not isinstance(value, Function) or not isinstance(value.node, cst.FunctionDef):
            return Unknown("a kernel whose code is not in the file")
        scope = value.scope

        def resolve(expression: cst.BaseExpression) -> Value | None:
            return _resolve(expression, scope)

        facts = KernelFacts(value.name, scope.source, value.node, resolve, self.m.policy.stores)
        kernel = Kernel(facts, hooks)
        self.m.late_kernels.append(kernel)
        return kernel

    def _function(
        self, function: Function, args: list[Value], kwargs: dict[str, Value], node: cst.CSTNode, source: SourceFile
    ) -> Value:
        body = function.node
        if self.m.active.count(body) >= _TURNS:
            raise Recursion
        if len(self.m.active) > _DEEPEST:
            return Unknown("what very deep calls return")
        given = [*([function.bound] if function.bound is not None else []), *function.arguments, *args]
        keywords = {**function.keywords, **kwargs}
        if function.kind == "cached" and self.m.phase == "forward" and any(tensors_in(v) for v in (*args, *kwargs.values())):
            self.m.deny(node, source, "a cached function would return the results of an earlier call")
        scope = Scope({}, function.scope, function.scope.source, fleeting=self.m.phase == "forward")
        self._bind(function, scope, given, keywords)
        self.m.active.append(body)
        try:
            if isinstance(body, cst.Lambda):
                self.m.executes(body, scope.source)
                return self.m.expressions.evaluate(body.body, scope)
            if self.m.phase == "forward" and function.kind != "context" and _changes_later(body):
                self.m.deny(body.name, function.scope.source, "a generator changes what others see at a time that no line shows")
            result = self._run(body, scope, generates=function.kind != "context")
        finally:
            self.m.active.pop()
        if function.kind == "cached":
            self.m.lasting |= reached([result])
        return result

    def _run(self, node: cst.FunctionDef, scope: Scope, *, generates: bool) -> Value:
        frame = Frame()
        self.m.frames.append(frame)
        outside, self.m.branches = self.m.branches, 0
        try:
            reached = self.m.statements.body(node.body, scope)
        finally:
            self.m.frames.pop()
            self.m.branches = outside
        self.m.leave(node, frame)
        heaps = [heap for _, heap, _, _ in frame.returns] + ([self.m.heap] if reached or not frame.returns else [])
        merged = heaps[0]
        for heap in heaps[1:]:
            merged = join(merged, heap)
        self.m.heap = merged
        values = [value for value, _, _, _ in frame.returns] + ([Host(None)] if reached and not frame.returns else [])
        if generates and any(isinstance(where, cst.Yield) for _, _, where, _ in frame.returns):
            return Container("generator", [union(values)], complete=False)
        if frame.recurs and not values and self.m.active.count(node) > 1:
            raise Recursion
        return union(values) if values or not frame.recurs else Unknown("what a recursion returns")

    def _bind(self, function: Function, scope: Scope, args: list[Value], kwargs: dict[str, Value]) -> None:
        params = function.node.params
        waiting = list(args)
        for parameter in (*params.posonly_params, *params.params):
            name = parameter.name.value
            if waiting:
                scope.names[name] = waiting.pop(0)
            else:
                scope.names[name] = kwargs.pop(name, function.defaults.get(name, Host()))
        for parameter in params.kwonly_params:
            name = parameter.name.value
            scope.names[name] = kwargs.pop(name, function.defaults.get(name, Host()))
        if isinstance(params.star_arg, cst.Param):
            scope.names[params.star_arg.name.value] = Container("tuple", waiting)
        if params.star_kwarg is not None:
            scope.names[params.star_kwarg.name.value] = Container("dict", keyed=dict(kwargs))

    # -- classes ---------------------------------------------------------------------------------------------------

    def _call_instance(
        self, instance: Instance, args: list[Value], kwargs: dict[str, Value], node: cst.CSTNode, source: SourceFile
    ) -> Value:
        method = self.m.members.find(instance, "__call__")
        if method is None:
            method = self.m.members.find(instance, "forward")
        if method is not None:
            return self.call(method, args, kwargs, node, source)
        base = next((base for base in instance.cls.lineage() if isinstance(base, Ext)), None)
        return self._unknown(Unknown(f"`{base.name}`" if base else instance.cls.name), args, kwargs, node, source)

    def _member(
        self, callee: Member, args: list[Value], kwargs: dict[str, Value], node: cst.CSTNode, source: SourceFile
    ) -> Value:
        owner = callee.owner
        if isinstance(owner, ClassValue) and callee.name == "apply":
            found = self.m.gradients.apply(owner, args, kwargs, node, source) if owner.extends("torch.autograd") else None
            if found is not None:
                return found
        if isinstance(owner, Container):
            return self.m.tables.method(owner, callee.name, args, kwargs, node, source)
        if isinstance(owner, Instance) and callee.name in REGISTERS:
            bound = [*args, *(kwargs[name] for name in ("name", REGISTERS[callee.name]) if name in kwargs)]
            return self.builtins.call("builtins.setattr", [owner, *bound[:2]], {}, node, source)
        if isinstance(owner, Instance) and callee.name == SAVES:
            self.m.gradients.save(owner, args)
            return Host(None)
        if isinstance(owner, Instance):
            return self.m.records.method(owner, callee.name, kwargs)
        if isinstance(owner, Storage):
            return storages.method(self.m, owner, callee.name, node, source)
        if isinstance(owner, Kernel):
            return Host()
        return self._unknown(Unknown(f"`{callee.name}`"), args, kwargs, node, source)

    def entered(self, value: Value, node: cst.CSTNode, source: SourceFile) -> Value:
        """Return what `with value as x` binds to x."""
        if isinstance(value, Instance):
            leave = self.m.members.find(value, "__exit__")
            enter = self.m.members.find(value, "__enter__")
            if leave is not None:
                self.call(leave, [Host()] * 3, {}, node, source)
            if enter is not None:
                return self.call(enter, [], {}, node, source)
        return value

    def bind_early(
        self, callee: Value, args: list[Value], kwargs: dict[str, Value], node: cst.CSTNode, source: SourceFile
    ) -> Value:
        """Return `functools.partial(callee, *args, **kwargs)`."""
        if isinstance(callee, Launcher):
            return Launcher(callee.kernel, callee.grid, (*callee.arguments, *args), {**callee.keywords, **kwargs})
        if isinstance(callee, Function):
            return Function(
                callee.node, callee.scope, callee.name, callee.kind, callee.bound, callee.owner, (*callee.arguments, *args),
                {**callee.keywords, **kwargs}, callee.defaults,
            )  # fmt: skip
        wrapping = self.wrapping(callee.name) if isinstance(callee, Ext) else None
        if wrapping is not None:
            return wrapping
        if isinstance(callee, Member) and isinstance(callee.owner, Container):  # it may be called at any time
            with self.m.around(branches=1):
                self.m.tables.method(callee.owner, callee.name, args, kwargs, node, source)
        if isinstance(callee, Unknown) and any(map(holds_data, [*args, *kwargs.values()])):
            return self._unknown(callee, args, kwargs, node, source)
        return callee if isinstance(callee, (Ext, Unknown)) else Unknown("a partial call")


def _changes_later(body: cst.FunctionDef) -> bool:
    """Whether a function is a generator that changes more than its own names."""
    if not nodes_in(body.body, cst.Yield):
        return False
    if nodes_in(body.body, cst.Global, cst.Nonlocal, cst.Del):
        return True
    targets = (node.target for node in nodes_in(body.body, cst.AssignTarget, cst.AugAssign))
    return any(isinstance(target, (cst.Subscript, cst.Attribute)) for target in targets)


def _super(scope: Scope) -> Value:
    looked: Scope | None = scope
    while looked is not None:
        for value in looked.names.values():
            if isinstance(value, (Instance, ClassValue)) and looked.parent is not None:
                cls = value.cls if isinstance(value, Instance) else value
                owner = _defining(cls, looked)
                return Super(value, owner)
        looked = looked.parent
    return Unknown("super() outside a method")


def _defining(cls: ClassValue, scope: Scope) -> ClassValue:
    """Return the class of the lineage whose body the method's scope lies in."""
    for owner in cls.lineage():
        if isinstance(owner, ClassValue) and scope.parent is not None and scope.parent.names is owner.names:
            return owner
    return cls


def _resolve(expression: cst.BaseExpression, scope: Scope) -> Value | None:
    """Return what a dotted name stands for inside a kernel; None for anything else."""
    if isinstance(expression, cst.Name):
        return scope.lookup(expression.value)
    if isinstance(expression, cst.Attribute):
        owner = _resolve(expression.value, scope)
        if isinstance(owner, Ext):
            return Ext(f"{owner.name}.{expression.attr.value}")
        return owner.names.get(expression.attr.value) if isinstance(owner, ClassValue) else None
    return None
