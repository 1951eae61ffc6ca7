"""`pypto-op debug precision-compare`: the first operation of a kernel that leaves the golden, and who is to blame.

The kernel runs once in `sim` with pypto's dump of every operation's result; the golden runs once under a trace. Blame is shown
by runs that differ in one thing: torch in the simulator's place, the golden's own check, the graph after each pass.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pypto_op.backends.reference import ReferenceSession
from pypto_op.debug import divergence, dump_files, replay
from pypto_op.debug.kernel_text import KernelText
from pypto_op.debug.matching import Golden
from pypto_op.debug.running import CHECKED_PASSES, GRAPHS, TENSORS, Run, run_child, scratch
from pypto_op.documents import schema
from pypto_op.errors import ContractError, InfraError
from pypto_op.judge.calling import positions, used_inputs
from pypto_op.judge.contract import Contract, load_contract
from pypto_op.judge.inputs import DEFAULT_SEED, with_seed
from pypto_op.judge.subject import Subject, resolve
from pypto_op.workspace import OpWorkspace

if TYPE_CHECKING:
    from pypto_op.debug.dump_files import Step

_MOST = 5


@dataclass(frozen=True)
class Request:
    """What a caller wants compared.

    Attributes:
        case: id of a case of the suite.
        impl: the kernel's file, when it is not the operator's own.
        up_to_module: k of M_k.
        blame: also run what shows who is to blame.
    """

    case: str
    impl: Path | None = None
    up_to_module: str | None = None
    blame: bool = True


@dataclass(frozen=True)
class Evidence:
    """What the runs left.

    Attributes:
        contract: of the operator.
        subject: kernel and golden.
        steps: the kernel's operations.
        golden: the golden's tensors.
        actual, expected: outputs.
        output_numbers: numbers of the golden's outputs among its tensors.
        complete: the golden's trace holds everything.
    """

    contract: Contract
    subject: Subject
    steps: list[Step]
    golden: Golden
    actual: list[Any]
    expected: list[Any]
    output_numbers: list[int]
    complete: bool


def precision_compare(ws: OpWorkspace, request: Request) -> dict[str, Any]:
    """Return where a kernel leaves its golden on a case (schemas/debug_precision_compare.schema.json); no value is in it.

    Raises:
        ContractError: no such case, or inputs, golden or kernel do not run.
        InfraError: this machine has no simulator with numbers.
    """
    contract = load_contract(ws)
    subject = resolve(ws, contract.total_modules, impl=request.impl, up_to=request.up_to_module)
    case = contract.select(None, request.case)[0]
    with scratch(ws, "precision-compare") as folder:
        inputs, golden_inputs = _inputs(contract, subject, case)
        seen = _evidence(contract, subject, inputs, golden_inputs, folder)
        result = _answer(seen, request, case)
        if request.blame and result["divergences"]:
            result["blame"] = _blame(seen, inputs, golden_inputs, folder)
    schema.check(result, "debug_precision_compare")
    return result


def _inputs(contract: Contract, subject: Subject, case: Mapping[str, Any]) -> tuple[list[Any], list[Any]]:
    with ReferenceSession(subject.workspace) as session:
        made = session.make_inputs(with_seed(case, int(case.get("seed", DEFAULT_SEED))))
    names, values = [name for name, _ in made], [value for _, value in made]
    used = used_inputs(contract.interfaces, subject.phase)

    def handed(file: Path, function: str) -> list[Any]:
        return [values[i] for i in positions(file, function, names, used)]

    return handed(subject.impl, subject.wrapper), handed(subject.golden, subject.golden_function)


def _evidence(contract: Contract, subject: Subject, inputs: list[Any], golden_inputs: list[Any], folder: Path) -> Evidence:
    with ThreadPoolExecutor(3) as pool:
        kernel = pool.submit(run_child, "kernel", subject.impl, subject.wrapper, inputs, folder / "tensors", dumps=TENSORS)
        graph = pool.submit(run_child, "kernel", subject.impl, subject.wrapper, inputs, folder / "graphs", dumps=GRAPHS)
        traced = pool.submit(
            run_child, "golden", subject.golden, subject.golden_function, golden_inputs, folder / "golden"
        ).result()
    ran = _well(kernel.result(), subject.impl, "the kernel")
    _well(traced, subject.golden, "the golden")
    steps = dump_files.read_steps(folder / "tensors")
    dump_files.set_lines(steps, graph.result().folder, subject.impl)
    rows = traced.facts["rows"]
    numbers = [int(row["tensor"]) for row in rows if row["op"] == "output"]
    return Evidence(
        contract,
        subject,
        steps,
        Golden(traced.outputs, rows),
        ran.outputs,
        [traced.outputs[number] for number in numbers],
        numbers,
        bool(traced.facts["complete"]),
    )


def _well(run: Run, file: Path, who: str) -> Run:
    if run.ok:
        return run
    if "pypto-op:" in run.last_words:
        raise InfraError(run.last_words.partition("pypto-op:")[2].strip())
    raise ContractError(
        f"{who} does not run on this case: {run.last_words}", file=file, remedy="`pypto-op diagnose --log` names known mistakes"
    )


def _answer(seen: Evidence, request: Request, case: Mapping[str, Any]) -> dict[str, Any]:
    from pypto_op.compare import compare_leaves

    names = seen.contract.leaf_names(seen.subject.phase)
    compared = compare_leaves(seen.actual, seen.expected, names=names, policy=_fixed(seen.contract, case))
    wrong = [leaf.as_dict()["name"] for leaf in compared.per_tensor if not leaf.as_dict()["all_close"]]
    found = _divergences(seen) if not compared.all_close else []
    return {
        "schema_version": 1,
        "op_name": seen.contract.workspace.name,
        "case_id": request.case,
        "kernel": seen.subject.impl.name,
        "operations": len(seen.steps),
        "agrees": bool(compared.all_close),
        "wrong_outputs": wrong,
        "golden_trace_complete": seen.complete,
        "divergences": found[:_MOST],
        "blame": None,
    }


def _fixed(contract: Contract, case: Mapping[str, Any]) -> Any:
    from pypto_op.judge.inspection import fixed

    return fixed(contract.policy_for(case))


def _divergences(seen: Evidence) -> list[dict[str, Any]]:
    text = KernelText(seen.subject.impl)
    first = divergence.first_divergences(seen.steps, seen.golden)
    rows = [_row(found, "computed", text) for found in first if found.sure]
    parts = [_row(found, "computed", text) for found in first if not found.sure]
    moved = [_row(found, "misplaced", text) for found in divergence.misplaced(seen.steps, seen.golden, seen.output_numbers)]
    unwritten = []
    for name, (axis, indices) in divergence.uncovered(seen.steps).items():
        words = f"no write of any turn reaches the end of axis {axis} of {name}: bound, offset or size is short"
        for loop in text.innermost(indices, indices[0])[:2]:
            unwritten.append(_place(loop.first, "unwritten", "LOOP", loop.index, words))
    if not seen.steps:
        unwritten = [_place(loop.first, "unwritten", "LOOP", loop.index, "no turn ran") for loop in text.loops]
    return _distinct([*unwritten, *rows, *moved, *parts])


def _row(found: divergence.Divergence, kind: str, text: KernelText) -> dict[str, Any]:
    step = found.step
    row = _place(step.line, kind, step.opcode, step.turn, found.why)
    callers = text.callers(step.line, step.function) if step.line else []
    return {**row, "operation": step.number, "shape": list(step.valid), "called_from": callers[:4]}


def _place(line: int | None, kind: str, opcode: str, turn: str, why: str) -> dict[str, Any]:
    row = {"line": line, "kind": kind, "opcode": opcode, "turn": turn, "why": why}
    return {**row, "operation": 0, "shape": [], "called_from": []}


def _distinct(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    kept: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows:
        kept.setdefault((row["line"], row["kind"], row["opcode"]), row)
    return list(kept.values())


def _blame(seen: Evidence, inputs: list[Any], golden_inputs: list[Any], folder: Path) -> dict[str, Any]:
    """Return who is to blame: the first of simulator, golden and pass that a differing run incriminates, else the kernel."""
    subject, tried = seen.subject, []
    step = replay.disagreeing(seen.steps)
    if step is not None:
        words = f"torch makes something else of the operands of {step.opcode} (operation {step.number})"
        return {"who": "simulator", "why": words, "line": step.line, "tried": ["torch in the simulator's place"]}
    tried.append(f"torch in the simulator's place: every operation agrees ({len(seen.steps)})")
    fault = _golden_fault(seen, golden_inputs, folder)
    if fault:
        return {"who": "golden", "why": fault, "line": None, "tried": tried}
    tried.append("the golden's own check and its answer in float64: well")
    run = run_child("kernel", subject.impl, subject.wrapper, inputs, folder / "passes", dumps=CHECKED_PASSES)
    broken = _broken_pass(run.folder) if run.ok else None
    if broken:
        return {"who": "pass", "why": broken, "line": None, "tried": tried}
    tried.append("the graph after each pass: as the recorded one" if run.ok else f"passes were not checked: {run.last_words}")
    words = "the graph that the kernel recorded computes this; what computes it is right"
    return {"who": "kernel", "why": words, "line": None, "tried": tried}


def _golden_fault(seen: Evidence, inputs: list[Any], folder: Path) -> str:
    """Say what shows that the golden is wrong: its own `__main__` check, or its answer in float64; "" for nothing."""
    from pypto_op.compare import compare_leaves
    from pypto_op.policy import get_policy

    subject = seen.subject
    with ReferenceSession(subject.workspace) as session:
        exact = session.golden(inputs, function=subject.golden_function, file=subject.golden, float64=True)
    if exact.outputs and len(exact.outputs) == len(seen.expected):
        names = seen.contract.leaf_names(subject.phase)
        wide = [one.to(two.dtype) for one, two in zip(exact.outputs, seen.expected, strict=True)]
        close = compare_leaves(wide, seen.expected, names=names, policy=get_policy("allclose@1"))
        kernel = compare_leaves(seen.actual, wide, names=names, policy=get_policy("allclose@1"))
        if not close.all_close and kernel.all_close:
            return "in float64 the golden gives what the kernel gives: the golden's own rounding is off"
    if subject.phase is None:
        code, words = _own_check(subject.golden)
        if code not in (0, None):
            return f"`python {subject.golden.name}` fails: {words}"
    return ""


def _own_check(golden: Path) -> tuple[int | None, str]:
    import subprocess
    import sys

    try:
        done = subprocess.run(
            [sys.executable, "-m", "pypto_op.backends.hostshim", str(golden)], capture_output=True, timeout=120, check=False
        )
    except subprocess.TimeoutExpired:
        return None, ""
    lines = done.stderr.decode(errors="replace").strip().splitlines()
    # The last line of an assertion of torch.testing is a number; its first line is the sentence.
    told = [line for line in lines if line and not line.startswith((" ", "Traceback"))]
    return done.returncode, (told[0] if told else "")[:200]


def _broken_pass(folder: Path) -> str | None:
    """Return the first pass after which the graph computes something else, from pypto's own comparison."""
    for table in sorted(folder.glob("output_*/verify_*/verify_result_brief.csv")):
        with table.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                if "FAIL" in (row.get("verifyResult") or "").upper():
                    return f"after {row['passName']} the graph {row['verifyType']} gives other numbers"
    return None
