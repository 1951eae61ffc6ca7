"""Calls of what is not in the file: builtins, PyTorch, Triton's host side, containers' and tensors' methods."""

from __future__ import annotations

import libcst as cst

from pypto_op.triton.static import answers, emptiness, sizes, storages
from pypto_op.triton.static.gradients import GRAD
from pypto_op.triton.static.kernels import Kernel
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
    Storage,
    Tensor,
    TensorMethod,
    Unknown,
    Value,
    Wrapping,
    holds_data,
    options,
    tensors_in,
    union,
)
from pypto_op_lint.constants import NOTHING

_BLIND = frozenset(
    f"builtins.{name}"
    for name in ("len", "isinstance", "issubclass", "id", "hasattr", "print", "repr", "callable", "hash", "str", "type", "format")
)
"""Builtins that take a tensor without looking at its data."""

_KEEPS = frozenset({"builtins.list", "builtins.tuple", "builtins.set", "builtins.reversed", "builtins.iter",
                    "copy.copy", "typing.cast", "builtins.next",
                    "collections.deque", "torch.nn.ParameterList"})  # fmt: skip

_DICTS = ("builtins.dict", "collections.OrderedDict", "torch.nn.ParameterDict")
_TUPLED = ("product", "zip_longest", "combinations", "permutations", "pairwise", "batched", "combinations_with_replacement")
_PLUMBING = frozenset(
    f"itertools.{name}"
    for name in ("chain", "chain.from_iterable", "islice", "repeat", "cycle", "starmap", "filterfalse", "takewhile", "dropwhile",
                 "tee", "compress", *_TUPLED)
) | {"collections.defaultdict"}  # fmt: skip
"""What passes values on without computing on them."""

_SIZED = (".empty", ".zeros", ".ones", ".full", ".empty_strided", ".arange", ".linspace")
"""Makers of tensors that take numbers, not tensors."""

_RAISES_ONLY = ("._check_input_dim",)
"""Methods of PyTorch's layers that look at a tensor's shape and raise, or do nothing."""

_OF_DICTS = frozenset({"get", "items", "keys", "values"})

_OWN = (Instance, ClassValue, Container)
"""Things whose attributes are the file's own."""

_NUMBERS = frozenset({"builtins.float", "builtins.int", "builtins.range", "builtins.round"})

_REDUCTIONS = frozenset(f"builtins.{name}" for name in ("sum", "any", "all", "sorted", "max", "min"))
"""Builtins that reduce their only argument."""


