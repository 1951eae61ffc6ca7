"""What the text of a kernel's file tells about its states (`pypto.tensor`): which is read before anything was written to it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pypto_op.diagnose.kernel_loops import Loop


def read_before_written(text: str, loop: Loop | None) -> int:
    """Return the line that reads a state whose first use, in the order of the text, is a read; 0 for none.

    A function of the file that a state is handed to counts as what it does first with that parameter.

    Args:
        text: of the kernel's file; it must parse.
        loop: only uses within it count; None: within the function that makes the state.
    """
    tree = ast.parse(text)
    functions = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    found = []
    for name, function in _states(tree):
        first, last = (loop.first, loop.last) if loop is not None else (function.lineno, function.end_lineno or 0)
        uses = [use for use in _uses(tree, name, functions) if first <= use[0] <= last]
        if uses and not min(uses)[1]:
            found.append(min(uses)[0])
    return min(found, default=0)


def _states(tree: ast.AST) -> Iterator[tuple[str, ast.FunctionDef]]:
    for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
        for node in ast.walk(function):
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and _is_tensor(node.value.func):
                yield from ((target.id, function) for target in node.targets if isinstance(target, ast.Name))


def _is_tensor(function: ast.expr) -> bool:
    return isinstance(function, ast.Attribute) and function.attr == "tensor"


def _uses(tree: ast.AST, name: str, functions: dict[str, ast.FunctionDef]) -> Iterator[tuple[int, bool]]:
    """Yield line and whether it writes, of every use of a name; what a statement reads comes before what it writes."""
    handed: set[ast.expr] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in functions:
            for parameter, given in zip(functions[node.func.id].args.args, node.args, strict=False):
                if isinstance(given, ast.Name) and given.id == name:
                    handed.add(given)
                    inside = list(_uses(functions[node.func.id], parameter.arg, {}))
                    yield node.lineno, bool(inside) and min(inside)[1]
    written = {node.value for node in ast.walk(tree) if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load) and node not in handed:
            yield node.lineno, node in written
