"""Read a golden's source, without running it: its signature, and what makes it complex."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from pypto_op.documents.passes import Passes
from pypto_op.documents.reading import read_text
from pypto_op.documents.reductions import MATMULS, REDUCES
from pypto_op.documents.schema import Finding
from pypto_op.documents.state_groups import loop_state_groups
from pypto_op.errors import ContractError
from pypto_op.python_text import Function, functions_in, parameters, parse

_ALSO_BINARY = {"max", "min"}
"""`torch.max(a, b)` compares element by element; `torch.max(a, dim=-1)` reduces."""


@dataclass(frozen=True)
class Signals:
    """What is counted in a golden."""

    effective_lines: int  # statements of the golden and of the helpers that it calls; layout does not matter
    matmuls: int  # matrix products, a loop's body counted once
    # reductions; those that share a pass are one (`passes`), and so is a whole softmax, written out or called
    cross_tile_reduces: int
    state_groups: int  # groups of variables that a loop carries from one round to the next (m, l, o of an online softmax are one)
    function: str = ""  # the function that was analysed

    def replaced(self, *, state_groups: int | None, cross_tile_reduces: int | None) -> Signals:
        """Return the signals with counts that a person gave; None keeps a count."""
        return replace(
            self,
            state_groups=self.state_groups if state_groups is None else state_groups,
            cross_tile_reduces=self.cross_tile_reduces if cross_tile_reduces is None else cross_tile_reduces,
        )

    def as_dict(self) -> dict[str, int | str]:
        """Return the signals under the names of DESIGN.md section 0.1."""
        return {
            "function": self.function,
            "effective_lines": self.effective_lines,
            "loop_carried_state_groups": self.state_groups,
            "matmul_count": self.matmuls,
            "cross_tile_reduce_count": self.cross_tile_reduces,
        }


@dataclass(frozen=True)
class Signature:
    """How a golden is called."""

    parameters: tuple[str, ...]  # the names of its parameters, in order
    returns: int | None  # how many values it returns, or None where that cannot be seen
    needed: frozenset[str] = frozenset()  # parameters that Python gives no value


def check(path: Path | str) -> list[Finding]:
    """Return what keeps a golden from being one: it cannot be parsed, has no golden, or a TODO was left in it."""
    try:
        read_signature(path)
    except ContractError as error:
        return [Finding.of(error)]
    lines = enumerate(read_text(Path(path)).splitlines(), 1)
    return [Finding("", "a TODO was left", number) for number, line in lines if "TODO" in line]


def need_written(path: Path) -> None:
    """Raise ContractError for a golden that cannot be read, or in which a TODO was left, since nothing is derived from that."""
    if left := check(path):
        where = f"line {left[0].line}" if left[0].line else left[0].where or None
        raise ContractError(left[0].problem, file=path, where=where, remedy="write the golden first")


def read_signals(path: Path | str) -> Signals:
    """Count the signals of the golden function of a file.

    Raises:
        ContractError: not readable, not Python, or without a function `*_golden`.
    """
    tree = parse(read_text(path), path)
    functions = functions_in(tree)
    golden = _golden(functions, path)
    counter = _Counter(functions, _from_torch(tree))
    try:
        matmuls, reduces, groups = counter.count(golden, ())
    except RecursionError:
        raise ContractError("not valid Python: nested too deeply", file=path) from None
    lines = sum(_statements(function) for function in reachable(golden, functions))
    return Signals(lines, matmuls, reduces, groups, golden.name)


def read_signature(path: Path | str, function: str | None = None) -> Signature:
    """Return the signature of the golden function of a file, or of `function`.

    Raises:
        ContractError: not readable, not Python, or without that function.
    """
    functions = functions_in(parse(read_text(path), path))
    golden = _golden(functions, path) if function is None else functions.get(function)
    if golden is None:
        raise ContractError(f"has no function {function}", file=path)
    names, args = tuple(parameters(golden, keyword_only=True)), golden.args
    usual = [arg.arg for arg in (*args.posonlyargs, *args.args)]
    valued = {*usual[len(usual) - len(args.defaults) :]}
    valued |= {arg.arg for arg, value in zip(args.kwonlyargs, args.kw_defaults, strict=True) if value is not None}
    return Signature(names, _returns(golden), frozenset(names) - valued)


def _returns(function: Function) -> int | None:
    counts = set()
    for node in _own_nodes(function):
        if isinstance(node, ast.Return) and node.value is not None:
            value = node.value
            if isinstance(value, (ast.Tuple, ast.List)):
                counts.add(None if any(isinstance(e, ast.Starred) for e in value.elts) else len(value.elts))
            else:
                counts.add(1 if isinstance(value, (ast.BinOp, ast.Attribute)) else None)
    return counts.pop() if len(counts) == 1 else None


def _from_torch(tree: ast.Module) -> set[str]:
    """Return the names that a file imports from torch."""
    return {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "torch"
        for alias in node.names
    }


def _golden(functions: dict[str, Function], path: Path | str) -> Function:
    named = functions.get(Path(path).stem)
    candidates = [function for name, function in functions.items() if name.endswith("_golden")]
    if named is not None and named.name.endswith("_golden"):
        return named
    if not candidates:
        raise ContractError("has no function *_golden", file=path, remedy="define <op>_golden(...)")
    return max(candidates, key=_statements)


def _own_nodes(function: Function) -> Iterator[ast.AST]:
    """Yield the nodes of a function's body in source order, docstring apart; nested functions' too."""
    for statement in function.body:
        if not _is_docstring(statement):
            yield from ast.walk(statement)


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _statements(function: Function) -> int:
    ignored = (ast.Pass, ast.Assert, ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal)
    nodes = _own_nodes(function)
    return sum(isinstance(node, ast.stmt) and not isinstance(node, ignored) and not _is_docstring(node) for node in nodes)


def reachable(function: Function, functions: dict[str, Function]) -> list[Function]:
    """Return a function and those of the same file that it calls, the nearest first."""
    reached: dict[str, Function] = {}
    waiting = [function]
    while waiting:
        current = waiting.pop(0)
        if current.name not in reached:
            reached[current.name] = current
            waiting += [functions[name] for name in _called(current, functions)]
    return list(reached.values())


def _called(function: Function, functions: dict[str, Function]) -> list[str]:
    """Return the names of the file's functions that `function` calls, once per call site."""
    return [
        node.func.id
        for node in _own_nodes(function)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in functions
    ]