class Builtins:
    """Answers calls by the policy."""

    def __init__(self, machine: Machine) -> None:
        self.m = machine
        self._special = {
            "builtins.getattr": self._getattr,
            "torch.device": lambda *_: Host(kind="device"),
            "builtins.setattr": self._setattr,
            "builtins.zip": self._zip,
            "builtins.enumerate": self._enumerate,
            "builtins.map": self._map,
            "builtins.filter": self._map,
            "builtins.type": self._type,
            "builtins.isinstance": lambda args, *_: answers.is_instance(args, on_device=self.m.on_device),
            "functools.partial": self._partial,
            "importlib.import_module": self._import,
            "functools.reduce": self._reduce,
            "operator.attrgetter": self._named_getter,
            "operator.methodcaller": lambda args, *more: self._named_getter(args[:1], *more),
            "functools.wraps": lambda args, *_: Wrapping(),
            "functools.update_wrapper": lambda args, *_: args[0] if args else Wrapping(),
        }

    def call(self, name: str, args: list[Value], kwargs: dict[str, Value], node: cst.CSTNode, source: SourceFile) -> Value:
        """Call a name of an outer module."""
        reason = self.m.policy.forbidden(name)
        if reason:
            self.m.deny(node, source, reason)
            return Unknown(f"`{name}`")
        reaching = answers.reaching([*args, *kwargs.values()])
        if reaching:
            self.m.deny(node, source, f"`{reaching}` is handed on, so what it reaches for cannot be checked")
        method = self.m.tables.called(name, args)
        if method is not None:
            changed = [option for option in options(args[0]) if isinstance(option, Container)]
            return union([self.m.tables.method(option, method, args[1:], kwargs, node, source) for option in changed])
        self.m.tables.given(name, args)
        if name == GRAD:
            gradients = self.m.gradients.grad(args, kwargs, node, source)
            if gradients is not None:
                return gradients
        if name in self._special:
            return self._special[name](args, kwargs, node, source)
        number = answers.number(name, args, kwargs)
        if number is not None:
            return number
        wrapped = self._kernel_maker(name, args, kwargs, node, source)
        if wrapped is None:
            wrapped = self.m.records.call(name, args, kwargs, node, source)
        if wrapped is not None:
            return wrapped
        called = self.m.following.hand_over(name, [*args, *kwargs.values()], node, source) if name not in _BLIND else []
        if name in ("triton.Config", "triton.runtime.autotuner.Config"):
            return ExtInstance(name, tuple(h for value in (*args, *kwargs.values()) for h in self.m.following.callables(value)))
        if name in _PLUMBING or (name == "builtins.iter" and len(args) == 2):
            return _plumbed(name, args, called)
        called_on = [option for option in options(args[0]) if isinstance(option, Tensor)] if args else []
        if name.startswith("torch.Tensor.") and called_on and len(called_on) == len(options(args[0])):
            method = name.rpartition(".")[2]
            return union([self.method(TensorMethod(t, method), args[1:], kwargs, node, source) for t in called_on])
        if name in _DICTS:
            made = Container("dict")
            self.m.tables.method(made, "update", args, kwargs, node, source)
            return made
        if name in _KEEPS:
            return self._kept(name, args)
        if name.endswith("__setattr__") and args:
            return self._setattr(args, kwargs, node, source)
        if self.m.phase != "forward":
            return self._outside_forward(name, args, node, source)
        return self._in_forward(name, args, kwargs, node, source)

    def _import(self, args: list[Value], kwargs: dict[str, Value], node: cst.CSTNode, source: SourceFile) -> Value:
        """`importlib.import_module("triton")`: as the statement, where the name is known."""
        name = next((value.const for value in [*args, *kwargs.values()] if isinstance(value, Host)), None)
        if isinstance(name, str) and name and not name.startswith("."):
            return self.m.imports.module(name, node, source)
        self.m.deny(node, source, "code that is not in the file cannot be checked")
        return Unknown("a module whose name is not known")

    def _kernel_maker(
        self, name: str, args: list[Value], kwargs: dict[str, Value], node: cst.CSTNode, source: SourceFile
    ) -> Value | None:
        """`triton.jit(f)`, `triton.jit(...)`, `autotune(...)`: as decorators, or called."""
        wrapping = self.m.calls.wrapping(name)
        if wrapping is None:
            return None
        wrapping.operator = answers.operator(name, args)
        if name.startswith("triton."):
            first = 1 if args and isinstance(args[0], (Function, Kernel)) else 0
            given = [*args[first:], *kwargs.values()]
            wrapping.hooks = tuple(hook for value in given for hook in self.m.following.callables(value))
        if args and isinstance(args[0], (Function, Kernel)):
            return self.m.calls.decorate(wrapping, args[0], node, source)
        return wrapping

    def _outside_forward(self, name: str, args: list[Value], node: cst.CSTNode, source: SourceFile) -> Value:
        if not self.m.policy.may_import(name):
            self.m.deny(node, source, "what this library does with names, text and memory is not known, at import too")
            return Unknown(f"what `{name}` returned")
        kind = self.m.policy.call(name)
        if kind == "host" or self.m.policy.computes_on_host(name):
            return Host()
        if (
            name in ("torch.nn.Parameter", "torch.nn.parameter.Parameter", "torch.nn.Buffer", "torch.nn.parameter.Buffer")
            or name.startswith("torch.")
            and not name.startswith("torch.nn.")
        ):
            return self.m.fresh("weight")
        return ExtInstance(name)

    def _in_forward(self, name: str, args: list[Value], kwargs: dict[str, Value], node: cst.CSTNode, source: SourceFile) -> Value:
        given = [*args, *kwargs.values()]
        kind = self.m.policy.call(name)
        known = sizes.made(self.m, name, given) or sizes.called(self.m, name, given)
        if known is not None:
            return known
        if kind is not None:
            if kind != "host" and not name.endswith(_SIZED):
                self.m.suspects.as_tensor(given, node, source)
            elif name.endswith(_SIZED):
                self.m.suspects.confirm(given)
            return self._yields(kind, args, kwargs, node, source)
        if name in _BLIND:
            return Host()
        data = any(holds_data(value) for value in given)
        if self.m.policy.computes_on_host(name):
            number = self.m.suspects.as_number(given) if len(given) > 1 or name not in _REDUCTIONS else None
            if number is not None:
                if name.startswith("math.") or name in _NUMBERS:
                    self.m.suspects.confirm(given)
                return number
            if data:
                self.m.deny(node, source, "Python computes on a tensor's data here; compute it in a kernel")
                return self.m.computed()
            return Host()
        if name.endswith(".__init__"):
            return Host(None)
        if data or name.startswith(("torch.", "torch_npu.")):
            self.m.deny(node, source, self.m.policy.denied(name))
            return self.m.computed()
        return Unknown(f"what `{name}` returned")

    def _yields(self, kind: str, args: list[Value], kwargs: dict[str, Value], node: cst.CSTNode, source: SourceFile) -> Value:
        """Return the result of an allowed call or method, whose tensors come first in `args`."""
        given = [*args, *kwargs.values()]
        tensors = [tensor for value in given for tensor in tensors_in(value)]
        if kind == "host":
            return Host()
        if any(isinstance(option, Host) and option.data for value in given for option in _flat(value)):
            self.m.deny(node, source, "data that was read out of a tensor is put into a new one; compute it in a kernel")
            return self.m.computed()
        if kind == "fresh":
            return self.m.fresh()
        if not tensors:
            return self.m.fresh() if kind == "copy" else Host()
        if kind == "view":
            return tensors[0]
        written = self.m.written(tensors[0])
        origins = {buffer.origin for buffer in tensors[0].buffers}
        kept = next((origin for origin in ("fresh", "weight") if origins == {origin}), "copy")
        return self.m.fresh("computed" if "computed" in origins else kept, written)

    def method(
        self, bound: TensorMethod, args: list[Value], kwargs: dict[str, Value], node: cst.CSTNode, source: SourceFile
    ) -> Value:
        """Call a tensor's method."""
        name, tensor = bound.name, bound.tensor
        kind = self.m.policy.method(name)
        if self.m.phase != "forward":
            return Host() if kind == "host" else tensor
        if name == storages.MAKES:
            return Storage(tensor)
        given = [tensor, *args, *kwargs.values()]
        known = sizes.reckoned(self.m, name, given) or emptiness.counted(name, given)
        if known is not None:
            return known
        if name in ("item", "tolist", "numpy", "__int__", "__float__", "__bool__", "cpu"):
            self.m.deny(node, source, "it brings a tensor's data to the host; keep it on the device, in a kernel")
            return Host(data=True) if name != "cpu" else self.m.computed()
        if name == "data_ptr":
            self.m.addressed |= tensor.buffers
        if name in _OF_DICTS:  # and of no tensor: an argument may be a dict of such
            pair = Container("tuple", [Host(), tensor]) if name == "items" else Host() if name == "keys" else tensor
            return union([tensor, *args[1:]]) if name == "get" else Container("list", [pair], complete=False)
        if kind is None:
            self.m.deny(node, source, f"`{name}` of a tensor is not known to be free of computation; compute it in a kernel")
            return self.m.computed()
        given = [*args, *kwargs.values()]
        if kind in ("copy_into", "fresh"):
            self.m.suspects.as_tensor(given, node, source)
        else:
            self.m.suspects.confirm(given)
        if kind == "copy_into":
            written = min((self.m.written(t) for value in args for t in tensors_in(value)), default=0)
            self.m.heap.update(dict.fromkeys(tensor.buffers, written))
            for buffer in tensor.buffers:
                buffer.constant = False
            return tensor
        if kind == "view":
            return (
                tensor
                if name not in ("split", "chunk", "unbind", "split_with_sizes", "tensor_split")
                else Container("tuple", [tensor], complete=False)
            )
        return self._yields(kind, [tensor, *args] if kind == "copy" else args, kwargs, node, source)

    def ext_instance(
        self, callee: ExtInstance, args: list[Value], kwargs: dict[str, Value], node: cst.CSTNode, source: SourceFile
    ) -> Value:
        """Call an object of an outer class, or its method."""
        name = callee.name
        reason = self.m.policy.forbidden(name)
        if reason:
            self.m.deny(node, source, reason)
            return Unknown(f"`{name}`")
        if self.m.phase != "forward":
            return callee
        if name.endswith(_RAISES_ONLY):
            return Host(None)
        if self.m.policy.call(name) == "host" or (self.m.policy.computes_on_host(name)):
            return Host() if not any(holds_data(v) for v in args) else self._denied(name, node, source)
        if name.startswith(("torch.nn.", "torch.")) and (args or kwargs):
            return self._denied(name, node, source)
        if any(holds_data(value) for value in (*args, *kwargs.values())):
            return self._denied(name, node, source)
        return Unknown(f"what `{name}` returned")

    def _denied(self, name: str, node: cst.CSTNode, source: SourceFile) -> Value:
        self.m.deny(node, source, self.m.policy.denied(name))
        return self.m.computed()

    def _kept(self, name: str, args: list[Value]) -> Value:
        if not args:
            return Container("list" if name.endswith("List") else name.rpartition(".")[2])
        first = args[-1] if name == "typing.cast" else args[0]
        if name == "builtins.next":
            return self.m.expressions.item_of(first)
        first = self.m.records.as_tuple(first)
        if isinstance(first, Container):
            return Container(first.kind, list(first.items), dict(first.keyed), first.complete)
        if any(isinstance(option, (Tensor, Unknown, ClassValue)) for option in options(first)):
            return Container("list", [self.m.expressions.item_of(first)], complete=False)
        return first

    # -- functions that need more than a table ---------------------------------------------------------------------

    def _getattr(self, args: list[Value], kwargs: dict[str, Value], node: cst.CSTNode, source: SourceFile) -> Value:
        words = [word for option in options(args[1]) for word in answers.words_of(option, args[0])] if len(args) > 1 else [None]
        if all(isinstance(word, str) for word in words):
            found = [self.m.members.get(args[0], str(word), node, source) for word in words]
            return union([*found, *args[2:3]])
        if not all(isinstance(option, _OWN) for option in options(args[0] if args else Unknown(""))):
            self.m.deny(node, source, "the name of the attribute is computed, so what is called cannot be checked")
            return Unknown("an attribute whose name is computed")
        return Unknown("an attribute whose name is computed")

    def _named_getter(self, args: list[Value], kwargs: dict[str, Value], node: cst.CSTNode, source: SourceFile) -> Value:
        """`operator.attrgetter("a.b")`: what it reaches for must be named."""
        for value in args:
            word = value.const if isinstance(value, Host) else NOTHING
            if not isinstance(word, str):
                self.m.deny(node, source, "the name of the attribute is computed, so what is called cannot be checked")
                continue
            for part in word.split("."):
                self.m.members.check(f"own.{part}", node, source)
        return Unknown("an attribute that a getter reaches for")

    def _setattr(self, args: list[Value], kwargs: dict[str, Value], node: cst.CSTNode, source: SourceFile) -> Value:
        if len(args) == 3:
            name = args[1].const if isinstance(args[1], Host) and isinstance(args[1].const, str) else "an attribute"
            self.m.statements.set_attribute(args[0], str(name), args[2], node, Scope({}, None, source))
        return Host(None)

    def _zip(self, args: list[Value], kwargs: dict[str, Value], node: cst.CSTNode, source: SourceFile) -> Value:
        return Container("list", [Container("tuple", [self.m.expressions.item_of(value) for value in args])], complete=False)

    def _enumerate(self, args: list[Value], kwargs: dict[str, Value], node: cst.CSTNode, source: SourceFile) -> Value:
        item = self.m.expressions.item_of(args[0]) if args else Host()
        return Container("list", [Container("tuple", [Host(), item])], complete=False)

    def _map(self, args: list[Value], kwargs: dict[str, Value], node: cst.CSTNode, source: SourceFile) -> Value:
        items = [self.m.expressions.item_of(value) for value in args[1:]]
        with self.m.around(loops=1):
            result = self.m.calls.call(args[0], items, {}, node, source) if args else Host()
        return Container("list", [result], complete=False)

    def _type(self, args: list[Value], kwargs: dict[str, Value], node: cst.CSTNode, source: SourceFile) -> Value:
        if len(args) == 3:
            self.m.deny(node, source, "a class that is made up at run time cannot be checked")
            return Unknown("a class that is made up")
        if args and any(isinstance(option, (Kernel, Function, Ext)) for option in options(args[0])):
            return Unknown("the type of a function")
        return args[0].cls if args and isinstance(args[0], Instance) else Host()

    def _partial(self, args: list[Value], kwargs: dict[str, Value], node: cst.CSTNode, source: SourceFile) -> Value:
        if not args:
            return Unknown("a partial call")
        return union([self.m.calls.bind_early(option, args[1:], kwargs, node, source) for option in options(args[0])])

    def _reduce(self, args: list[Value], kwargs: dict[str, Value], node: cst.CSTNode, source: SourceFile) -> Value:
        if len(args) < 2:
            return Host()
        item = self.m.expressions.item_of(args[1])
        with self.m.around(loops=1):
            return self.m.calls.call(args[0], [item, item], {}, node, source)


def _plumbed(name: str, args: list[Value], called: list[Value]) -> Value:
    """Return what `itertools` and the like hand on: what they were given, and what the functions returned."""
    if name == "builtins.iter":
        return Container("list", called, complete=False)
    inner = [item for value in args for item in _flat(value) if not isinstance(item, (Container, Function, Ext))]
    if name.endswith("defaultdict"):
        keyed = dict(args[1].keyed) if len(args) > 1 and isinstance(args[1], Container) else {}
        return Container("dict", called or [Host()], keyed, complete=False)
    if name.endswith(_TUPLED):
        return Container("list", [Container("tuple", inner, complete=False)], complete=False)
    return Container("list", [*inner, *called], complete=False)


def _flat(value: Value, depth: int = 4) -> list[Value]:
    """Return a value's options and, in containers, those of its members."""
    found: list[Value] = []
    for option in options(value):
        found.append(option)
        if isinstance(option, Container) and depth:
            found += [inner for member in option.members() for inner in _flat(member, depth - 1)]
    return found
