"""Faults that are planted into Triton kernels: one place of one jitted function at a time, by text."""

from __future__ import annotations

import ast
import random
from collections.abc import Iterator
from dataclasses import dataclass

_BINARY: dict[type[ast.operator], str] = {
    ast.Add: "-", ast.Sub: "+", ast.Mult: "+", ast.Div: "*", ast.FloorDiv: "*", ast.Mod: "//",
}  # fmt: skip
_COMPARED: dict[type[ast.cmpop], str] = {ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "=="}
_CALLED = {"max": "min", "min": "max", "sum": "max", "exp": "exp2", "maximum": "minimum", "minimum": "maximum", "sqrt": "exp",
           "rsqrt": "sqrt", "log": "log2", "sigmoid": "exp", "abs": "exp", "sin": "cos", "cos": "sin", "cdiv": "max",
           "cumsum": "exp", "argmax": "argmin"}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """One fault.

    Attributes:
        kind: what was changed.
        line: where, counted from 1.
        before, after: the text of the expression.
        text: the whole file with the fault.
    """

    kind: str
    line: int
    before: str
    after: str
    text: str


def planted(text: str, most: int, seed: int, skip: tuple[str, ...]) -> list[Mutant]:
    """Return at most `most` mutants of a file, drawn so that kinds take turns; functions with a word of `skip` stay."""
    found = [mutant for mutant in _all(text, skip) if _parses(mutant.text)]
    drawn = random.Random(seed)
    drawn.shuffle(found)
    kinds: dict[str, list[Mutant]] = {}
    for mutant in found:
        kinds.setdefault(mutant.kind, []).append(mutant)
    chosen: list[Mutant] = []
    while len(chosen) < most and any(kinds.values()):
        for group in kinds.values():
            if group and len(chosen) < most:
                chosen.append(group.pop())
    return chosen


def _all(text: str, skip: tuple[str, ...]) -> Iterator[Mutant]:
    lines = [line.encode() for line in text.split("\n")]
    for function in ast.walk(ast.parse(text)):
        if not isinstance(function, ast.FunctionDef) or any(word in function.name for word in skip):
            continue
        if not any("jit" in ast.unparse(decorator) for decorator in function.decorator_list):
            continue
        for statement in function.body:
            for node in ast.walk(statement):
                if isinstance(node, ast.expr) and node.lineno == node.end_lineno:
                    for kind, after in _changes(node):
                        row = lines[node.lineno - 1]
                        changed = row[: node.col_offset] + after.encode() + row[node.end_col_offset :]
                        whole = b"\n".join([*lines[: node.lineno - 1], changed, *lines[node.lineno :]]).decode()
                        yield Mutant(kind, node.lineno, ast.unparse(node), after, whole)


def _changes(node: ast.expr) -> Iterator[tuple[str, str]]:
    if isinstance(node, ast.BinOp):
        left, right = ast.unparse(node.left), ast.unparse(node.right)
        if type(node.op) in _BINARY:
            yield "operator", f"(({left}) {_BINARY[type(node.op)]} ({right}))"
        if isinstance(node.op, (ast.Sub, ast.Mult, ast.Div)):
            yield "operand dropped", f"({left})"
    elif isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _COMPARED:
        yield "comparison", f"({ast.unparse(node.left)} {_COMPARED[type(node.ops[0])]} {ast.unparse(node.comparators[0])})"
    elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
        yield "constant", repr(node.value + 1)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        yield from _calls(node, node.func)


def _calls(node: ast.Call, function: ast.Attribute) -> Iterator[tuple[str, str]]:
    given = [ast.unparse(part) for part in (*node.args, *node.keywords)]
    owner = ast.unparse(function.value)
    if function.attr in _CALLED and owner in ("tl", "tl.math", "language"):
        yield "function", f"{owner}.{_CALLED[function.attr]}({', '.join(given)})"
    if function.attr == "where" and len(node.args) == 3:
        yield "function", f"{owner}.where({given[0]}, {given[2]}, {given[1]})"
    if function.attr == "load" and any(part.startswith("other=") for part in given):
        yield "padding", f"{owner}.load({', '.join(part for part in given if not part.startswith('other='))}, other=1.0)"
    if function.attr == "to" and len(node.args) == 1:
        yield "cast dropped", f"({owner})"


def _parses(text: str) -> bool:
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True
