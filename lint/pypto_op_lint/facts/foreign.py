"""What calls of foreign code give: those that look things up by name, import, or hand a function on."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import libcst as cst

from pypto_op_lint.facts import arithmetic
from pypto_op_lint.facts.custom_ops import MAKES_OP
from pypto_op_lint.facts.values import Cls, Const, Func, Instance, Path, Result, Seq, Value

if TYPE_CHECKING:
    from pypto_op_lint.facts.evaluator import Evaluator

PASSES_FUNCTION_ON = {
    "functools.lru_cache", "functools.cache", "functools.wraps", "functools.partial", "torch.compile", "torch.no_grad",
    "torch.inference_mode", "torch.jit.ignore", "builtins.staticmethod", "builtins.classmethod",
    "torch.jit.unused", "torch._dynamo.disable", "torch.compiler.disable", "torch.vmap", "torch.func.vmap",
    "torch.compiler.compile", "torch.compiler.allow_in_graph", "torch._dynamo.allow_in_graph", "torch.enable_grad",
}  # fmt: skip
"""Calls that hand back the function they are given, as far as its behaviour goes."""


def method_called(ev: Evaluator, node: cst.Call) -> tuple[cst.BaseExpression, str] | None:
    """Return object and name of the method that `node` calls; None for other calls.

    `x.exp()`, `getattr(x, "exp")()` and `operator.methodcaller("exp")(x)` call a method.
    """
    func = node.func
    if isinstance(func, cst.Attribute):
        return func.value, func.attr.value
    if isinstance(func, cst.Call) and len(func.args) >= 2 and "builtins.getattr" in ev.paths(func.func):
        wanted = ev.constant(func.args[1].value)
        if wanted is not None and isinstance(wanted.value, str):
            return func.args[0].value, wanted.value
    if isinstance(func, cst.Call) and func.args and node.args and "operator.methodcaller" in ev.paths(func.func):
        wanted = ev.constant(func.args[0].value)
        if wanted is not None and isinstance(wanted.value, str):
            return node.args[0].value, wanted.value
    return None


def called(ev: Evaluator, name: str, node: cst.Call) -> Iterable[Value]:
    """Return what a call of the foreign name `name` may give."""
    plain = [arg.value for arg in node.args if arg.keyword is None and not arg.star]
    if name == "builtins.getattr" and len(plain) >= 2:
        wanted = ev.constant(plain[1])
        if wanted is not None and isinstance(wanted.value, str):
            attributes = [ev.attribute(v, wanted.value) for v in ev.values(plain[0])]
            return [v for group in attributes for v in group]
    if name == "builtins.vars" and plain:
        return [v for base in ev.values(plain[0]) for v in ev.attribute(base, "__dict__")]
    if name in ("importlib.import_module", "builtins.__import__") and plain:
        wanted = ev.constant(plain[0])
        if wanted is not None and isinstance(wanted.value, str):
            return (Path(wanted.value),)
    if name == "pypto.frontend.jit" and plain:
        made = [Func(f.function, f.bound, via_jit=True) for f in ev.functions(plain[0])]
        if made:
            return made
    if name in MAKES_OP and len(plain) > 1:
        return ev.functions(plain[1]) or (Result(name, node),)
    if name in PASSES_FUNCTION_ON and plain:
        bound = len(plain) - 1 if name == "functools.partial" else 0
        made = [Func(f.function, f.bound + bound, f.via_jit) for f in ev.functions(plain[0])]
        callables = (Path, Instance, Cls)
        foreign = [v for v in ev.values(plain[0]) if isinstance(v, callables)] if name != "functools.wraps" else []
        if made or foreign:
            return [*made, *foreign]
    return arithmetic.builtin_call(ev, name, node) or (Result(name, node),)


def _named_tuple(ev: Evaluator, definition: cst.Call, node: cst.Call) -> list[Value]:
    """`Tile = namedtuple("Tile", "rows cols")`, then `Tile(16, cols=64)`; [] when a field is not given or told."""
    listed = ev.values(definition.args[1].value) if len(definition.args) == 2 else ()
    items = [v for value in listed if isinstance(value, Seq) for item in value.items for v in item] or list(listed)
    words = [v.value for v in items if isinstance(v, Const) and isinstance(v.value, str)]
    names = tuple(name for word in words for name in word.replace(",", " ").split())
    given = {a.keyword.value: a.value for a in node.args if a.keyword is not None}
    given.update(zip(names, (a.value for a in node.args if a.keyword is None), strict=False))
    if any(a.star for a in node.args) or not names or len(words) != len(items) or set(given) != set(names):
        return []
    return [Seq("tuple", tuple(ev.values(given[name]) for name in names), names)]


def made_by_call(ev: Evaluator, callee: Result, node: cst.Call) -> Iterable[Value]:
    """`functools.lru_cache(maxsize=None)(f)`, `pypto.frontend.jit(...)(f)`, `Maker()(...)`."""
    if len(node.args) == 1:
        functions = ev.functions(node.args[0].value)
        if functions and callee.callee == "pypto.frontend.jit":
            return [Func(f.function, f.bound, via_jit=True) for f in functions]
        if functions and callee.callee in PASSES_FUNCTION_ON:
            return functions
        wanted = ev.constant(callee.call.args[0].value) if callee.callee == "operator.attrgetter" else None
        if wanted is not None and isinstance(wanted.value, str):
            return [v for base in ev.values(node.args[0].value) for v in ev.attribute(base, wanted.value)]
    if callee.callee == "collections.namedtuple":
        return _named_tuple(ev, callee.call, node) or (Result("collections.namedtuple()", node),)
    return (Result(f"{callee.callee}()", node),)
