"""`libdevice` in Triton's interpreter, which has nothing for such functions: `libdevice.tanh(x)` is None or raises there.

Seen in triton 3.7.1. Right kernels would be refused, since Triton's own language has no tanh. Here NumPy computes them, in
the arguments' precision. What is not in the table stays as Triton leaves it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np

_MODULES = ("triton.language.extra.libdevice", "triton.language.extra.cuda.libdevice", "triton.language.extra.hip.libdevice")


def _each(function: Callable[[float], float]) -> Callable[[Any], Any]:
    def safe(value: float) -> float:
        try:
            return function(value)
        except (OverflowError, ValueError):
            return math.nan if math.isnan(value) or value < 0 else math.inf

    return np.vectorize(safe, otypes=[np.float64])


_SAME = ("cbrt", "ceil", "copysign", "cos", "cosh", "exp", "exp2", "expm1", "floor", "fmod", "hypot", "log", "log10", "log1p",
         "log2", "nextafter", "rint", "sin", "sinh", "sqrt", "tan", "tanh", "trunc", "isnan", "isinf", "signbit")  # fmt: skip
_FUNCTIONS: dict[str, Callable[..., Any]] = {name: getattr(np, name) for name in _SAME} | {
    "abs": np.abs, "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh, "atan": np.arctan,
    "atanh": np.arctanh, "atan2": np.arctan2, "pow": np.power, "nearbyint": np.rint, "finitef": np.isfinite,
    "isfinited": np.isfinite, "rsqrt": lambda x: 1 / np.sqrt(x), "rsqrt_rn": lambda x: 1 / np.sqrt(x), "sqrt_rn": np.sqrt,
    "exp10": lambda x: np.power(x.dtype.type(10), x), "fma": lambda x, y, z: x * y + z, "fdim": lambda x, y: np.maximum(x - y, 0),
    "round": lambda x: np.trunc(x + np.copysign(x.dtype.type(0.5), x)), "add_rn": np.add, "sub_rn": np.subtract,
    "mul_rn": np.multiply, "div_rn": np.divide, "rcp_rn": np.reciprocal, "fast_dividef": np.divide, "fast_powf": np.power,
    "fast_expf": np.exp, "fast_exp10f": lambda x: np.power(x.dtype.type(10), x), "fast_logf": np.log, "fast_log2f": np.log2,
    "fast_log10f": np.log10, "fast_sinf": np.sin, "fast_cosf": np.cos, "fast_tanf": np.tan, "erf": _each(math.erf),
    "erfc": _each(math.erfc), "lgamma": _each(math.lgamma), "tgamma": _each(math.gamma),
    "normcdf": _each(lambda x: 0.5 * math.erfc(-x / math.sqrt(2))),
}  # fmt: skip
_TO_INTEGERS: dict[str, tuple[type, Callable[..., Any]]] = {
    "llrint": (np.int64, np.rint), "llround": (np.int64, lambda x: np.trunc(x + np.copysign(x.dtype.type(0.5), x))),
    "float2int_rn": (np.int32, np.rint), "float2int_rz": (np.int32, np.trunc), "float2int_rd": (np.int32, np.floor),
    "float2int_ru": (np.int32, np.ceil), "float2ll_rn": (np.int64, np.rint), "float2ll_rz": (np.int64, np.trunc),
    "ilogb": (np.int32, lambda x: np.frexp(x)[1] - 1),
}  # fmt: skip
_FUNCTIONS |= {name: function for name, (_, function) in _TO_INTEGERS.items()}


REPLACED: list[tuple[ModuleType, str, Any, Any]] = []
"""Where a function of ours stands: module, name, ours, and Triton's own."""


def of_device(value: Any) -> Any | None:
    """Return the function of Triton's in whose place one of ours stands; None for anything else."""
    return next((theirs for _, _, ours, theirs in REPLACED if ours is value), None)


def install() -> None:
    """Put the functions into Triton's modules of this process."""
    for path in _MODULES:
        try:
            module: ModuleType = import_module(path)
        except ImportError:
            continue
        for name, function in _FUNCTIONS.items():
            if (theirs := getattr(module, name, None)) is not None and of_device(theirs) is None:
                ours = _on_tensors(name, function)
                REPLACED.append((module, name, ours, theirs))
                setattr(module, name, ours)


def _on_tensors(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    import triton.language as tl
    from triton.runtime.interpreter import TensorHandle

    def computed(*args: Any, _semantic: Any = None) -> Any:
        tensors = [arg for arg in args if isinstance(arg, tl.core.tensor)]
        kinds = {tensor.dtype for tensor in tensors if tensor.dtype.is_floating()}
        if len(kinds) != 1 or not kinds <= {tl.float32, tl.float64}:
            raise TypeError(f"libdevice.{name} takes float32 or float64, like on a device")
        (kind,) = kinds
        wide = np.float32 if kind == tl.float32 else np.float64
        values = [np.asarray(arg.handle.data if isinstance(arg, tl.core.tensor) else getattr(arg, "value", arg)) for arg in args]
        with np.errstate(all="ignore"):
            found = np.asarray(function(*(v if v.dtype == wide else v.astype(wide) for v in values)))
        whole = np.int32 if found.dtype == np.bool_ else _TO_INTEGERS.get(name, (None,))[0]
        if whole is not None:
            kind = tl.int32 if whole is np.int32 else tl.int64
        found = found.astype(whole or wide)
        like = next((tensor for tensor in tensors if tensor.type.is_block()), None)
        return tl.core.tensor(TensorHandle(found, kind), kind if like is None else tl.block_type(kind, list(found.shape)))

    return computed
