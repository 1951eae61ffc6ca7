"""Whether Triton's compiler takes a kernel that its interpreter ran: the first step of compiling needs no device.

The interpreter runs Python. So a sum that begins as `acc = 0` and goes on as a block of floats is right there, and no compiler
takes it: a variable of a loop keeps its type. Each kernel goes through the compiler's front end, once for each kind of
arguments. What depends on a device (the least size of a product, formats of 8 bits) is not asked.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any

import torch

from pypto_op.triton.run.interpreter import libdevice

_CAPABILITY = 90
_MOST = 32
"""So many kernels, each with a kind of arguments, are asked about."""
_MOST_WORDS = 600
_SKIPPED = frozenset(("make_tensor_descriptor", "inline_asm_elementwise", "gluon"))
"""A kernel that names one of these is not asked about: the interpreter's stand-ins take their place, or devices differ."""
_TYPES = {torch.float16: "fp16", torch.bfloat16: "bf16", torch.float32: "fp32", torch.float64: "fp64", torch.bool: "i1",
          torch.int8: "i8", torch.int16: "i16", torch.int32: "i32", torch.int64: "i64", torch.uint8: "u8", torch.uint16: "u16",
          torch.uint32: "u32", torch.uint64: "u64"}  # fmt: skip
_Change = tuple[Any, str, Any]
"""A module's names or a class, a name in it, and what stood there."""
_Kind = tuple[tuple[str, str, Any], ...]
"""By parameter: its name, its type, and its value where the compiler knows it."""


