"""Subtractions in a golden's source: the places where accuracy is lost.

The source is read, not run. Only arithmetic on tensors counts: sizes, indices and constants are told apart by how
they are made (`x.shape[0]`, `len(...)`, `range(...)`, literals).
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeGuard

from pypto_op.documents.golden import reachable
from pypto_op.documents.reading import read_text
from pypto_op.documents.reductions import COMPARES, MATMULS, REDUCES, TURNS
from pypto_op.errors import ContractError
from pypto_op.python_text import Function, assignments, functions_in, names_in, parameters, parse

_SUBTRACTS = frozenset(
    {"sub", "sub_", "subtract", "subtract_", "rsub", "diff", "lerp", "cdist", "pdist", "dist", "cov", "corrcoef"}
    | {"var", "std", "var_mean", "std_mean", "layer_norm", "batch_norm", "group_norm", "instance_norm"}
    | {"mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"}
)
"""Functions that subtract tensors, at times inside: a variance subtracts the mean."""
_WEIGHTED = {"add": "alpha", "add_": "alpha", "addcmul": "value", "addcmul_": "value", "addcdiv": "value", "addcdiv_": "value"}
"""Sums with a factor, and its keyword: with a negative one they subtract."""
_SIZES = frozenset({"len", "range", "int", "size", "dim", "numel", "ndim", "min", "max", "enumerate"})
_LONGEST = 160
_FEW_STEPS = 64
_COUNTING = (ast.Name, ast.Constant, ast.BinOp, ast.Add, ast.Sub, ast.Load)
"""What a number of iterations is made of; a factor may make many of a few."""


@dataclass(frozen=True)
class Subtraction:
    """One subtractive accumulation."""

    expression: str  # as the golden writes it
    line: int  # of the file
    inputs: tuple[str, ...]  # the golden's parameters that its operands are computed from


@dataclass(frozen=True)
class Scan:
    """What a golden does that hurts."""

    subtractions: tuple[Subtraction, ...]  # each pair once, in order of first occurrence


def scan(path: Path, function: str) -> Scan:
    """Read the golden function of a file and the helpers of the same file that it calls.

    Raises:
        ContractError: the file cannot be read, does not parse, or lacks the function.
    """
    functions = functions_of(path, function)
    subtractions: dict[str, Subtraction] = {}
    for reached in reachable(functions[function], functions):
        plain, origins = plain_names(reached), origins_of(reached)
        for node in ast.walk(reached):
            if _subtracts(node, plain):
                found = _described(node, origins, reached is functions[function])
                subtractions.setdefault(found.expression, found)
    return Scan(tuple(sorted(subtractions.values(), key=lambda s: s.line)))


def has_loops(path: Path, function: str) -> bool:
    """Whether the golden function of a file, or a helper that it calls, has a loop over a size: over tokens it takes their time.

    None is one of few steps, however long the axes are: over words, over `range(3)`, or over a number of iterations that is a
    parameter of the golden function with a default of up to 64.

    Raises:
        ContractError: see `scan`.
    """
    functions = functions_of(path, function)
    own = functions[function]
    loops = [
        (each, node) for each in reachable(own, functions) for node in ast.walk(each) if isinstance(node, ast.For | ast.While)
    ]
    return any(isinstance(node, ast.While) or not _has_few_steps(node, own if each is own else None) for each, node in loops)


def _has_few_steps(loop: ast.For, own: Function | None) -> bool:
    """Whether the number of a loop's steps is written down; `own`: the golden function, where the loop is in it."""
    if isinstance(loop.iter, ast.Tuple | ast.List):
        return True
    if not (isinstance(loop.iter, ast.Call) and isinstance(loop.iter.func, ast.Name) and loop.iter.func.id == "range"):
        return False
    parts = [node for part in loop.iter.args for node in ast.walk(part)]
    plain = all(isinstance(node, _COUNTING) and getattr(node, "value", 0) in range(-1, _FEW_STEPS + 1) for node in parts)
    return plain and names_in(*loop.iter.args) <= (_small_counts(own) if own is not None else set())


