"""Gates of stage 5: what is submitted, what the judge said, what stays from the modules before."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pypto_op import self_contained
from pypto_op.errors import Refused
from pypto_op.hashing import ABSENT, sha256_file
from pypto_op.proof import evidence
from pypto_op.state import deliverables, verdicts
from pypto_op.state.conditions import attempt_phase
from pypto_op.state.gates.base import Context, freeze, freeze_closure, gate
from pypto_op.state.gates.lint import require_clean, require_one_kernel_file
from pypto_op.state.gates.stages import planned_modes
from pypto_op.state.model import impl_key, is_staged, module_count, phase_name, phase_number, phases
from pypto_op.state.verdicts import Demand, NeedsJudge, Question
from pypto_op.vocabulary import LintEvent, Status
from pypto_op.workflow import workflow
from pypto_op.workspace import OpWorkspace


def _phase_name(context: Context) -> str:
    name = context.args.get("phase") or attempt_phase(context.state, context.args["attempt"])
    assert name is not None  # the condition `attempt_open` holds
    return name


def _impl(context: Context, name: str) -> Path:
    k = impl_key(context.state, phase_number(name))
    return context.ws.impl if k is None else context.ws.module_impl(k)


@gate
def _phase_impl(context: Context) -> None:
    path = _impl(context, context.args["phase"])
    digest = sha256_file(path)
    if digest == ABSENT:
        raise Refused("is missing", file=path, remedy="dispatch the coder; it writes exactly this file")
    context.facts["submitted"] = {"impl": digest}


@gate
def _submitted_bytes(context: Context) -> None:
    name = _phase_name(context)
    phase = phases(context.state)[name]
    path = _impl(context, name)
    if sha256_file(path) != phase["submitted"].get("impl"):
        raise Refused(
            f"changed since attempt {phase['attempt']} was submitted",
            file=path,
            remedy="restore it, or fail this attempt and submit the new bytes",
        )


@gate
def _kept_functions(context: Context) -> None:
    """Whatever was verified must still be in the file; on submission the file's own functions are noted."""
    from pypto_op.documents.kept_functions import function_hashes, require_kept

    state, ws = context.state, context.ws
    if not is_staged(state):
        return
    integrating = "phase" not in context.args
    k = module_count(state) + 1 if integrating else phase_number(context.args["phase"])
    path = ws.impl if integrating else ws.module_impl(k)
    now = function_hashes(path, ws.name)
    if k > 1:
        before = phase_name(k - 1)
        require_kept(phases(state)[before].get("functions", {}), now, file=path, phase=before)
    if not integrating:
        context.facts["functions"] = now


def _demand(context: Context, name: str) -> Demand:
    """Return what the phase demands: a staged phase the first levels, a single module, which is the whole operator, all."""
    k = impl_key(context.state, phase_number(name))
    levels = None if k is None else workflow().phase_levels
    return Demand(k, levels, tuple(planned_modes(context.state)))


def _freeze_phase(context: Context, name: str, report: Mapping[str, Any]) -> None:
    ws, k = context.ws, impl_key(context.state, phase_number(name))
    frozen = context.facts.setdefault("frozen", {})
    require_one_kernel_file(ws, report)
    frozen.update(freeze_closure(context, report, 5, name))
    if k is None:
        frozen["impl_py"] = freeze(ws, ws.impl, 5, name)
        return
    for kind, path in _trio(ws, k).items():
        frozen[f"module{k}_{kind}_py"] = freeze(ws, path, 5, name)


def _trio(ws: OpWorkspace, k: int) -> dict[str, Path]:
    return {"impl": ws.module_impl(k), "golden": ws.module_golden(k), "test": ws.module_test(k)}


@gate
def _phase_files(context: Context) -> None:
    _require_files(context, context.args["phase"])


