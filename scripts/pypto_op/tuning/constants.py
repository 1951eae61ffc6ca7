"""Rows per step: whole numbers with a name that say how much a step of a loop takes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

import libcst as cst

from pypto_op.mutation.program import Function, Program, below, called
from pypto_op.tuning.choice import Choice, Kind
from pypto_op.tuning.rewriting import Edits, expression
from pypto_op.tuning.walking import own_nodes

_LEAST, _MOST = 4, 8192
_FACTORS = (2, 4, 8)
_SHAPING = frozenset({"view", "tensor", "reshape", "loop", "zeros", "full", "assemble", "expand_clone"})
Finding = tuple[Choice, Callable[[Edits, str], None]]


def key_of(name: str, function: str = "") -> str:
    """Return the key of the choice about a constant: of the module, or of a function."""
    return f"rows {function}.{name}" if function else f"rows {name}"


def find(program: Program) -> Iterator[Finding]:
    """Yield a choice for each named whole number that shapes a view, a state or a loop of the kernel."""
    device = [function for function in program.functions.values() if function.on_device]
    shaping = {name for function in device for node in own_nodes(function) for name in _shaping_name(node)}
    for statement in program.module.body:
        named = assigned_number(statement)
        if named is not None and named[0] in shaping:
            yield _finding(program, named, statement, device, "")
    for function in device:
        own = {name for node in own_nodes(function) for name in _shaping_name(node)}
        for inner in own_nodes(function):
            named = assigned_number(inner)
            if named is not None and named[0] in own:
                yield _finding(program, named, inner, [function], function.name)


def _finding(
    program: Program, named: tuple[str, int, cst.Integer], statement: cst.CSTNode, users: list[Function], function: str
) -> Finding:
    name, value, node = named
    followers = [(literal, 0) for user in users for literal in _followers(user, name, value)]
    followers += [(literal, 1) for literal in _exponents(program, name, value)]

    def edit(edits: Edits, option: str) -> None:
        edits.changes[node] = expression(option)
        for literal, exponent in followers:
            if exponent:
                edits.changes[literal] = expression(str(int(option).bit_length() - 1))
            else:
                edits.changes[literal] = expression(f"{option}.0" if isinstance(literal, cst.Float) else option)

    sizes = [value // factor for factor in _FACTORS if value % factor == 0] + [value * factor for factor in _FACTORS]
    options = [value, *sorted(size for size in sizes if _LEAST <= size <= _MOST)]
    choice = Choice(key_of(name, function), Kind.ROWS, program.line(statement), tuple(map(str, options)))
    return choice, edit


def assigned_number(statement: cst.CSTNode) -> tuple[str, int, cst.Integer] | None:
    """Return name, value and node of `NAME = 64`, None for any other statement."""
    match statement:
        case cst.SimpleStatementLine(body=[cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))], value=value)]):
            if isinstance(value, cst.Integer) and _LEAST <= value.evaluated_value <= _MOST:
                return name, value.evaluated_value, value
    return None


def values(module: cst.Module, taken: Mapping[str, str]) -> dict[str, int]:
    """Return the module's named whole numbers, where a candidate changes them with what it says.

    Args:
        taken: key of each choice -> what the candidate takes.
    """
    found = {}
    for statement in module.body:
        named = assigned_number(statement)
        if named is not None:
            found[named[0]] = int(taken.get(key_of(named[0]), named[1]))
    return found


def _shaping_name(node: cst.CSTNode) -> Iterator[str]:
    """Yield names that stand in the arguments of a call that shapes a tensor or a loop."""
    if isinstance(node, cst.Call) and called(node) in _SHAPING:
        for argument in node.args:
            yield from (inner.value for inner in below(argument.value) if isinstance(inner, cst.Name))


def _followers(function: Function, name: str, value: int) -> Iterator[cst.Integer | cst.Float]:
    """Yield numbers that mean the constant without naming it: `pypto.arange` takes literals only.

    They follow it in a function that names the constant, or that documents its shapes with it.
    """
    if not any(isinstance(node, (cst.Name, cst.SimpleString)) and name in node.value for node in below(function.node)):
        return
    for node in below(function.node.body):
        if isinstance(node, cst.Call) and called(node) == "arange":
            for argument in node.args:
                literal = argument.value
                if isinstance(literal, (cst.Integer, cst.Float)) and literal.evaluated_value == value:
                    yield literal


def _exponents(program: Program, name: str, value: int) -> Iterator[cst.Integer]:
    """Yield the number of `LEVELS = 6` where the file says that NAME = 2 ** LEVELS."""
    for statement in program.module.body:
        match statement:
            case cst.SimpleStatementLine(
                body=[cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=other))], value=cst.Integer() as number)]
            ):
                said = re.search(rf"\b{re.escape(name)}\s*=+\s*2\s*\*\*\s*{re.escape(other)}\b", program.source)
                if said and 2**number.evaluated_value == value:
                    yield number
