"""A copy of a golden that also gives the manifest's intermediates: `module_<k>_inspect`, made from its text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import libcst as cst

from pypto_op.debug.snapshot_manifest import Intermediate
from pypto_op.errors import ContractError
from pypto_op_lint.parsing import parse_contract

_TAIL = '''

_SNAPSHOTS = {{}}


def _snapshot(name, index, value):
    """Keep a value of one iteration."""
    _SNAPSHOTS.setdefault(name, {{}})[int(index)] = value.clone()


def _snapshots(name):
    """Return the values of a name as [B, H, NT, rows, columns]."""
    rounds = _SNAPSHOTS[name]
    values = [rounds[index] for index in sorted(rounds)]
    axis = values[0].dim() - 2
    stacked = torch.stack(values, dim=axis)
    for _ in range(2 - axis):
        stacked = stacked.unsqueeze(0)
    return stacked.contiguous()


def module_{phase}_inspect(*inputs):
    """Return the intermediates of {function}, iteration by iteration."""
    _SNAPSHOTS.clear()
    {function}(*inputs)
    return {{name: _snapshots(name) for name in _SNAPSHOTS}}
'''


def recorded(source: str, file: Path, function: str, phase: int, wanted: Sequence[Intermediate]) -> str:
    """Return the golden's text with a record of each intermediate that has a `golden_expression`.

    Args:
        phase: k, which names `module_<k>_inspect`.

    Raises:
        ContractError: there is no such function or loop, or an expression is none.
    """
    module = parse_contract(source, file=file)
    holders = _holders(module, function)
    if not holders:
        raise ContractError(f"there is no function {function}", file=file)
    made = module.visit(_Recorder(function, holders, [one for one in wanted if one.expression], file))
    return made.code + _TAIL.format(phase=phase, function=function)


def _holders(module: cst.Module, function: str) -> list[cst.FunctionDef]:
    """Return the functions whose loops count: the golden's; where it has none, those with loops that it calls, in order."""
    own = {node.name.value: node for node in module.body if isinstance(node, cst.FunctionDef)}
    waiting, seen = [function], list[str]()
    while waiting:
        name = waiting.pop(0)
        if name in own and name not in seen:
            seen.append(name)
            waiting += [] if _loops(own[name]) else _called(own[name])
    with_loops = [own[name] for name in seen if _loops(own[name])]
    return with_loops or [own[name] for name in seen[:1]]


class _Recorder(cst.CSTTransformer):
    def __init__(self, function: str, holders: Sequence[cst.FunctionDef], wanted: Sequence[Intermediate], file: Path) -> None:
        self._holders, self._wanted, self._file = holders, wanted, file
        self._within = False
        self._loops = {loop: number for number, loop in enumerate(loop for holder in holders for loop in _loops(holder))}
        for one in wanted:
            if one.golden.get("loop", 0) >= max(1, len(self._loops)):
                words = f"{one.name}: {function} has {len(self._loops)} for statements"
                raise ContractError(words, file=file, where="golden.loop")

    def visit_FunctionDef(self, node: cst.FunctionDef) -> bool:
        if node in self._holders:
            self._within = True
        return True

    def leave_FunctionDef(self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef) -> cst.FunctionDef:
        if original_node not in self._holders:
            return updated_node
        self._within = False
        if original_node is not self._holders[-1]:
            return updated_node
        plain = [one for one in self._wanted if not self._loops or one.probe_point == "after_nt_loop"]
        body = list(updated_node.body.body)
        # Just before the return, where there is one.
        at = len(body) - 1 if body and _returns(body[-1]) else len(body)
        body[at:at] = [self._record(one, {}) for one in plain]
        return updated_node.with_changes(body=updated_node.body.with_changes(body=body))

    def leave_For(self, original_node: cst.For, updated_node: cst.For) -> cst.For:
        number = self._loops.get(original_node)
        if not self._within or number is None:
            return updated_node
        mine = [one for one in self._wanted if one.probe_point != "after_nt_loop"]
        mine = [one for one in mine if one.golden.get("loop", len(self._loops) - 1) == number]
        first = [self._record(one, one.golden, original_node) for one in mine if one.golden.get("where") == "begin"]
        last = [self._record(one, one.golden, original_node) for one in mine if one.golden.get("where", "end") == "end"]
        body = updated_node.body
        return updated_node.with_changes(body=body.with_changes(body=[*first, *body.body, *last]))

    def _record(self, one: Intermediate, how: Mapping[str, str], loop: cst.For | None = None) -> cst.BaseStatement:
        index = how.get("index") or (cst.Module([]).code_for_node(loop.target) if loop is not None else "0")
        call = f"_snapshot({one.name!r}, {index}, {one.expression})"
        try:
            return cst.parse_statement(f"if {how['when']}:\n    {call}\n" if how.get("when") else f"{call}\n")
        except cst.ParserSyntaxError as error:
            raise ContractError(f"{one.name}: its golden expression does not parse", file=self._file) from error


def _loops(node: cst.CSTNode) -> list[cst.For]:
    found = [node] if isinstance(node, cst.For) else []
    for child in node.children:
        found += _loops(child)
    return found


def _called(node: cst.CSTNode) -> list[str]:
    """Return what a part of a file calls by a plain name, in order."""
    found = [node.func.value] if isinstance(node, cst.Call) and isinstance(node.func, cst.Name) else []
    for child in node.children:
        found += _called(child)
    return found


def _returns(statement: cst.CSTNode) -> bool:
    return isinstance(statement, cst.SimpleStatementLine) and isinstance(statement.body[-1], cst.Return)
