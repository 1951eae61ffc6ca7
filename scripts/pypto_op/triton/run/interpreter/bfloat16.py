"""Makes Triton's interpreter compute bfloat16: it keeps such numbers as 16-bit integers and calculates with the bits.

Seen in triton 3.7.1: `a * b`, `a + b`, `-a`, `a < b`, `tl.dot`, `tl.sum`, `tl.maximum` of bfloat16 are wrong by orders of
magnitude there, and right on a device. A right kernel would be refused. Each operation is done in float32 here and rounded
once to bfloat16, as a device does it. A cast to bfloat16 cuts bits off there, or takes the bits of a whole number for those of a
bfloat16; a device rounds to the nearest. A cast to 8 bits, or one that asks for rounding to the nearest, loses the carry into the
exponent there. The interpreter cannot make a bfloat16 constant either (`x + 1.0` ends in an AttributeError).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

_BITWISE = frozenset({"bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift", "invert"})
_OPERATIONS = {
    "binary_op": 2,
    "unary_op": 1,
    "ternary_op": 3,
    "create_dot": 2,
    "create_rsqrt": 1,
    "create_erf": 1,
    "create_fma": 3,
}
"""Methods of the interpreter's builder, and how many operands they take first."""


def mend() -> None:
    """Wrap the interpreter's arithmetic in this process; harmless when it is called twice or has nothing to mend."""
    from triton.runtime import interpreter

    builder = interpreter.InterpreterBuilder
    if getattr(builder, "_computes_bfloat16", False):
        return
    builder._computes_bfloat16 = True
    for name, operands in _OPERATIONS.items():
        if hasattr(builder, name):
            setattr(builder, name, _widening(getattr(builder, name), operands, keeps_type=name != "create_dot"))
    builder.cast_impl = _rounding(builder.cast_impl)
    builder.create_fp_to_fp = _to_the_nearest(builder.create_fp_to_fp)
    if not hasattr(builder, "get_bf16"):
        builder.get_bf16 = lambda self, value: _narrow(self.get_fp32(value))
    scans = getattr(interpreter, "ReduceScanOpInterface", None)
    if scans is not None:
        scans.apply = _widening_scan(scans.apply)


def _widening(method: Callable[..., Any], operands: int, *, keeps_type: bool) -> Callable[..., Any]:
    from triton.runtime.interpreter import TensorHandle

    @functools.wraps(method)
    def widened(builder: Any, *args: Any) -> Any:
        narrow = [_is_narrow(arg) for arg in args[:operands]]
        if not any(narrow) or getattr(args[-1], "__name__", "") in _BITWISE:
            return method(builder, *args)
        result = method(builder, *(_wide(arg) if i < operands else arg for i, arg in enumerate(args)))
        if keeps_type and isinstance(result, TensorHandle) and result.data.dtype.name == "float32":
            return _narrow(result)
        return result

    return widened


def _rounding(cast: Callable[..., Any]) -> Callable[..., Any]:
    import numpy as np
    import triton.language as tl
    from triton.runtime.interpreter import TensorHandle

    @functools.wraps(cast)
    def rounded(builder: Any, src: Any, dst_type: Any) -> Any:
        wide = _wide(src)
        if dst_type.scalar == tl.bfloat16 and not _is_narrow(src):
            with np.errstate(over="ignore"):
                return _narrow(TensorHandle(src.data.astype(np.float32), tl.float32))
        return src if dst_type.scalar == tl.bfloat16 else cast(builder, wide, dst_type)

    return rounded


def _to_the_nearest(cast: Callable[..., Any]) -> Callable[..., Any]:
    import numpy as np
    import triton.language as tl
    from triton.runtime.interpreter import TensorHandle, _ir

    of_eight = {tl.float8e4nv: (448.0, 0x7F), tl.float8e5: (57344.0, 0x7F), tl.float8e4b8: (240.0, 0x80),
                tl.float8e5b16: (57344.0, 0x80)}  # fmt: skip
    wider = (tl.float16, tl.bfloat16, tl.float32, tl.float64)

    @functools.wraps(cast)
    def rounded(builder: Any, src: Any, dst_type: Any, rounding_mode: Any) -> Any:
        kind = dst_type.scalar
        if rounding_mode == _ir.ROUNDING_MODE.RTZ or src.dtype.scalar not in wider or kind not in (*of_eight, *wider):
            return cast(builder, src, dst_type, rounding_mode)
        if kind not in of_eight:
            return builder.cast_impl(src, dst_type)
        values = np.asarray(_wide(src).data, dtype=np.float64)
        return TensorHandle(of_eight_bits(values, kind, *of_eight[kind]), kind)

    return rounded


def of_eight_bits(values: Any, kind: Any, most: float, nan: int) -> Any:
    """Return the 8-bit numbers nearest to `values`, ties to even; beyond the greatest `most` is the greatest."""
    import numpy as np

    width, least = kind.fp_mantissa_width, 1 - kind.exponent_bias
    size = np.abs(np.nan_to_num(values, posinf=most, neginf=-most))

    def power_of() -> Any:
        return np.where(size > 0, np.maximum(np.frexp(size)[1] - 1, least), least)

    power = power_of()
    size = np.minimum(np.ldexp(np.rint(np.ldexp(size, width - power)), power - width), most)
    power = power_of()
    steps = np.ldexp(size, width - power).astype(np.int64)  # a whole part of 1 << width where the number is no subnormal one
    bits = steps + ((power - least) << width) | np.where(np.signbit(values) & ((steps > 0) | (nan != 0x80)), 0x80, 0)
    return np.where(np.isnan(values), nan, bits).astype(np.uint8)


def _widening_scan(apply: Callable[..., Any]) -> Callable[..., Any]:
    import triton.language as tl

    @functools.wraps(apply)
    def widened(operation: Any, given: Any) -> Any:
        if not isinstance(given, tuple):
            return apply(operation, given)
        narrow = [_is_narrow(tensor.handle) for tensor in given]
        if not any(narrow):
            return apply(operation, given)
        results = apply(operation, tuple(_tensor(tensor, tl.float32, _wide(tensor.handle)) for tensor in given))
        return tuple(
            _tensor(result, tl.bfloat16, _narrow(result.handle)) if i < len(narrow) and narrow[i] else result
            for i, result in enumerate(results)
        )

    return widened


def _tensor(like: Any, dtype: Any, handle: Any) -> Any:
    import triton.language as tl

    if handle is like.handle:
        return like
    return tl.core.tensor(handle, tl.block_type(dtype, list(like.shape)) if like.type.is_block() else dtype)


def _is_narrow(handle: Any) -> bool:
    import triton.language as tl

    return bool(getattr(getattr(handle, "dtype", None), "scalar", None) == tl.bfloat16)


def _wide(handle: Any) -> Any:
    import numpy as np
    import triton.language as tl
    from triton.runtime.interpreter import TensorHandle, _convert_float

    if not _is_narrow(handle):
        return handle
    return TensorHandle(_convert_float(handle.data, tl.bfloat16, tl.float32, None).view(np.float32), tl.float32)


def _narrow(handle: Any) -> Any:
    import numpy as np
    import triton.language as tl
    from triton.runtime.interpreter import TensorHandle

    bits = np.ascontiguousarray(handle.data, dtype=np.float32).view(np.uint32).astype(np.uint64)
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)  # to nearest, ties to even
    is_nan = np.isnan(handle.data)
    return TensorHandle(np.where(is_nan, np.uint16(0x7FC0), rounded), tl.bfloat16)
