"""The numbers of a task's text that may be sizes, and the text with other numbers in their places."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pypto_op.errors import ContractError
from pypto_op.triton.intake.folding import folded

_INPUTS = ("get_inputs", "get_init_inputs", "get_input_groups")


@dataclass(frozen=True)
class Site:
    """A whole number in the text.

    Attributes:
        name: what it is called: the variable, the variable and a position, or `get_inputs` and the line.
        value: the number.
        line, start, end: its place: line counted from 1, columns in bytes of UTF-8.
        variable: it is given to variables of the module by itself.
    """

    name: str
    value: int
    line: int
    start: int
    end: int
    variable: bool


def parse(text: str, file: object) -> ast.Module:
    """Return the tree of a task; raise ContractError where it is no Python, or lacks what a task has."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None)
        said = getattr(error, "msg", None) or str(error) or "it cannot be parsed"
        raise ContractError(
            f"not Python: {said}", file=str(file), where=f"line {line}" if line else None, remedy="give a task's .py file"
        ) from None
    names = {name for statement in tree.body for name in _defined(statement)}
    wanted = [] if "Model" in names else ["Model"]
    wanted += [] if names & {"get_inputs", "get_input_groups"} else ["get_inputs"]
    if wanted:
        remedy = "a task defines Model, get_inputs and get_init_inputs at its top level"
        raise ContractError(f"the task has no {' and no '.join(wanted)}", file=str(file), remedy=remedy)
    return tree


def has_constructor_inputs(tree: ast.Module) -> bool:
    """Whether the task says what its constructor is given."""
    return any("get_init_inputs" in _defined(statement) for statement in tree.body)


def sites(tree: ast.Module) -> list[Site]:
    """Return the whole numbers above 1 that are given to variables of the module, or written in the functions of inputs."""
    found: list[Site] = []
    for statement in tree.body:
        if isinstance(statement, (ast.Assign, ast.AnnAssign)) and statement.value is not None:
            targets: list[ast.expr] = [statement.target] if isinstance(statement, ast.AnnAssign) else list(statement.targets)
            found += _of_assignment(targets, statement.value)
        elif isinstance(statement, ast.FunctionDef) and statement.name in _INPUTS:
            for node in _outermost(statement.body):
                found += _site(f"{statement.name}, line {node.lineno}", node)
    return found


def replaced(text: str, changes: Mapping[Site, int], *, remark: bool = False) -> str:
    """Return the text with other numbers; `remark`: the old ones stand at the end of their lines."""
    lines = [line.encode() for line in text.splitlines(keepends=True)]
    for site in sorted(changes, key=lambda site: (site.line, site.start), reverse=True):
        line = lines[site.line - 1]
        lines[site.line - 1] = line[: site.start] + str(changes[site]).encode() + line[site.end :]
    if remark:
        for number in {site.line for site in changes}:
            old = ", ".join(str(site.value) for site in changes if site.line == number)
            body = lines[number - 1].rstrip()
            if not body.endswith(b"\\"):
                lines[number - 1] = body + f"  # public task: {old}\n".encode()
    return b"".join(lines).decode()


def _of_assignment(targets: list[ast.expr], value: ast.expr) -> list[Site]:
    name = " = ".join(ast.unparse(target) for target in targets)
    if isinstance(value, (ast.Tuple, ast.List)):
        parts = [ast.unparse(part) for part in targets[0].elts] if isinstance(targets[0], (ast.Tuple, ast.List)) else []
        names = parts if len(parts) == len(value.elts) else [f"{name}[{i}]" for i in range(len(value.elts))]
        return [site for word, item in zip(names, value.elts, strict=True) for site in _site(word, item, variable=bool(parts))]
    return _site(name, value, variable=True)


def _site(name: str, node: ast.expr, *, variable: bool = False) -> list[Site]:
    value = folded(node)
    if value is None or value < 2 or node.lineno != node.end_lineno or node.end_col_offset is None:
        return []
    return [Site(name, value, node.lineno, node.col_offset, node.end_col_offset, variable)]


def _outermost(body: list[ast.stmt]) -> Iterator[ast.expr]:
    """Yield the largest expressions of constants, not those inside a subscript or an f-string."""
    todo: list[ast.AST] = list(body)
    while todo:
        node = todo.pop()
        if isinstance(node, ast.expr) and folded(node) is not None:
            yield node
        elif not isinstance(node, (ast.Subscript, ast.JoinedStr)):
            todo += list(ast.iter_child_nodes(node))


def _defined(statement: ast.stmt) -> list[str]:
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
        return [statement.name]
    if isinstance(statement, (ast.Import, ast.ImportFrom)):
        return [alias.asname or alias.name for alias in statement.names]
    if isinstance(statement, ast.Assign):
        return [target.id for target in statement.targets if isinstance(target, ast.Name)]
    inner = [part for field in ("body", "orelse", "handlers") for part in getattr(statement, field, [])]
    return [name for part in inner if isinstance(part, ast.stmt) for name in _defined(part)]
