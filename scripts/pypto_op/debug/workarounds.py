"""`pypto-op debug precision-debug`: the check-list of work-arounds, tried one by one on copies of a kernel.

Each changes one thing. What it does to the error says where to look; a work-around that passes is no patch by itself.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import libcst as cst

from pypto_op.debug.running import demand_numbers
from pypto_op.documents import schema
from pypto_op.documents.reading import read_text
from pypto_op.documents.writing import write_atomically
from pypto_op.errors import ContractError, InfraError, PyptoOpError
from pypto_op.judge.cases.contract import load_contract
from pypto_op.judge.cases.request import Request
from pypto_op.judge.cases.subject import resolve
from pypto_op.judge.verify import verify_operator
from pypto_op.vocabulary import Mode, Status
from pypto_op.workspace import OpWorkspace

SEED = 20260101
"""Second seed of every run, the same for all: only the change may change the error."""

_NOTICED = 0.5
"""A violation that shrinks to less than this share, or grows by more than its inverse, has moved."""


@dataclass(frozen=True)
class Workaround:
    """One change of a kernel's text."""

    name: str  # for people and JSON
    means: str  # what it means when the error goes
    change: Callable[[str], str]  # makes the new text; the same text where it does not apply


class _Calls(cst.CSTTransformer):
    """Changes keyword arguments of `pypto.<name>(...)` calls."""

    def __init__(self, names: Sequence[str], keyword: str, value: str | None) -> None:
        self._names, self._keyword, self._value = names, keyword, value

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.Call:
        func = updated_node.func
        if not (isinstance(func, cst.Attribute) and func.attr.value in self._names):
            return updated_node
        old = [arg for arg in updated_node.args if arg.keyword is None or arg.keyword.value != self._keyword]
        if self._value is None:
            return updated_node.with_changes(args=old) if len(old) < len(updated_node.args) else updated_node
        plain = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
        new = cst.Arg(cst.parse_expression(self._value), keyword=cst.Name(self._keyword), equal=plain)
        return updated_node.with_changes(args=[*old, new])


class _States(cst.CSTTransformer):
    """Writes a state `x[:] = value` from a fresh value: `x[:] = (value) + 0.0`."""

    def leave_Assign(self, original_node: cst.Assign, updated_node: cst.Assign) -> cst.Assign:
        target = updated_node.targets[0].target
        if not (isinstance(target, cst.Subscript) and cst.Module([]).code_for_node(target).endswith("[:]")):
            return updated_node
        value = cst.Module([]).code_for_node(updated_node.value)
        return updated_node.with_changes(value=cst.parse_expression(f"({value}) + 0.0"))


class _Fresh(cst.CSTTransformer):
    """Fills a new tensor with zeros right after `name = pypto.tensor(shape, dtype, ...)`."""

    def leave_SimpleStatementLine(
        self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
    ) -> cst.SimpleStatementLine | cst.FlattenSentinel[cst.BaseStatement]:
        code = cst.Module([]).code_for_node(updated_node).strip()
        one = updated_node.body[0] if len(updated_node.body) == 1 else None
        if not (isinstance(one, cst.Assign) and re.match(r"\w+ = pypto\.tensor\(", code) and isinstance(one.value, cst.Call)):
            return updated_node
        if len(one.value.args) < 2:
            return updated_node
        shape, dtype = (cst.Module([]).code_for_node(arg.value) for arg in one.value.args[:2])
        name = code.partition(" ")[0]
        filled = cst.parse_statement(f"{name}[:] = pypto.full({shape}, 0.0, {dtype})\n")
        return cst.FlattenSentinel([updated_node, filled])


