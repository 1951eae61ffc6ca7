"""Choices about loops: how far they are unrolled, which of two is the outer one, and what may stand before them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import libcst as cst

from pypto_op.mutation.program import Function, Program, below, called, names_in
from pypto_op.tuning.choice import Choice, Kind
from pypto_op.tuning.rewriting import Edits, keyword, several
from pypto_op.tuning.walking import own_nodes

NONE, INSIDE, BEFORE, AS_WRITTEN, EXCHANGED = "none", "inside", "before", "as written", "exchanged"
_UNROLLS = ("[2, 1]", "[4, 2, 1]", "[8, 4, 2, 1]", "[16, 8, 4, 2, 1]")
_POSITIONAL = ("is_loop_begin", "is_loop_end")
Finding = tuple[Choice, Callable[[Edits, str], None]]


def find(program: Program) -> Iterator[Finding]:
    """Yield the choices about the `pypto.loop`s of the kernel."""
    for function in program.functions.values():
        if function.on_device:
            for loop in _loops(function):
                yield from _of_loop(program, function, loop)


def _of_loop(program: Program, function: Function, loop: cst.For) -> Iterator[Finding]:
    name = f"{_name(loop)} of {function.name}"
    if not _reaches(program, loop.body, ("loop", "loop_unroll"), 0):
        yield _unroll(program, loop, name)
    pair = _pair(loop)
    exchange = ""
    if pair is not None:
        exchange = f"order of loop {_name(loop)} and {_name(pair)} of {function.name}"
        choice = Choice(exchange, Kind.LOOP_ORDER, program.line(loop), (AS_WRITTEN, EXCHANGED))
        yield choice, lambda edits, option: edits.exchanged.update({loop: pair})
        yield from _between(program, function, loop, pair, exchange)
    outer = next((other for other in _loops(function) if _pair(other) is loop), None)
    undone = "" if outer is None else f"order of loop {_name(outer)} and {_name(loop)} of {function.name}"
    varying = _targets(loop)
    for statement in loop.body.body:
        target = _load(program, statement)
        if target and not varying & set(names_in(_value(statement))) and _assignments(loop, target) == 1:
            choice = Choice(
                f"{target} out of loop {name}",
                Kind.HOIST if _reaches(program, _value(statement), ("view",), 0) else Kind.CAST,
                program.line(statement),
                (INSIDE, BEFORE),
                unless=undone,
            )
            yield choice, _lifting(statement, loop)


def _lifting(statement: cst.CSTNode, loop: cst.For) -> Callable[[Edits, str], None]:
    return lambda edits, option: edits.lifted.update({statement: loop})


def _unroll(program: Program, loop: cst.For, name: str) -> Finding:
    call = loop.iter
    assert isinstance(call, cst.Call)
    said = [arg.value for arg in call.args if arg.keyword is not None and arg.keyword.value == "unroll_list"]
    now = program.module.code_for_node(said[0]) if said else NONE
    options = (now, *(text for text in (NONE, *_UNROLLS) if text.replace(" ", "") != now.replace(" ", "")))

    def edit(edits: Edits, option: str) -> None:
        change = keyword("unroll_list", "" if option == NONE else option)
        edits.changes[call] = several(edits.changes.get(call), change)

    return Choice(f"unroll_list of loop {name}", Kind.UNROLL, program.line(loop), options), edit


def _between(program: Program, function: Function, loop: cst.For, pair: cst.For, exchange: str) -> Iterator[Finding]:
    """Yield loads of the inner loop that may stand before the new inner loop, once the two are exchanged."""
    varying = _targets(loop) - (_targets(pair) - {_index(pair)})
    for statement in pair.body.body:
        target = _load(program, statement)
        names = set(names_in(_value(statement))) if target else set()
        if target and not (varying - {_index(pair)}) & names and _assignments(pair, target) == 1:
            key = f"{target} out of loop {_name(loop)} of {function.name}, exchanged"
            choice = Choice(key, Kind.HOIST, program.line(statement), (INSIDE, BEFORE), under=exchange)
            yield choice, lambda edits, option, moved=statement: edits.kept_between.add(moved)  # type: ignore[misc]


def _pair(loop: cst.For) -> cst.For | None:
    """Return the loop inside, where the two may change places: no state is carried, and nothing else stands there."""
    *first, last = loop.body.body
    if not (isinstance(last, cst.For) and _is_loop(last)) or last.orelse is not None:
        return None
    assigned = {_index(loop)}
    for statement in first:
        target = _target(statement)
        if not target or _makes_state(_value(statement)):
            return None
        assigned.add(target)
    carries = any(called(node) in _POSITIONAL for node in below(last) if isinstance(node, cst.Call))
    free = assigned.isdisjoint(names_in(last.iter))
    return last if free and not carries and not _stores(last) else None


def _stores(loop: cst.For) -> bool:
    """Whether a state is written by subscript: `acc[:] = ...`."""
    return any(isinstance(node, cst.AssignTarget) and isinstance(node.target, cst.Subscript) for node in below(loop))


def _makes_state(value: cst.CSTNode) -> bool:
    return any(isinstance(node, cst.Call) and called(node) in ("tensor", "zeros", "full") for node in below(value))


def _loops(function: Function) -> list[cst.For]:
    return [node for node in own_nodes(function) if isinstance(node, cst.For) and _is_loop(node)]


def _is_loop(node: cst.For) -> bool:
    return isinstance(node.iter, cst.Call) and called(node.iter) == "loop" and isinstance(node.target, cst.Name)


def _index(loop: cst.For) -> str:
    assert isinstance(loop.target, cst.Name)
    return loop.target.value


def _name(loop: cst.For) -> str:
    """Return the name that a loop gives itself, else its index."""
    assert isinstance(loop.iter, cst.Call)
    for argument in loop.iter.args:
        if argument.keyword is not None and argument.keyword.value == "name" and isinstance(argument.value, cst.SimpleString):
            return str(argument.value.evaluated_value)
    return _index(loop)


def _targets(loop: cst.For) -> set[str]:
    """Return every name that a loop binds or writes to: targets, and tensors given to calls that stand alone."""
    found = {_index(loop)}
    for node in below(loop.body):
        match node:
            case cst.AssignTarget(target=target) | cst.AugAssign(target=target) | cst.For(target=target):
                found |= set(names_in(target))
            case cst.Expr(value=cst.Call() as call):
                found |= {arg.value.value for arg in call.args if isinstance(arg.value, cst.Name)}
                if isinstance(call.func, cst.Attribute) and isinstance(call.func.value, cst.Name):
                    found |= {call.func.value.value} - {"pypto"}
    return found


def _assignments(loop: cst.For, name: str) -> int:
    targets = [node.target for node in below(loop.body) if isinstance(node, (cst.AssignTarget, cst.AugAssign))]
    return sum(name in names_in(target) for target in targets)


def _target(statement: cst.CSTNode) -> str:
    """Return the name that `name = value` binds, "" for any other statement."""
    match statement:
        case cst.SimpleStatementLine(body=[cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))])]):
            return name
    return ""


def _value(statement: cst.CSTNode) -> cst.BaseExpression:
    assert isinstance(statement, cst.SimpleStatementLine) and isinstance(statement.body[0], cst.Assign)
    return statement.body[0].value


def _load(program: Program, statement: cst.CSTNode) -> str:
    """Return the target of a statement that loads or casts a tile, directly or in a helper of the file; "" for another."""
    target = _target(statement)
    if not target:
        return ""
    return target if _reaches(program, _value(statement), ("view", "cast"), 0) else ""


def _reaches(program: Program, node: cst.CSTNode, names: tuple[str, ...], depth: int) -> bool:
    """Whether an expression calls one of `names`, or a helper that does and that is short: it prepares a tile."""
    for inner in below(node):
        if not isinstance(inner, cst.Call):
            continue
        if called(inner) in names:
            return True
        helper = program.functions.get(called(inner))
        if helper is not None and depth < 2 and _reaches(program, helper.node.body, names, depth + 1):
            return True
    return False
