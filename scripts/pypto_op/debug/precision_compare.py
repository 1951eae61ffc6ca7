"""`pypto-op debug precision-compare`: the first operation of a kernel that leaves the golden, and who is to blame.

The kernel runs once in `sim` with pypto's dump of every operation's result; the golden runs once under a trace. Blame is shown
by runs that differ in one thing: torch in the simulator's place, the golden's own check; where the kernel agrees with its golden,
the graph after each pass.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

from pypto_op.debug.running import CHECKED_PASSES, GRAPHS, TENSORS, Desk, Run, scratch_in_memory
from pypto_op.diagnose.sources import failure_at
from pypto_op.documents import schema
from pypto_op.errors import ContractError
from pypto_op.judge.cases.contract import load_contract
from pypto_op.judge.cases.inspection import fixed
from pypto_op.judge.cases.subject import resolve
from pypto_op.proof import evidence
from pypto_op.workspace import OpWorkspace, typed


@dataclass(frozen=True)
class Request:
    """What a caller wants compared."""

    case: str  # id of a case of the suite
    impl: Path | None = None  # the kernel's file, when it is not the operator's own
    up_to_module: str | None = None  # k of M_k
    blame: bool = True  # also run what shows who is to blame


def precision_compare(ws: OpWorkspace, request: Request) -> dict[str, Any]:
    """Return where a kernel leaves its golden on a case (schemas/debug_precision_compare.schema.json); no value is in it.

    Raises:
        ContractError: no such case, or inputs, golden or kernel do not run.
        InfraError: this machine has no simulator with numbers.
    """
    contract = load_contract(ws)
    subject = resolve(ws, contract.total_modules, impl=request.impl, up_to=request.up_to_module)
    case = contract.select(None, request.case)[0]
    with scratch_in_memory(ws, "precision-compare") as folder, Desk(contract, subject, folder) as desk:
        desk.make_inputs(case)
        runs = _runs(desk)
        told = {name: str(runs[name].folder) for name in ("kernel", "graphs")}
        asked = {
            **told,
            "impl": str(subject.impl),
            "names": contract.leaf_names(subject.phase),
            "wrapper": subject.wrapper,
            "policy": astuple(fixed(contract.policy_for(case))),
        }
        found = desk.trusted("compare", file=subject.impl, what="divergences", **asked)["found"]
        blame = None
        if request.blame:
            blame = _blame(desk, asked) if found["wrong"] else _pass_fault(desk)
    result = {
        "schema_version": 1,
        "op_name": ws.name,
        "case_id": request.case,
        "kernel": subject.impl.name,
        "operations": found["operations"],
        "agrees": not found["wrong"],
        "wrong_outputs": found["wrong"],
        "golden_trace_complete": found["complete"],
        "divergences": found["divergences"],
        "blame": blame,
    }
    schema.check(result, "debug_precision_compare")
    return result


def _runs(desk: Desk) -> dict[str, Run]:
    with ThreadPoolExecutor(2) as pool:
        kernel, graphs = pool.submit(desk.kernel, "tensors", TENSORS), pool.submit(desk.kernel, "graphs", GRAPHS)
        golden = desk.golden("trace")
        runs = {"kernel": kernel.result(), "graphs": graphs.result(), "golden": golden}
    for name, file in (("kernel", desk.subject.impl), ("golden", desk.subject.golden)):
        if not runs[name].ok:
            raise ContractError(
                f"the {name} does not run on this case: {runs[name].words}",
                file=file,
                remedy="`pypto-op diagnose --log` names known mistakes",
            )
    return runs


def _blame(desk: Desk, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return who is to blame for wrong numbers: simulator or golden, where a differing run incriminates it, else the kernel."""
    tried = []
    told = desk.trusted("compare", file=desk.subject.impl, what="simulator", **asked)["found"]
    step = told["step"]
    mode = _cast_mode(desk.subject.impl, step) if step is not None else ""
    if step is not None and mode:
        words = f"the kernel asks for {mode}, which rounds otherwise than torch's cast"
        return {"who": "kernel", "why": words, "line": step["line"], "tried": ["torch in the simulator's place"]}
    if step is not None:
        words = f"torch makes something else of the operands of {step['opcode']} (operation {step['number']})"
        return {"who": "simulator", "why": words, "line": step["line"], "tried": ["torch in the simulator's place"]}
    tried.append(f"torch in the simulator's place: every operation agrees ({told['operations']})")
    fault = _golden_fault(desk, asked)
    if fault:
        return {"who": "golden", "why": fault, "line": None, "tried": tried}
    tried.append("the golden's own check and its answer in float64: well")
    tried.append("the passes: they have no part in these numbers, which `sim` computes from the graph as it was recorded")
    words = "the graph that the kernel recorded computes this; what computes it is right"
    return {"who": "kernel", "why": words, "line": None, "tried": tried}


def _cast_mode(impl: Path, step: Mapping[str, Any]) -> str:
    """Return the mode that the kernel's line asks of a cast where torch has no such one, "" for none."""
    if not str(step["opcode"]).startswith("CAST") or not step["line"]:
        return ""
    lines = impl.read_text(encoding="utf-8").splitlines()[step["line"] - 1 : step["line"] + 3]
    found = re.search(r"\bCAST_(?:FLOOR|CEIL|TRUNC|ROUND|ODD)\b", "\n".join(lines))
    return found[0] if found else ""


def _pass_fault(desk: Desk) -> dict[str, Any] | None:
    """Return the blame of a pass, None where none is to blame.

    Only of a kernel that agrees: `sim` computes the graph as it was recorded, a device what the passes made of it.
    """
    run = desk.kernel("passes", CHECKED_PASSES)
    broken = _broken_pass(run.folder) if run.ok else None
    return {"who": "pass", "why": broken, "line": None, "tried": []} if broken else None


def _golden_fault(desk: Desk, asked: Mapping[str, Any]) -> str:
    """Say what shows that the golden is wrong: its own `__main__` check, or its answer in float64; "" for nothing."""
    exact = desk.golden("float64")
    if exact.ok:
        more = {**asked, "exact": str(exact.folder)}
        if desk.trusted("compare", file=desk.subject.golden, what="rounding", **more)["found"]["golden"]:
            return "in float64 the golden gives what the kernel gives: the golden's own rounding is off"
    if desk.subject.phase is None:
        words = desk.trusted("check", file=desk.subject.golden)["fault"]
        if words:
            return f"`python {desk.subject.golden.name}` fails: {words}"[:300]
    return ""


def _broken_pass(folder: Path) -> str | None:
    """Return the first pass after which the graph computes something else, from pypto's own comparison."""
    for table in sorted(folder.glob("output_*/verify_*/verify_result_brief.csv")):
        with table.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                if "FAIL" in (row.get("verifyResult") or "").upper():
                    return f"after {row['passName']} the graph {row['verifyType']} gives other numbers"
    return None


def refused_otherwise(ws: OpWorkspace, case: str) -> str:
    """Return why the last verdict refused a case on which one call is right, such as an input that is not read; "" for none."""
    failure = failure_at(ws.root)
    if failure.get("case_id") != case:
        return ""
    if evidence.changed_since(evidence.read_report(ws.report), ws):
        return f"; the verdict is about other bytes: run `pypto-op verify {typed(ws.root)}`"
    return f"; the verdict refused it otherwise: {failure.get('summary')}"
