"""`pypto-op reproduce`: the debugger's mandatory first step for a near miss, done by a machine."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pypto_op.backends.base import Limits
from pypto_op.documents import schema
from pypto_op.documents.knobs import SCALE, is_drawn_id
from pypto_op.documents.reading import read_json, read_text
from pypto_op.documents.writing import write_atomically
from pypto_op.errors import ContractError
from pypto_op.generators.operator.sources import FLOATS
from pypto_op.judge.cases import fresh
from pypto_op.judge.cases.contract import Contract, load_contract
from pypto_op.judge.cases.inputs import checks_precision
from pypto_op.judge.cases.request import Request as Wanted
from pypto_op.judge.cases.subject import Subject, resolve
from pypto_op.judge.verify import verify_operator
from pypto_op.reproduce import suite_patch
from pypto_op.reproduce.conclusion import Judgement, OutputDrift, judge_drift
from pypto_op.reproduce.drift import KernelDrift, kernel_drift
from pypto_op.reproduce.script import Drift, Script, write_script
from pypto_op.state import store
from pypto_op.vocabulary import Conclusion, Mode, Status
from pypto_op.workspace import OPERATORS_DIR, OpWorkspace, parse_phase

RESULT = "tolerance_analysis.json"
"""The result, beside the script in `_debug/`."""

_SCRATCH = "reproduce"
_NO_KNOB = (
    "the case has no number that could be made smaller: give it a knob for its magnitude (`draw_scale`) in eval/test_inputs.py"
)
_DRAWN = "the case was drawn by that verdict and stands in no suite: verify again, which draws another; keep atol and rtol"
_NONE_MILD = "no smaller `draw_scale` and no wider gap makes natural rounding small: give the case other inputs"


@dataclass(frozen=True)
class Request:
    """What a caller wants reproduced."""

    case: str  # id of the failing case
    impl: Path | str | None = None  # the file that failed, when it is not the operator's own
    # the cumulative phase k that failed; without it and `impl`, and before there is an integrated impl: the state's active phase,
    # or the last one that has a file
    up_to_module: int | str | None = None
    mode: Mode | None = None  # where it failed; None: the first that failed, the device before the simulator
    again: bool = False  # run the kernel even if there is a report about these bytes
    confirm: bool = True  # also run the kernel on the milder case that is proposed
    limits: Limits = field(default_factory=Limits)  # what each process may use


def reproduce(ws: OpWorkspace, request: Request) -> dict[str, Any]:
    """Say whether a kernel or its case is to blame for a failure, and propose the milder case when it is the case.

    Writes `_debug/tolerance_analysis.py` and `.json`; changes neither kernel nor suite.

    Returns:
        The result (schemas/reproduction.schema.json); its `conclusion` is `kernel_innocent` or `kernel_suspect`.

    Raises:
        ContractError: no such case, it does not fail, it fails for another reason than its numbers, or golden or
            inputs do not run.
        InfraError: the machine cannot run it.
    """
    contract = load_contract(ws)
    subject = resolve(ws, contract.total_modules, impl=request.impl, up_to=_phase(ws, request))
    drawn = is_drawn_id(request.case, [case["id"] for case in contract.cases])
    case = None if drawn else contract.select(None, request.case)[0]
    if case is not None and not checks_precision(case):
        raise ContractError(f"case {request.case} compares no numbers", file=ws.suite, remedy="name one with precision: true")
    kernel = kernel_drift(ws, subject, request.case, mode=request.mode, again=request.again, drawn=drawn)
    case = case or fresh.drawn(request.case, contract, kernel.seed, subject.impl)[1]
    script = write_script(contract, subject, case, kernel.seed, contract.policy_for(case))
    drift = script.run([{}], request.limits)[0]
    judgement = judge_drift(kernel.reasons, kernel.failing, drift)
    result = _result(contract, kernel, script, drift, judgement)
    if drawn and judgement.conclusion is Conclusion.KERNEL_INNOCENT:
        result["next_step"] = _DRAWN
    elif judgement.conclusion is Conclusion.KERNEL_INNOCENT:
        _propose(result, contract, subject, case, script, request, kernel)
    schema.check(result, "reproduction", file=ws.debug_dir / RESULT)
    write_atomically(ws.debug_dir / RESULT, json.dumps(result, indent=2, allow_nan=False) + "\n")
    return result


def _phase(ws: OpWorkspace, request: Request) -> int | str | None:
    written = ws.existing_module_phases()
    if request.up_to_module is not None or request.impl is not None or ws.impl.is_file() or not written:
        return request.up_to_module
    state = store.load(ws).state
    active = state["stage5_phases"]["active_phase"] if state is not None else None
    phase = parse_phase(active) if active else None
    return phase if phase in written else written[-1]


def _propose(
    result: dict[str, Any],
    contract: Contract,
    subject: Subject,
    case: Mapping[str, Any],
    script: Script,
    request: Request,
    kernel: KernelDrift,
) -> None:
    """Look for a milder case, and run the kernel on it: who fails there as well was not innocent."""
    ws = subject.workspace
    suite = read_json(ws.suite)
    milder = suite_patch.candidates(case, _scalable(contract))
    chosen = suite_patch.first_mild(milder, script.run([one.change for one in milder], request.limits)) if milder else None
    if chosen is None:
        result["next_step"] = f"{_NO_KNOB if not milder else _NONE_MILD}; keep atol and rtol"
        return
    raw = next(c for c in suite.get("cases", suite.get("test_cases", ())) if c["id"] == case["id"])
    result["suite_patch"] = proposal = suite_patch.patch(suite, raw, chosen)
    if not request.confirm:
        return
    status = _judged_on(suite_patch.patched(suite, proposal), proposal["new_case_id"], subject, kernel.mode)
    proposal["kernel_status"] = str(status)
    if status is Status.FAIL:
        result["conclusion"] = str(Conclusion.KERNEL_SUSPECT)
        result["summary"] += "; but it also fails on the milder case, where they hardly drift"
        result["next_step"] = "load pypto-precision-debug; the kernel is likely at fault"


def _scalable(contract: Contract) -> list[str]:
    """Return the inputs that a case may give a `draw_scale`, where eval/test_inputs.py knows that knob."""
    if not re.search(rf"""["']{SCALE}["']""", read_text(contract.workspace.test_inputs)):
        return []
    ports = contract.interfaces.primary_inputs
    return [port.name for port in ports if port.shape and port.dtype in FLOATS]


def _judged_on(suite: Mapping[str, Any], case_id: str, subject: Subject, mode: Mode) -> Status:
    """Return the status of the kernel on one case of another suite, tried in a copy below `_debug/`."""
    ws = subject.workspace
    scratch = ws.debug_dir / _SCRATCH
    root = scratch / OPERATORS_DIR / ws.name
    shutil.rmtree(scratch, ignore_errors=True)
    try:
        shutil.copytree(ws.root, root, ignore=shutil.ignore_patterns("_debug", "__pycache__", ".*", "*.report.json"))
        copy = OpWorkspace.at(root)
        copy.suite.write_text(json.dumps(suite), encoding="utf-8")
        impl = root / subject.impl.relative_to(ws.root) if subject.impl.is_relative_to(ws.root) else subject.impl
        report = verify_operator(copy, Wanted(modes=(mode,), impl=impl, up_to_module=subject.phase, case=case_id))
        status = Status(report["status"])
        return Status.PASS if status is Status.PARTIAL else status  # the status of the case, not of the operator
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _result(contract: Contract, kernel: KernelDrift, script: Script, drift: Drift, judgement: Judgement) -> dict[str, Any]:
    ws = contract.workspace
    return {
        "schema_version": 1,
        "op_name": ws.name,
        "case_id": script.case_id,
        "seed": kernel.seed,
        "mode": str(kernel.mode),
        "cpu_reproducer_candidate": kernel.near_miss,
        "conclusion": str(judgement.conclusion),
        "summary": judgement.summary,
        "next_step": judgement.next_step,
        "outputs": [_output(output) for output in judgement.outputs],
        "cpu_drift": drift,
        "script": str(script.path.relative_to(ws.root)),
        "kernel_was_run": kernel.fresh,
        "suite_patch": None,
    }


def _output(output: OutputDrift) -> dict[str, Any]:
    kernel = {
        key: output.kernel.get(key) for key in ("max_abs_diff", "max_rel_diff", "mean_diff", "rel_to_scale", "max_violation")
    }
    return {"name": output.name, "kernel": kernel, "cpu": dict(output.cpu), "ratio": output.ratio, "alike": output.alike}
