"""Faults of precision: narrow accumulators, missing or misplaced casts, the wrong rounding, the wrong output dtype."""

from __future__ import annotations

from collections.abc import Iterable

import libcst as cst

from pypto_op.mutation.operators.base import Edit, Operator, expression
from pypto_op.mutation.program import Site, argument, called

_ACCUMULATES = {"tensor": (1, "dtype"), "matmul": (2, "out_dtype"), "full": (2, "dtype"), "zeros": (9, "dtype")}
_MODES = {"CAST_RINT": ("CAST_TRUNC",), "CAST_NONE": ("CAST_TRUNC",), "CAST_TRUNC": ("CAST_RINT",), "CAST_ROUND": ("CAST_TRUNC",)}
_COMPUTES = frozenset({"exp", "sum", "matmul", "rsqrt", "sqrt", "amax", "log", "mul", "add", "sub", "div"})


def accumulator(site: Site) -> Iterable[Edit]:
    """A float32 accumulator is 16 bits wide."""
    if not isinstance(site.node, cst.Call) or called(site.node) not in _ACCUMULATES or not site.function.on_device:
        return
    found = argument(site.node, *_ACCUMULATES[called(site.node)])
    match found:
        case cst.Arg(value=cst.Attribute(attr=cst.Name(value="DT_FP32")) as dtype):
            for narrow in ("DT_FP16", "DT_BF16"):
                yield dtype, dtype.with_changes(attr=cst.Name(narrow))


def narrowed(site: Site) -> Iterable[Edit]:
    """An intermediate result is rounded to 16 bits on its way."""
    match site.node:
        case cst.Assign(value=value) if site.function.on_device and _is_computed(value):
            if site.program.is_tensor(value, site.function):
                yield value, expression("pypto.cast(pypto.cast({v}, pypto.DT_BF16), pypto.DT_FP32)", v=value)


def _is_computed(value: cst.BaseExpression) -> bool:
    return isinstance(value, cst.BinaryOperation) or (isinstance(value, cst.Call) and called(value) in _COMPUTES)


def missing_cast(site: Site) -> Iterable[Edit]:
    """A widening or narrowing is left out, so that what follows runs in another dtype."""
    match site.node:
        case cst.Call(args=[value, *_]) if called(site.node) == "cast" and site.function.on_device:
            yield site.node, value.value


def cast_mode(site: Site) -> Iterable[Edit]:
    """A cast rounds another way."""
    match site.node:
        case cst.Attribute(attr=cst.Name(value=name)) if name in _MODES:
            for other in _MODES[name]:
                yield site.node, site.node.with_changes(attr=cst.Name(other))


def output_dtype(site: Site) -> Iterable[Edit]:
    """The wrapper returns another dtype."""
    match site.node:
        case cst.Arg(keyword=cst.Name(value="dtype"), value=value) if not site.function.on_device:
            for other in ("float32", "bfloat16"):
                made = expression(f"torch.{other}")
                if not made.deep_equals(value):
                    yield value, made


OPERATORS = (
    Operator("accumulator_dtype", "a float32 accumulator is 16 bits wide", accumulator),
    Operator("narrowed", "an intermediate result is rounded to 16 bits", narrowed),
    Operator("missing_cast", "a cast is left out", missing_cast),
    Operator("cast_mode", "a cast rounds another way", cast_mode),
    Operator("output_dtype", "the output has another dtype", output_dtype),
)