class _Counter:
    """Counts matmuls, reduces and state groups of a function and, per call site, of the helpers it calls."""

    def __init__(self, functions: dict[str, Function], torch_names: set[str]) -> None:
        self._functions, self._torch_names = functions, torch_names
        self._known: dict[str, tuple[int, int, int]] = {}

    def count(self, function: Function, path: tuple[str, ...]) -> tuple[int, int, int]:
        """Return (matmuls, reduces, state groups); a recursive call counts nothing."""
        if function.name in path:
            return 0, 0, 0
        if function.name not in self._known:
            totals = [self._matmuls(function), self._reduces(function), len(loop_state_groups(function))]
            for name in _called(function, self._functions):
                inner = self.count(self._functions[name], (*path, function.name))
                totals = [total + more for total, more in zip(totals, inner, strict=True)]
            self._known[function.name] = (totals[0], totals[1], totals[2])
        return self._known[function.name]

    def _matmuls(self, function: Function) -> int:
        total = 0
        for node in _own_nodes(function):
            if isinstance(node, (ast.BinOp, ast.AugAssign)) and isinstance(node.op, ast.MatMult):
                total += 1
            elif isinstance(node, ast.Call):
                name = self._torch_call(node)
                if name == "einsum":
                    total += max(0, len(node.args) - 2)
                else:
                    total += MATMULS.get(name, 0)
        return total

    def _reduces(self, function: Function) -> int:
        """Count passes of reductions; the sum that belongs to a written-out softmax is part of its maximum."""
        maxima = False
        exponentials: set[str] = set()
        passes = Passes(lambda call: self._torch_call(call) in REDUCES)
        for statement in _statements_in_order(function):
            calls = [node for node in _expressions(statement) if isinstance(node, ast.Call)]
            names = [self._torch_call(call) for call in calls]
            maxima = maxima or any(name in ("amax", "max") for name in names)
            for call, name in zip(calls, names, strict=True):
                if name in _ALSO_BINARY and _compares_two(call, self._is_torch_module(call)):
                    continue
                if name == "einsum" and len(call.args) == 2:
                    passes.add(call, 1)
                elif name in ("sum", "nansum") and maxima and self._sums_exponential(call, exponentials):
                    exponentials = set()
                    maxima = False
                elif name in REDUCES:
                    passes.add(call, REDUCES[name])
            passes.assigned(statement)
            if isinstance(statement, ast.Assign) and self._is_exponential(statement.value):
                exponentials |= {target.id for target in statement.targets if isinstance(target, ast.Name)}
        return passes.total

    def _torch_call(self, call: ast.Call) -> str:
        """Return the operation that a call names, or "" for calls that are not torch's."""
        function = call.func
        if isinstance(function, ast.Attribute):
            base = function.value
            return "" if isinstance(base, ast.Name) and base.id in ("math", "np", "numpy") else function.attr
        if isinstance(function, ast.Name) and function.id in self._torch_names:
            return function.id
        return ""

    def _is_torch_module(self, call: ast.Call) -> bool:
        function = call.func
        if isinstance(function, ast.Attribute):
            return isinstance(function.value, ast.Name) and function.value.id in ("torch", "F")
        return True

    def _is_exponential(self, node: ast.AST) -> bool:
        return isinstance(node, ast.Call) and self._torch_call(node) in ("exp", "exp2")

    def _sums_exponential(self, call: ast.Call, exponentials: set[str]) -> bool:
        summed = call.args[0] if self._is_torch_module(call) and call.args else None
        if summed is None and isinstance(call.func, ast.Attribute):
            summed = call.func.value
        if isinstance(summed, ast.Name):
            return summed.id in exponentials
        return summed is not None and self._is_exponential(summed)


def _compares_two(call: ast.Call, is_function: bool) -> bool:
    """Whether `max(a, b)` or `a.max(b)` compares element by element instead of reducing."""
    if any(keyword.arg in ("dim", "axis", "keepdim") for keyword in call.keywords):
        return False
    others = call.args[1:] if is_function else call.args
    if not others:
        return False
    other = others[0]
    if isinstance(other, ast.Name):
        return other.id not in ("dim", "axis")
    negative = isinstance(other, ast.UnaryOp) and isinstance(other.operand, ast.Constant)
    return not (negative or isinstance(other, ast.Constant))


def _statements_in_order(function: Function) -> list[ast.stmt]:
    nodes = [node for node in _own_nodes(function) if isinstance(node, ast.stmt)]
    return sorted(nodes, key=lambda node: (node.lineno, node.col_offset))


def _expressions(statement: ast.stmt) -> Iterator[ast.AST]:
    """Yield the expression nodes of a statement, those of the statements inside it apart."""
    waiting: list[ast.AST] = [child for child in ast.iter_child_nodes(statement) if not isinstance(child, ast.stmt)]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += [child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.stmt)]
