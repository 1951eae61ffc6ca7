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
        source: the golden's text.
        file: named in errors.
        function: the golden function.
        phase: k, which names `module_<k>_inspect`.
        wanted: the intermediates.

    Raises:
        ContractError: there is no such function or loop, or an expression is none.
    """
    module = parse_contract(source, file=file)
    recorder = _Recorder(function, [one for one in wanted if one.expression], file)
    made = module.visit(recorder)
    if not recorder.seen:
        raise ContractError(f"there is no function {function}", file=file)
    return made.code + _TAIL.format(phase=phase, function=function)


class _Recorder(cst.CSTTransformer):
    def __init__(self, function: str, wanted: Sequence[Intermediate], file: Path) -> None:
        self._function, self._wanted, self._file = function, wanted, file
        self._within, self._loop = False, -1
        self._loops: dict[cst.For, int] = {}
        self.seen = False

    def visit_FunctionDef(self, node: cst.FunctionDef) -> bool:
        if node.name.value == self._function:
            self.seen = self._within = True
            loops = _loops(node)
            self._loops = {loop: number for number, loop in enumerate(loops)}
            for one in self._wanted:
                if one.golden.get("loop", 0) >= max(1, len(loops)):
                    raise ContractError(
                        f"{one.name}: {self._function} has {len(loops)} for statements", file=self._file, where="golden.loop"
                    )
        return True

    def leave_FunctionDef(self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef) -> cst.FunctionDef:
        if original_node.name.value != self._function:
            return updated_node
        self._within = False
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


def _returns(statement: cst.CSTNode) -> bool:
    return isinstance(statement, cst.SimpleStatementLine) and isinstance(statement.body[-1], cst.Return)
