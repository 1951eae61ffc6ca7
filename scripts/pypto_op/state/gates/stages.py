"""Gates at the end of a stage: deliverables, documents, plan, evidence."""

from __future__ import annotations

from pypto_op.errors import Refused
from pypto_op.proof import evidence
from pypto_op.state import deliverables, verdicts
from pypto_op.state.gates.base import Context, artifact_path, freeze, freeze_closure, gate
from pypto_op.state.gates.lint import require_one_kernel_file
from pypto_op.state.model import State, is_staged, phases
from pypto_op.state.verdicts import Demand, NeedsJudge, Question
from pypto_op.vocabulary import Stage, Status
from pypto_op.workflow import workflow
from pypto_op.workspace import typed


@gate
def _deliverables(context: Context) -> None:
    stage = context.args["stage"]
    row = workflow().stages[stage]
    needs = row.needs + (row.needs_staged if is_staged(context.state) else ())
    for name in needs:
        path = artifact_path(context.ws, name)
        if not path.is_file():
            raise Refused("is missing", file=path, remedy=f"stage {stage} ({row.name}) ends with it; its owner is {row.owner}")
        if not path.stat().st_size:
            raise Refused("is empty", file=path, remedy="write it")
    frozen = context.facts.setdefault("frozen", {})
    for name in row.freezes:
        path = artifact_path(context.ws, name)
        frozen[name] = freeze(context.ws, path, stage, _phase_of_impl(context, name))


def _phase_of_impl(context: Context, name: str) -> str | None:
    """On the single path the impl belongs to M1, so that reopening M1 thaws it."""
    return "M1" if name == "impl_py" and not is_staged(context.state) and context.args["stage"] == 5 else None


@gate
def _documents(context: Context) -> None:
    for name in workflow().stages[context.args["stage"]].documents:
        deliverables.check_document(context.ws, name, context.state)
        if name == "suite":
            deliverables.check_tolerances(context.ws)
            if is_staged(context.state):
                deliverables.check_runner(context.ws)


@gate
def _documents_design(context: Context) -> None:
    for name in ("design", "interfaces"):
        deliverables.check_document(context.ws, name, context.state)


@gate
def _plan(context: Context) -> None:
    plan = deliverables.make_plan(context.ws, context.args.get("modes"), context.facts["time"])
    context.facts["plan"] = plan
    context.facts["frozen"] = {"module_interfaces_yaml": freeze(context.ws, context.ws.interfaces, 4)}


@gate
def _stage_evidence(context: Context) -> None:
    stage = context.args["stage"]
    if stage == 5:
        deliverables.check_test(context.ws, None)
        deliverables.check_readme(context.ws)
    if stage == 7:
        deliverables.check_no_debugging(context.ws)
    if stage == 5 and not is_staged(context.state):
        row = context.facts["frozen"]["impl_py"]
        verified = phases(context.state)["M1"]["submitted"]["impl"]
        if row["sha256"] != verified:
            raise Refused("is not what M1 was verified with", file=context.ws.impl, remedy="reopen_phase M1")
    if not workflow().stages[stage].levels:
        return
    demand = Demand(None, None, tuple(planned_modes(context.state)))
    report = verdicts.find_pass(context.ws, demand, context.report)
    context.report = report
    context.facts["verdict"] = verdicts.verdict_of(report)
    require_one_kernel_file(context.ws, report)
    context.facts.setdefault("frozen", {}).update(freeze_closure(context, report, stage, _phase_of_impl(context, "impl_py")))


@gate
def _harness_fit(context: Context) -> None:
    """Stage 4 ends with the self-test of exactly the bytes that freeze: everything later rests on them."""
    if context.args["stage"] != Stage.DESIGN:
        return
    result = context.report
    if result is None:
        raise NeedsJudge(Question.SELF_TEST)
    context.report = None  # no verdict on a kernel: it is not kept as one
    if result["hashes"] != evidence.harness_hashes(context.ws):
        raise Refused("files changed while they were tested", file=context.ws.root, remedy="repeat it")
    failed = [row for row in result["checks"] if row["status"] == Status.FAIL]
    if failed:
        first = failed[0]
        names = ", ".join(row["name"] for row in failed)
        raise Refused(
            f"the self-test of the harness fails ({names}): {first['problem']}",
            file=first["file"],
            where=first["where"],
            remedy=f"{first['remedy'] or 'mend it'}; `pypto-op verify {typed(context.ws.root)} --self-test` shows all",
        )
    if result["status"] != Status.PASS:
        raise Refused(f"the self-test of the harness says {result['status']}", file=context.ws.root, remedy="repeat it")


def planned_modes(state: State) -> list[str]:
    """Return the modes that must pass; none before the plan is frozen."""
    return state["plan"]["modes"] if state["plan"] else []