def _small_counts(function: Function) -> set[str]:
    """Return the parameters of a function whose default is a whole number up to `_FEW_STEPS`."""
    words = function.args
    usual = zip(words.args[len(words.args) - len(words.defaults) :], words.defaults, strict=True)
    named = [*usual, *((word, value) for word, value in zip(words.kwonlyargs, words.kw_defaults, strict=True) if value)]
    numbers = {word.arg: value.value for word, value in named if isinstance(value, ast.Constant)}
    changed = {node.id for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    return {name for name, value in numbers.items() if type(value) is int and value <= _FEW_STEPS} - changed


def shares(path: Path, function: str) -> frozenset[str]:
    """Return the names that the golden function of a file, or a helper that it calls, takes from 1 or hands to `lerp`.

    With such a name comes the input that it is a cast or a view of. `where(flag, a, 1 - a)` mixes nothing: it takes one or the
    other.

    Raises:
        ContractError: see `scan`.
    """
    functions = functions_of(path, function)
    found: set[str] = set()
    nodes = [node for reached in reachable(functions[function], functions) for node in ast.walk(reached)]
    taken = {id(part) for node in nodes if isinstance(node, ast.Call) and called(node) == "where" for part in node.args}
    for node in (node for node in nodes if id(node) not in taken):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub) and isinstance(node.left, ast.Constant):
            parts: list[ast.expr] = [node.right] if node.left.value == 1 else []
        else:
            parts = [*node.args, *(word.value for word in node.keywords)] if _is_lerp(node) else []
        found |= {part.id for part in parts if isinstance(part, ast.Name)}
    sources = dict(_sources(functions[function]))
    while more := {sources[name] for name in found if sources.get(name)} - found:
        found |= more
    return frozenset(found)


def _sources(function: Function) -> Iterator[tuple[str, str]]:
    """Yield each name that is assigned to, and the name that it is a cast or a view of, or ""."""
    for targets, value in assignments(function):
        for target in targets:
            pairs = [(target, value)]
            if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
                pairs = list(zip(target.elts, value.elts, strict=True))
            yield from ((name.id, _source(one)) for name, one in pairs if isinstance(name, ast.Name))


def _source(value: ast.expr) -> str:
    """Return the name that a chain of methods and subscripts begins with, as `x` in `x.float()[:, None]`, or ""."""
    while isinstance(value, ast.Attribute | ast.Subscript | ast.Call):
        value = value.func if isinstance(value, ast.Call) else value.value
    return value.id if isinstance(value, ast.Name) else ""


def compared_names(path: Path, function: str) -> frozenset[str]:
    """Return the names that the golden function of a file, or a helper that it calls, compares something with.

    Raises:
        ContractError: see `scan`.
    """
    compared = (node for node in _nodes(path, function) if isinstance(node, ast.Compare) or _is_called(node, COMPARES))
    return frozenset(name for node in compared for name in names_in(node))


def turning_parameters(path: Path, function: str) -> frozenset[str]:
    """Return the parameters of the golden function of a file that decide where its value turns: at what it compares or clamps.

    Raises:
        ContractError: see `scan`.
    """
    own = functions_of(path, function)[function]
    origins = origins_of(own)
    turns = (node for node in ast.walk(own) if isinstance(node, ast.Compare) or _is_called(node, COMPARES | TURNS))
    return frozenset(origin for node in turns for name in names_in(node) for origin in origins.get(name, ()))


def calls(path: Path, function: str, names: Collection[str]) -> bool:
    """Whether the golden function of a file, or a helper that it calls, calls one of torch's functions (`reductions`).

    Raises:
        ContractError: see `scan`.
    """
    return any(_is_called(node, names) for node in _nodes(path, function))


def multiplies_matrices(path: Path, function: str) -> bool:
    """Whether the golden function of a file, or a helper that it calls, multiplies matrices.

    Raises:
        ContractError: see `scan`.
    """
    names = {*MATMULS, "einsum"}
    return any(_is_called(node, names) or isinstance(node, ast.MatMult) for node in _nodes(path, function))


def reduces_whole(path: Path, function: str) -> bool:
    """Whether the golden function of a file, or a helper that it calls, makes one number of a whole tensor: `x.mean()`.

    Raises:
        ContractError: see `scan`.
    """
    made = [node for node in _nodes(path, function) if isinstance(node, ast.Call) and _is_called(node, REDUCES)]
    of_all = [node for node in made if not {word.arg for word in node.keywords} & {"dim", "axis"}]
    return any(len(node.args) == ("torch" in names_in(node.func)) for node in of_all)


def _nodes(path: Path, function: str) -> Iterator[ast.AST]:
    """Yield all nodes of the golden function and of the helpers that it calls."""
    functions = functions_of(path, function)
    for reached in reachable(functions[function], functions):
        yield from ast.walk(reached)