class _Tiles(cst.CSTTransformer):
    """Halves the first entry of each literal vector tile that can be halved."""

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.Call:
        func = updated_node.func
        if not (isinstance(func, cst.Attribute) and func.attr.value == "set_vec_tile_shapes"):
            return updated_node
        args = list(updated_node.args)
        for number, arg in enumerate(args[:-1] if len(args) > 1 else args):
            if isinstance(arg.value, cst.Integer) and int(arg.value.value) >= 16 and int(arg.value.value) % 2 == 0:
                args[number] = arg.with_changes(value=cst.Integer(str(int(arg.value.value) // 2)))
                return updated_node.with_changes(args=args)
        return updated_node


class _Wide(cst.CSTTransformer):
    """Computes in float32 what was narrowed on the way: casts to 16 bits go, casts back do nothing then."""

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        func = updated_node.func
        if not (isinstance(func, cst.Attribute) and func.attr.value == "cast") or len(updated_node.args) < 2:
            return updated_node
        kind = updated_node.args[1].value
        narrow = isinstance(kind, cst.Attribute) and kind.attr.value in ("DT_FP16", "DT_BF16")
        return updated_node.args[0].value if narrow else updated_node


def _by(transformer: Callable[[], cst.CSTTransformer]) -> Callable[[str], str]:
    return lambda text: cst.parse_module(text).visit(transformer()).code


_INPLACE = ("reshape", "view", "add", "sub", "mul", "div", "exp", "assemble", "transpose", "unsqueeze", "squeeze")

LIST: tuple[Workaround, ...] = (
    Workaround(
        "no_inplace", "an operation in place reads what it has overwritten", _by(lambda: _Calls(_INPLACE, "inplace", None))
    ),
    Workaround("unroll_list_1", "a version of a loop for its tail", _by(lambda: _Calls(("loop",), "unroll_list", "[1]"))),
    Workaround(
        "submit_before_loop",
        "a loop begins before what it reads was written",
        _by(lambda: _Calls(("loop",), "submit_before_loop", "True")),
    ),
    Workaround("fresh_state", "a state consumes the value that it is written from", _by(_States)),
    Workaround("initialised_tensors", "a tensor is read before it was written", _by(_Fresh)),
    Workaround("other_tile", "a pass that depends on the tile", _by(_Tiles)),
    Workaround("no_narrowing", "a cast to 16 bits in the middle of the kernel", _by(_Wide)),
)
"""The check-list, in the order in which it is tried."""


def precision_debug(
    ws: OpWorkspace, case: str, *, impl: Path | None = None, up_to_module: str | None = None, only: Sequence[str] = ()
) -> dict[str, Any]:
    """Try the check-list on copies below `_debug/workarounds/`, each judged on one case in `sim`.

    Returns:
        schemas/debug_precision_debug.schema.json: for each work-around, whether it applied and what became of the error.

    Raises:
        ContractError: no such case or work-around, or the kernel passes.
        InfraError: this machine has no simulator with numbers.
        InfraError: this machine has no simulator with numbers.
    """
    unknown = sorted(set(only) - {one.name for one in LIST})
    if unknown:
        raise ContractError(f"there is no work-around {unknown[0]}", remedy=f"use {', '.join(one.name for one in LIST)}")
    contract = load_contract(ws)
    subject = resolve(ws, contract.total_modules, impl=impl, up_to=up_to_module)
    contract.select(None, case)
    folder = ws.debug_dir / "workarounds"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    source = read_text(subject.impl)

    def judged(file: Path) -> dict[str, Any]:
        report = file.with_suffix(".json") if file.parent == folder else folder / "kernel.json"
        return _state(verify_operator(ws, Request((Mode.SIM,), file, subject.phase, case=case, seed=SEED, report=report)), case)

    demand_numbers()
    before = judged(subject.impl)
    if before["status"] == str(Status.PASS):
        raise ContractError(f"case {case} passes, so there is no error to move", file=subject.impl, remedy="name one that fails")
    rows = [_tried(one, source, folder, before, judged) for one in LIST if not only or one.name in only]
    result = {
        "schema_version": 1,
        "op_name": ws.name,
        "case_id": case,
        "kernel": subject.impl.name,
        "before": before,
        "tried": rows,
        "mended_by": [row["name"] for row in rows if row["effect"] == "mended"],
        "moved_by": [row["name"] for row in rows if row["effect"] in ("less", "more")],
    }
    schema.check(result, "debug_precision_debug")
    return result


def _tried(
    one: Workaround, source: str, folder: Path, before: Mapping[str, Any], judged: Callable[[Path], dict[str, Any]]
) -> dict[str, Any]:
    row = {"name": one.name, "means": one.means, "copy": None, "after": None}
    changed = one.change(source)
    if changed == source:
        return {**row, "effect": "does_not_apply"}
    copy = folder / f"{one.name}.py"
    write_atomically(copy, changed)
    try:
        after = judged(copy)
    except PyptoOpError as error:
        return {
            **row,
            "copy": copy.name,
            "effect": "error",
            "after": {"status": "ERROR", "reason": error.one_line(), "outputs": {}},
        }
    return {**row, "copy": copy.name, "after": after, "effect": _effect(before, after)}


def _state(report: Mapping[str, Any], case: str) -> dict[str, Any]:
    """Return status, reason and the violation of each output, from a report on one case."""
    error = report.get("error")
    check = next((one for one in report["checks"] if one["id"] == case), None)
    if check is None or str(Mode.SIM) not in check["modes"]:
        said = error["message"] if error else "the case was not judged"
        raise (InfraError if error and error["kind"] == "infra" else ContractError)(said)
    mode = check["modes"][str(Mode.SIM)]
    outputs = {leaf["name"]: leaf.get("max_violation") for leaf in mode["per_tensor"]}
    return {"status": str(mode["status"]), "reason": str(mode.get("reason") or ""), "outputs": outputs}


def _effect(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    if after["status"] == str(Status.PASS):
        return "mended"
    if after["status"] == str(Status.ERROR):
        return "error"
    pairs = [(old, after["outputs"].get(name)) for name, old in before["outputs"].items()]
    ratios = [new / old for old, new in pairs if old and new is not None]
    if any(ratio < _NOTICED for ratio in ratios):
        return "less"
    return "more" if any(ratio > 1 / _NOTICED for ratio in ratios) else "none"
