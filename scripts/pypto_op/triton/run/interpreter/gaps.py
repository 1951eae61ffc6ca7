"""What Triton's interpreter does otherwise than its compiler, mended: right kernels would be refused for it.

Seen in triton 3.7.1:

- a float argument stays a Python float, which has no `.to`; compiled, it is a float32 scalar;
- `True` and `False` (`bias is not None`) are held in 32 bits, which the interpreter itself refuses; compiled, they are an int1;
- an annotation that says constexpr in other words (`"tl.constexpr"` below `from __future__ import annotations`) is not known;
- `a and b` on blocks yields `b`, since every block counts as true, and `not a` is False; compiled, they are `a & b` and the
  opposite of `a`, element by element;
- a dtype that a jitted function is given is the plain one, which has no `.value`; compiled, it is a constexpr;
- a constexpr beside a block (`SCALE * x`, where `SCALE` is a constexpr of the module) yields a constexpr; compiled, a block.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

_BESIDE_BLOCKS = (
    "add", "sub", "mul", "truediv", "floordiv", "mod", "and", "or", "xor", "lshift", "rshift", "lt", "le", "gt", "ge", "eq", "ne",
)  # fmt: skip
_LOGIC = {ast.And: "logical_and", ast.Or: "logical_or"}


def mend() -> None:
    """Replace the interpreter's functions in this process."""
    import triton.language as tl
    from triton.runtime import interpreter

    convert, start = interpreter._implicit_cvt, interpreter.GridExecutor.__init__

    scalars = {float: (np.float32, tl.float32), bool: (np.bool_, tl.int1)}

    def converted(arg: Any) -> Any:
        if type(arg) not in scalars:
            return convert(arg)
        held, dtype = scalars[type(arg)]
        return tl.core.tensor(interpreter.TensorHandle(np.array([arg], dtype=held), dtype), dtype)

    def started(self: Any, fn: Any, *args: Any, **kwargs: Any) -> None:
        start(self, fn, *args, **kwargs)
        self.constexprs = [name for name in self.arg_names if "constexpr" in str(fn.__annotations__.get(name))]

    tl.dtype.value = property(lambda dtype: dtype)
    for name in _BESIDE_BLOCKS:
        setattr(tl.constexpr, f"__{name}__", _unwrapping(getattr(tl.constexpr, f"__{name}__")))
    interpreter._implicit_cvt = converted
    interpreter.GridExecutor.__init__ = started
    interpreter.ASTTransformer.visit_BoolOp = _visit_logic
    interpreter.ASTTransformer.visit_UnaryOp = _visit_not
    assign = interpreter.ASTTransformer.visit_Assign

    def assigned(transformer: Any, node: ast.Assign) -> Any:
        node.value = transformer.visit(node.value)  # Triton's own method leaves out what is assigned
        return assign(transformer, node)

    interpreter.ASTTransformer.visit_Assign = assigned
    interpreter.interpreter_semantic.__class__.pypto_op_logic = staticmethod(_logic)
    interpreter.interpreter_semantic.__class__.pypto_op_not = staticmethod(_not)


def _unwrapping(operator: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Return an operator of `tl.constexpr` that returns the block which it made, and not a constexpr that holds it."""
    import triton.language as tl

    @functools.wraps(operator)
    def applied(one: Any, other: Any) -> Any:
        found = operator(one, other)
        return found.value if isinstance(found, tl.constexpr) and isinstance(found.value, tl.core.tensor) else found

    return applied


def _visit_logic(transformer: Any, node: ast.BoolOp) -> ast.expr:
    """Turn `a and b` into a call that looks at what `a` is before it asks for `b`."""
    transformer.generic_visit(node)
    name = ast.Attribute(ast.Name("interpreter_semantic", ast.Load()), "pypto_op_logic", ast.Load())
    found = node.values[0]
    for value in node.values[1:]:
        no_arguments = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
        found = ast.Call(name, [ast.Constant(_LOGIC[type(node.op)]), found, ast.Lambda(no_arguments, value)], [])
    return found


def _visit_not(transformer: Any, node: ast.UnaryOp) -> ast.expr:
    """Turn `not a` into a call that looks at what `a` is."""
    transformer.generic_visit(node)
    if not isinstance(node.op, ast.Not):
        return node
    name = ast.Attribute(ast.Name("interpreter_semantic", ast.Load()), "pypto_op_not", ast.Load())
    return ast.Call(name, [node.operand], [])


def _is_block(value: Any) -> bool:
    import triton.language as tl

    return isinstance(value, tl.core.tensor) and bool(value.type.is_block())


def _not(value: Any) -> Any:
    """Return `not value`; element by element where it is a block."""
    from triton.runtime.interpreter import interpreter_semantic

    return interpreter_semantic.not_(value) if _is_block(value) else not value


def _logic(name: str, left: Any, right: Any) -> Any:
    """Return `left and right()`, or `left or right()`; element by element where either is a block."""
    from triton.runtime.interpreter import interpreter_semantic

    if not _is_block(left) and bool(left) == (name == "logical_or"):
        return left  # a scalar decides alone, and what stands behind it is not asked for
    other = right()
    if not _is_block(left) and not _is_block(other):
        return other
    return getattr(interpreter_semantic, name)(interpreter_semantic.to_tensor(left), interpreter_semantic.to_tensor(other))