def _is_called(node: ast.AST, names: Collection[str]) -> bool:
    """Whether a node calls one of torch's functions; a bare name is the host's own `max`."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and called(node) in names


def compared_numbers(path: Path, function: str) -> frozenset[int]:
    """Return the whole numbers that a golden's file compares something with, written there or by name: a window of 256.

    Raises:
        ContractError: see `scan`.
    """
    tree = parse(read_text(path), path)
    constants = {target.id: value for targets, value in assignments(tree) for target in targets if isinstance(target, ast.Name)}
    compared = [node for own in functions_of(path, function).values() for node in ast.walk(own) if isinstance(node, ast.Compare)]
    sides = [side for node in compared for side in (node.left, *node.comparators)]
    values = [constants.get(side.id) if isinstance(side, ast.Name) else side for side in sides]
    return frozenset(value.value for value in values if isinstance(value, ast.Constant) and type(value.value) is int)


def _is_lerp(node: ast.AST) -> TypeGuard[ast.Call]:
    return isinstance(node, ast.Call) and called(node) in ("lerp", "lerp_")


def functions_of(path: Path, function: str) -> dict[str, Function]:
    """Return the functions of a golden's file by name.

    Raises:
        ContractError: the file cannot be read, does not parse, or lacks the function.
    """
    functions = functions_in(parse(read_text(path), path))
    if function not in functions:
        raise ContractError(f"has no function {function}", file=path, remedy=f"define {function}(...)")
    return functions


def _subtracts(node: ast.AST, plain: set[str]) -> bool:
    """Whether a node subtracts one tensor from another, or does so inside a reduction such as a variance."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
        return not is_plain(node.left, plain) and not is_plain(node.right, plain)
    if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Sub):
        return not is_plain(node.target, plain) and not is_plain(node.value, plain)
    return isinstance(node, ast.Call) and (called(node) in _SUBTRACTS or _has_negative_weight(node))


def _has_negative_weight(call: ast.Call) -> bool:
    word = _WEIGHTED.get(called(call))
    factors = [keyword.value for keyword in call.keywords if keyword.arg == word]
    return any(isinstance(factor, ast.UnaryOp) and isinstance(factor.op, ast.USub) for factor in factors)


def _described(node: ast.AST, origins: dict[str, set[str]], is_golden: bool) -> Subtraction:
    """Return the finding; in a helper the golden's own parameters are not followed, so none are named."""
    shown = f"{_shown(node.target)} - {_shown(node.value)}" if isinstance(node, ast.AugAssign) else _shown(node)
    inputs = sorted({origin for name in names_in(node) for origin in origins.get(name, ())}) if is_golden else []
    return Subtraction(shown[:_LONGEST], getattr(node, "lineno", 0), tuple(inputs))


def origins_of(function: Function, read: Callable[[ast.AST], Iterable[str]] = names_in) -> dict[str, set[str]]:
    """Return name -> the function's parameters that its value depends on, loops included.

    Args:
        read: the names of an expression that count.
    """
    origins = {name: {name} for name in parameters(function)}
    while True:
        before = sum(map(len, origins.values()))
        for targets, value in assignments(function):
            used = {origin for name in read(value) for origin in origins.get(name, ())}
            for name in names_in(*targets):
                origins.setdefault(name, set()).update(used)
        if sum(map(len, origins.values())) == before:
            return origins


def called(call: ast.Call) -> str:
    """Return the last word of what is called, "" for the host's own arithmetic."""
    if isinstance(call.func, ast.Attribute):
        base = call.func.value
        return "" if isinstance(base, ast.Name) and base.id in ("math", "np", "numpy") else call.func.attr
    return call.func.id if isinstance(call.func, ast.Name) else ""


def plain_names(function: Function) -> set[str]:
    """Return the names that hold sizes, indices or constants; to a fixed point, since they depend on one another."""
    plain: set[str] = set()
    while True:
        before = len(plain)
        for node in ast.walk(function):
            if isinstance(node, ast.Assign) and is_plain(node.value, plain):
                plain |= names_in(*node.targets)
            elif isinstance(node, (ast.For, ast.comprehension)) and is_plain(node.iter, plain):
                plain |= names_in(node.target)
        if len(plain) == before:
            return plain


def is_plain(node: ast.AST, plain: set[str]) -> bool:
    """Whether an expression is a number of the host rather than a tensor."""
    if isinstance(node, ast.Constant):
        return True
    if isinstance(node, ast.Name):
        return node.id in plain
    if isinstance(node, ast.Attribute):
        is_math = isinstance(node.value, ast.Name) and node.value.id in ("math", "torch", "np")
        return is_math or node.attr in ("shape", "ndim", "dtype", "device")
    if isinstance(node, ast.Subscript):
        return is_plain(node.value, plain)
    if isinstance(node, ast.UnaryOp):
        return is_plain(node.operand, plain)
    if isinstance(node, ast.BinOp):
        return is_plain(node.left, plain) and is_plain(node.right, plain)
    if isinstance(node, (ast.Tuple, ast.List)):
        return all(is_plain(item, plain) for item in node.elts)
    if isinstance(node, ast.IfExp):
        return is_plain(node.body, plain) and is_plain(node.orelse, plain)
    if isinstance(node, ast.Call):
        function = node.func
        if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) and function.value.id == "math":
            return True
        named = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        if named in ("min", "max"):  # of sizes, not torch's
            return isinstance(function, ast.Name) and all(is_plain(argument, plain) for argument in node.args)
        return named in _SIZES
    return False


def _shown(node: ast.AST) -> str:
    return " ".join(ast.unparse(node).split())[:_LONGEST]