def _require_files(context: Context, name: str) -> None:
    """Whatever the phase freezes is there, clean, and the test is one that can fail; asked before the judge is."""
    ws, k = context.ws, impl_key(context.state, phase_number(name))
    for path in _trio(ws, k).values() if k is not None else ():
        if not path.is_file():
            raise Refused("is missing", file=path, remedy="a verified module has impl, golden and test")
    context.facts["lint"] = require_clean(ws, LintEvent.SUBMIT_FOR_VERIFY, stage=5, phase=phase_number(name))
    if k is not None:
        self_contained.check(ws.module_golden(k))
        deliverables.check_test(ws, k)


@gate
def _phase_pass(context: Context) -> None:
    name = context.args["phase"]
    report = verdicts.find_pass(context.ws, _demand(context, name), context.report)
    context.report = report
    context.facts["verdict"] = verdicts.verdict_of(report)
    _freeze_phase(context, name, report)


@gate
def _verdict(context: Context) -> None:
    """Take the report that is named; one that is not sealed is not believed: the judge runs again."""
    name = _phase_name(context)
    demand = _demand(context, name)
    path = deliverables.report_path(context.ws, context.args.get("report"))
    report = context.report or evidence.read_report(path)
    verdicts.check_report(report, context.ws, demand.phase)
    if not evidence.check_seal(report):
        raise NeedsJudge(demand)
    if (report.get("error") or {}).get("kind") == "contract":
        verdicts.refuse_infra(report, context.ws)
    if Status(report["status"]).passed:
        _require_files(context, name)
        report = verdicts.find_pass(context.ws, demand, context.report)
        _freeze_phase(context, name, report)
    judged_again = context.report is not None
    context.report = report
    context.facts["verdict"] = verdicts.verdict_of(report, judged_again=judged_again)


@gate
def _phase_failure(context: Context) -> None:
    """A failure needs the judge's FAIL or ERROR for these bytes, as a PASS needs its PASS."""
    demand = _demand(context, context.args["phase"])
    report = context.report
    if report is None:
        try:
            report = evidence.read_report(context.ws.report)
            verdicts.check_report(report, context.ws, demand.phase)
        except Refused:
            raise NeedsJudge(demand) from None
        except ValueError:
            raise NeedsJudge(demand) from None
        if not evidence.check_seal(report):
            raise NeedsJudge(demand)
    verdicts.refuse_infra(report, context.ws)
    if report["status"] == Status.PARTIAL and context.report is None:
        raise NeedsJudge(demand)  # what was left out may still fail
    if Status(report["status"]).passed:
        raise Refused("the judge passed these bytes", file=context.ws.report, remedy="run complete_phase")
    context.report = report
    context.facts["verdict"] = verdicts.verdict_of(report)


@gate
def _composition(context: Context) -> None:
    """The goldens of M_1..M_N, composed, must say what the operator's own golden says."""
    result = context.report
    if result is None:
        raise NeedsJudge(Question.COMPOSITION)
    context.report = None  # a composition is no verdict on a kernel: it is not kept as one
    if result["hashes"] != evidence.composition_hashes(context.ws, module_count(context.state)):
        raise Refused("files changed while they were composed", file=context.ws.root, remedy="repeat it")
    if result["status"] != Status.PASS:
        raise Refused(
            f"the composition does not reproduce the golden: {result['summary']}",
            file=context.ws.interfaces,
            remedy="let the designer revise the module boundaries (roll back to stage 3 or 4)",
        )
    context.facts["composition"] = {**result, "at": context.facts["time"]}


@gate
def _integration_files(context: Context) -> None:
    ws = context.ws
    for path in (ws.impl, ws.readme, ws.test):
        if not path.is_file():
            raise Refused("is missing", file=path, remedy="run the clean-up of the staged chain")
    for path in (ws.impl, ws.test):
        require_clean(ws, LintEvent.SUBMIT_FOR_VERIFY, stage=5, file=path)
    deliverables.check_test(ws, None)
    deliverables.check_readme(ws)
    context.facts["frozen"] = {"impl_py": freeze(ws, ws.impl, 5), "test_py": freeze(ws, ws.test, 5)}