class Compiling:
    """Keeps which kernels were launched with which kinds of arguments, and asks the compiler about them.

    It is made before anything is interpreted: the interpreter puts its own functions into Triton's language, and leaves some.
    """

    def __init__(self) -> None:
        import triton.language as tl

        holders: list[Any] = [tl, tl.core, tl.math, tl.core.tensor, tl.core.tensor_descriptor_base, tl.core.tensor_descriptor]
        self._language = [(holder, dict(vars(holder))) for holder in holders]
        self._waiting: dict[tuple[int, str], tuple[Any, _Kind]] = {}
        self._asked: dict[tuple[int, str], tuple[Any, str]] = {}

    def note(self, kernel: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Keep a launch, no tensor of it."""
        if len(self._asked) + len(self._waiting) >= _MOST or type(kernel).__name__ != "InterpretedFunction":
            return
        given = {**dict(zip(kernel.arg_names, args, strict=False)), **kwargs}
        kind = _kind_of(kernel, given)
        if kind is not None and (key := (id(kernel), repr(kind))) not in self._asked:
            self._waiting[key] = kernel, kind

    def refused(self) -> str:
        """Return what the compiler says of the first kernel that it refuses; "" for nothing. It is asked once for each."""
        waiting, self._waiting = self._waiting, {}
        for key, (kernel, kind) in waiting.items():
            self._asked[key] = kernel, self._said(kernel, kind)
        return next((said for _, said in self._asked.values() if said), "")

    def _said(self, kernel: Any, kind: _Kind) -> str:
        """Return why the compiler refuses a kernel with such arguments; "" where it takes it, or cannot be asked."""
        from triton.compiler.errors import CompilationError

        changed: list[_Change] = []
        try:
            for holder, held in self._language:
                for name, value in vars(holder).copy().items():
                    if held.get(name, value) is not value:
                        _put(holder, name, held[name], changed)
            for module, name, _, theirs in libdevice.REPLACED:
                _put(module, name, theirs, changed)
            twins: dict[int, Any] = {}
            _front_end(_compiled(kernel.fn, twins, changed), _of_twins(kind, twins, changed))
        except CompilationError as error:
            words = str(error)[-_MOST_WORDS:]
            return f"Triton's compiler refuses kernel {kernel.fn.__name__}, which its interpreter runs: {words}"
        except Exception:  # what this step itself cannot do says nothing about the kernel
            return ""
        finally:
            for holder, name, value in reversed(changed):
                _put(holder, name, value, [])
        return ""


def _kind_of(kernel: Any, given: dict[str, Any]) -> _Kind | None:
    """Return the kinds of a launch's arguments, as a device's launch tells them apart; None where they are of another sort."""
    import triton.language as tl

    kinds = []
    defaults = {name: one.default for name, one in _parameters(kernel.fn).items() if one.default is not one.empty}
    for name in kernel.arg_names:
        if name not in given and name not in defaults:
            return None
        value: Any = given.get(name, defaults.get(name))
        if "constexpr" in str(kernel.fn.__annotations__.get(name)) or value is None or (type(value) is int and value == 1):
            value = value.value if type(value) is tl.constexpr else value
            if not _is_plain(value):
                return None
            kinds.append((name, "constexpr", value))
        elif (word := _type_of(value)) is not None:
            kinds.append((name, word, None))
        else:
            return None
    return tuple(kinds)


def _is_plain(value: Any) -> bool:
    """Whether no code of the candidate runs where this is looked at."""
    if type(value) is tuple:
        return all(map(_is_plain, value))
    return type(value) in (int, float, bool, str, type(None)) or type(value).__name__ == "dtype" or _is_interpreted(value)


def _parameters(function: Any) -> dict[str, Any]:
    import inspect

    return dict(inspect.signature(function).parameters)


def _type_of(value: Any) -> str | None:
    if isinstance(value, torch.Tensor):
        return f"*{_TYPES[value.dtype]}" if value.dtype in _TYPES else None
    if type(value) is bool:
        return "i1"
    if type(value) is int:
        return "i32" if -(2**31) <= value < 2**31 else "i64" if value < 2**63 else "u64"
    return "fp32" if type(value) is float else None


def _front_end(kernel: Any, kind: _Kind) -> None:
    """Turn a kernel into the compiler's own language, for a GPU that need not be there."""
    from triton._C.libtriton import ir
    from triton.backends.compiler import GPUTarget
    from triton.backends.nvidia.compiler import CUDABackend
    from triton.compiler.compiler import ASTSource

    target = GPUTarget("cuda", _CAPABILITY, 32)
    backend = CUDABackend(target)
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    options = backend.parse_options({})
    known = {(place,): value for place, (_, word, value) in enumerate(kind) if word == "constexpr"}
    source = ASTSource(fn=kernel, signature={name: word for name, word, _ in kind}, constexprs=known)
    functions = {**backend.get_codegen_implementation(options), "min_dot_size": lambda *_: (1, 1, 1)}
    source.make_ir(target, options, functions, backend.get_module_map(), context)


def _put(holder: Any, name: str, value: Any, changed: list[_Change]) -> None:
    """Let a name of a module, of its names or of a class stand for something else, and note for what it stood."""
    space = holder if isinstance(holder, dict) else vars(holder)
    changed.append((holder, name, space[name]))
    if isinstance(holder, dict):
        holder[name] = value
    else:
        setattr(holder, name, value)


def _of_twins(kind: _Kind, twins: dict[int, Any], changed: list[_Change]) -> _Kind:
    """Return the kind with the compiled kind of the jitted functions in it."""
    return tuple((name, word, _twin(value.fn, twins, changed) if _is_interpreted(value) else value) for name, word, value in kind)


def _compiled(function: Any, twins: dict[int, Any], changed: list[_Change]) -> Any:
    """Return the compiled kind of a kernel; all jitted functions that it reaches are of that kind until `changed` is undone."""
    from triton.language import core

    for name, member in vars(core.tensor).copy().items():
        if (behind := _behind(member)) is not None:
            _put(core.tensor, name, _twin(behind, twins, changed), changed)
    return _twin(function, twins, changed)


def _twin(function: Any, twins: dict[int, Any], changed: list[_Change]) -> Any:
    """Return the compiled kind of a jitted function, and put those of what it names into their modules."""
    from triton.runtime.jit import JITFunction

    if id(function) in twins:
        return twins[id(function)]
    names = set(_names(function.__code__))
    if names & _SKIPPED or any(_is_interpreted(cell.cell_contents) for cell in function.__closure__ or ()):
        raise ValueError("not asked")
    twins[id(function)] = twin = JITFunction(function)
    waiting = [function.__globals__]
    seen = set()
    while waiting:
        space = waiting.pop()
        if id(space) in seen:
            continue
        seen.add(id(space))
        for name in names & space.keys():
            value = space[name]
            if isinstance(value, ModuleType):
                waiting.append(vars(value))
            elif _is_interpreted(value):
                _put(space, name, _twin(value.fn, twins, changed), changed)
            elif (function := libdevice.of_device(value)) is not None:
                _put(space, name, function, changed)
    return twin


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _is_interpreted(value: Any) -> bool:
    return type(value).__name__ == "InterpretedFunction"


def _behind(member: Any) -> Any | None:
    """Return the jitted function that a method of blocks forwards to."""
    if not isinstance(member, FunctionType):
        return None
    cells = [cell.cell_contents for cell in member.__closure__ or ()]
    return next((value.fn for value in cells if _is_interpreted(value)), None)
