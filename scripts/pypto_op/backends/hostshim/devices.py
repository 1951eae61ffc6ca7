"""Sends whatever asks for an NPU to the CPU: factory arguments, `.to`, `.npu()` and generators."""

from __future__ import annotations

import ast
import functools
import re
import sys
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.overrides import TorchFunctionMode, _get_current_function_mode_stack, _pop_mode, _push_mode

from pypto_op.backends.hostshim import draws, formats
from pypto_op.backends.hostshim.draws import ON_DEVICE

AWAY = {"npu"}
"""Kinds of devices that are not there."""

_DEVICE_OF = torch.Tensor.device.__get__
_NPU = torch.device("privateuseone", 0)
"""Where a tensor with a layout says it is: only a device has layouts, so scripts ask for the device before the layout."""
_LIBRARIES = ("torch", "pypto", "numpy", "pypto_op", "triton")
CUDA = torch.device("cuda", 0)
SAYS: list[torch.device] = []
"""Where every tensor says it is, and what each device that is away is, to files that ask; empty: the CPU."""

_RealGenerator = torch.Generator


def to_host(value: Any) -> Any:
    """Return `ON_DEVICE` for anything that names a device that is away; everything else unchanged."""
    kind = type(value)
    if kind is torch.Tensor or kind is int:  # nearly every argument
        return value
    if isinstance(value, torch.device):
        return ON_DEVICE if value.type in AWAY else value
    if isinstance(value, str) and value.partition(":")[0] in AWAY:
        return ON_DEVICE
    return value


class HostDevices(TorchFunctionMode):
    """Rewrites device arguments of every torch function; torch's own default-device mode works the same way."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Sequence[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Call `func` with each NPU among its arguments replaced."""
        if func == _DEVICE_OF:
            asked = SAYS or formats.is_tagged(args[0])
            if asked and _caller().partition(".")[0] not in _LIBRARIES:
                return SAYS[0] if SAYS else _NPU
            return ON_DEVICE if draws.is_put(args[0]) else func(*args)
        if func is torch.Tensor.cpu and formats.is_tagged(args[0]):
            return args[0].view_as(args[0])
        if func is torch.device and args and (to_host(args[0]) is ON_DEVICE or type(args[0]) is int):
            caller = _caller()
            if caller == "torch":  # `get_device_module`
                return func(*args)
            return SAYS[0] if SAYS and caller.partition(".")[0] not in _LIBRARIES else ON_DEVICE
        if func is torch.Tensor.to and len(args) > 1 and type(args[1]) is int:  # a device's number alone is an NPU's
            args = (args[0], ON_DEVICE, *args[2:])
        args = tuple(map(to_host, args))
        kwargs = {name: to_host(value) for name, value in kwargs.items()} if kwargs else {}
        if type(kwargs.get("device")) is int:
            kwargs["device"] = ON_DEVICE
        if func in _TOP_K:
            args, kwargs = args[:4], {**kwargs, "sorted": True}
        if func in draws.DRAWS:
            kwargs = draws.of_the_device(args, kwargs)
            if func in _UNIFORM and (kind := _integer_kind(func, args, kwargs)) is not None:
                func = functools.partial(_whole_numbers, func, kind)
        result = func(*args, **kwargs)
        if kwargs.get("device") is ON_DEVICE or (func is torch.Tensor.to and len(args) > 1 and args[1] is ON_DEVICE):
            draws.put(result)
        return result


def _caller() -> str:
    """Return the module of the code that asks: libraries are told the truth where it matters to them."""
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_code.co_name == "__torch_function__":  # another mode, which hands on what is asked
        frame = frame.f_back
    return str(frame.f_globals.get("__name__", ""))


_TOP_K = {torch.topk, torch.Tensor.topk}
"""A device answers in order whether asked to or not; the CPU's own order of an unsorted answer is of its making."""

_UNIFORM = {torch.rand, torch.Tensor.uniform_}
"""A device draws these for whole numbers too, and cuts off what is behind the point; torch refuses it on the CPU."""


def _integer_kind(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.dtype | None:
    """Return the dtype that is asked for, None for a floating one."""
    kind = kwargs.get("dtype") if func is torch.rand else args[0].dtype
    return None if kind is None or kind.is_floating_point or kind.is_complex else kind


def _whole_numbers(func: Callable[..., Any], kind: torch.dtype, *args: Any, **kwargs: Any) -> torch.Tensor:
    if func is torch.rand:
        return torch.rand(*args, **{**kwargs, "dtype": torch.float32}).to(kind)
    filled: torch.Tensor = args[0]
    return filled.copy_(torch.empty(filled.shape).uniform_(*args[1:], **kwargs))


class _GeneratorKind(type):
    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, _RealGenerator)


class Generator(metaclass=_GeneratorKind):
    """`torch.Generator` whose device may be an NPU; what it makes is a real generator on the CPU."""

    def __new__(cls, device: Any = "cpu") -> Any:
        """Return a real generator."""
        return _RealGenerator(device=to_host(device))


def _stay(self: Any, *args: Any, **kwargs: Any) -> Any:
    """`.npu()` of a tensor or module: it is where it has to be."""
    draws.put(self)
    return self


_MODE = HostDevices()
_IMPORTS = frozenset({"__future__", "collections", "dataclasses", "functools", "itertools", "math", "torch", "typing"})
"""What a file may import without getting a device's name from elsewhere."""
_HIDES = re.compile(r"(?<!i)npu|\b(__import__|exec|eval|compile)\b")
"""What may name a device or take a file along; the npu in `input` does not, nor does `eval` in `evaluated`."""


def needs_no_host(source: str) -> bool:
    """Whether a file's text cannot ask for an NPU: it names none, and takes no other file along. One that does is refused aloud.

    Its tensors are on the CPU then, and half of the time of a small operator would go to looking at its arguments.
    """
    try:
        nodes = list(ast.walk(ast.parse(source)))
    except (SyntaxError, ValueError):
        return False
    named = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    named += ["." if node.level else str(node.module) for node in nodes if isinstance(node, ast.ImportFrom)]
    return {name.partition(".")[0] for name in named} <= _IMPORTS and not _HIDES.search(source)


class SteppedAside:
    """While entered, nothing is rewritten; for calls of a file that `needs_no_host`. Harmless where no shim is installed.

    A class of its own, since `contextlib` writes into each exception that passes, and some of ours are frozen.
    """

    def __enter__(self) -> None:
        """Take the rewriting away, where it is the innermost one."""
        self._installed = _MODE in _get_current_function_mode_stack()[-1:]  # type: ignore[no-untyped-call]
        if self._installed:
            _pop_mode()  # type: ignore[no-untyped-call]

    def __exit__(self, *raised: object) -> None:
        """Put it back."""
        if self._installed:
            _push_mode(_MODE)  # type: ignore[no-untyped-call]


def install() -> None:
    """Install the rewriting for the main thread of this process."""
    torch.Generator = Generator  # type: ignore[misc]
    torch.Tensor.npu = _stay  # type: ignore[attr-defined]
    torch.Tensor.is_npu = property(lambda self: True)  # type: ignore[attr-defined]
    torch.nn.Module.npu = _stay  # type: ignore[attr-defined]
    _MODE.__enter__()  # type: ignore[no-untyped-call]
