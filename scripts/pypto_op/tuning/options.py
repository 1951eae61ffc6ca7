"""Choices of the decorator and of casts: pass options that merge work, and casts that a product does not need."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import libcst as cst

from pypto_op.mutation.program import Program, argument, below, called
from pypto_op.tuning.choice import Choice, Kind
from pypto_op.tuning.rewriting import Edits, keyword, several
from pypto_op.tuning.walking import own_nodes

NONE, KEPT, DROPPED = "none", "kept", "dropped"
_CUBE = ("cube_nbuffer_setting", "cube_l1_reuse_setting")
_VECTOR = "vec_nbuffer_setting"
_SETTINGS = ("{-1: 2}", "{-1: 4}", "{-1: 8}")
_PASS_OPTIONS = "pass_options"
Finding = tuple[Choice, Callable[[Edits, str], None]]


def find(program: Program) -> Iterator[Finding]:
    """Yield the pass options of each jit entry, and casts to float32 that feed a product."""
    products = [
        node
        for function in program.functions.values()
        for node in own_nodes(function)
        if isinstance(node, cst.Call) and called(node) == "matmul"
    ]
    for entry in program.entries:
        for call in jit_calls(entry):
            yield from _pass_options(program, entry, call, (_VECTOR, *_CUBE) if products else (_VECTOR,))
    for number, product in enumerate(products, 1):
        yield from _casts(program, product, number)


def jit_calls(entry: cst.FunctionDef) -> list[cst.Call]:
    """Return the decorators of a jit entry that are calls."""
    calls = [decorator.decorator for decorator in entry.decorators]
    return [call for call in calls if isinstance(call, cst.Call) and called(call) == "jit"]


def _pass_options(program: Program, entry: cst.FunctionDef, call: cst.Call, names: tuple[str, ...]) -> Iterator[Finding]:
    said = _read(call)
    if said is None:
        return
    for name in names:
        now = said.get(name, NONE)
        options = (now, *(text for text in (NONE, *_SETTINGS) if text != now))
        choice = Choice(f"{name} of {entry.name.value}", Kind.PASS_OPTION, program.line(call), options)
        yield choice, _setting(call, name)


def _setting(call: cst.Call, name: str) -> Callable[[Edits, str], None]:
    def edit(edits: Edits, option: str) -> None:
        change = _with_option(name, option)
        edits.changes[call] = several(edits.changes.get(call), change)

    return edit


def _with_option(name: str, option: str) -> Callable[[cst.CSTNode], cst.CSTNode]:
    def change(updated: cst.CSTNode) -> cst.CSTNode:
        assert isinstance(updated, cst.Call)
        now = _read(updated) or {}
        now.pop(name, None)
        if option != NONE:
            now[name] = option
        text = "{" + ", ".join(f'"{key}": {value}' for key, value in now.items()) + "}"
        return keyword(_PASS_OPTIONS, text if now else "")(updated)

    return change


def _read(call: cst.Call) -> dict[str, str] | None:
    """Return the pass options that a decorator names, as text; None where it does not spell all of them out.

    Options that a name or another dict holds would be lost by a candidate that writes its own.
    """
    if any(arg.star == "**" for arg in call.args):
        return None
    said = next((arg.value for arg in call.args if arg.keyword is not None and arg.keyword.value == _PASS_OPTIONS), cst.Dict([]))
    found = {}
    for element in said.elements if isinstance(said, cst.Dict) else [None]:
        if not isinstance(element, cst.DictElement) or not isinstance(element.key, cst.SimpleString):
            return None
        found[str(element.key.evaluated_value)] = cst.Module([]).code_for_node(element.value)
    return found


def _casts(program: Program, product: cst.Call, number: int) -> Iterator[Finding]:
    """Yield whether the operands of a product are widened first; the cube unit sums 16-bit elements in float32 anyhow."""
    operands = [argument(product, 0, "input"), argument(product, 1, "mat2")]
    casts = [one.value for one in operands if one is not None and isinstance(one.value, cst.Call) and _widens(one.value)]
    if len(casts) == 2:
        choice = Choice(f"casts of product {number}", Kind.CAST, program.line(product), (KEPT, DROPPED))

        def edit(edits: Edits, option: str) -> None:
            for cast in casts:
                edits.changes[cast] = _operand

        yield choice, edit


def _widens(call: cst.Call) -> bool:
    target = argument(call, 1, "dtype")
    return (
        called(call) == "cast"
        and target is not None
        and any(isinstance(node, cst.Name) and node.value == "DT_FP32" for node in below(target.value))
    )


def _operand(updated: cst.CSTNode) -> cst.CSTNode:
    assert isinstance(updated, cst.Call)
    return updated.args[0].value
