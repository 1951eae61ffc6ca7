"""The gates: each looks at files and either puts a fact into the context or refuses.

`workflow.json` says which action passes which gates; `GATES` is the registry. Gates run under the
operator's lock, after the preconditions on the state hold; a gate that needs the judge raises `NeedsJudge`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pypto_op.state import deliverables, verdicts
from pypto_op.state.conditions import attempt_phase
from pypto_op.state.facts import Arguments, Facts, Refused
from pypto_op.state.hashing import ABSENT, sha256_file
from pypto_op.state.kept_functions import function_hashes, require_kept
from pypto_op.state.lint_gate import require_clean
from pypto_op.state.model import (
    Frozen,
    State,
    impl_key,
    is_staged,
    module_count,
    phase_name,
    phase_number,
    phases,
)
from pypto_op.state.store import plan_matches
from pypto_op.state.verdicts import Demand, NeedsJudge
from pypto_op.state.workflow import workflow
from pypto_op.vocabulary import LintEvent, PhaseStatus, Status
from pypto_op.workspace import OpWorkspace


@dataclass
class Context:
    """What a gate sees: the operator, its state, the action's arguments, the facts found so far.

    `report` is the verdict of the judge that this call ran, None before it ran.
    """

    ws: OpWorkspace
    state: State
    args: Arguments
    facts: Facts
    report: Mapping[str, Any] | None = None


Gate = Callable[[Context], None]
GATES: dict[str, Gate] = {}


def _gate(function: Gate) -> Gate:
    GATES[function.__name__.lstrip("_")] = function
    return function


# -- frozen files -----------------------------------------------------------------------------------------


@_gate
def _frozen(context: Context) -> None:
    check_frozen(context.ws, context.state, context.state["artifact_hashes"].values())


@_gate
def _frozen_below_target(context: Context) -> None:
    target = context.args["target_stage"]
    kept = [row for row in context.state["artifact_hashes"].values() if row["stage"] < target]
    check_frozen(context.ws, context.state, kept, plan=target > 4)


@_gate
def _frozen_below_phase(context: Context) -> None:
    k = phase_number(context.args["phase"])
    kept = [
        row
        for row in context.state["artifact_hashes"].values()
        if row["stage"] < 5 or ("phase" in row and phase_number(row["phase"]) < k)
    ]
    check_frozen(context.ws, context.state, kept)


def check_frozen(ws: OpWorkspace, state: State, rows: Iterable[Frozen], *, plan: bool = True) -> None:
    """Refuse when a frozen file is not what it was: changed, missing, or there where none was.

    Raises:
        Refused: naming the file and its owner stage.
    """
    for problem in frozen_problems(ws, state, rows, plan=plan):
        raise problem


def frozen_problems(ws: OpWorkspace, state: State, rows: Iterable[Frozen], *, plan: bool = True) -> Iterable[Refused]:
    """Yield one refusal for each frozen file that is not what it was."""
    for row in rows:
        now = sha256_file(ws.root / row["path"])
        if now == row["sha256"]:
            continue
        what = "is missing" if now == ABSENT else "appeared" if row["sha256"] == ABSENT else "was changed"
        owner = f"reopen_phase {row['phase']}" if "phase" in row else f"rollback_to_stage {row['stage']}"
        since = f"{row['phase']} was verified" if "phase" in row else f"stage {row['stage']} froze it"
        yield Refused(f"{what} since {since}", file=ws.root / row["path"], remedy=f"restore it, or use {owner}")
    if plan and not plan_matches(ws, state):
        yield Refused(
            "was changed since freeze_plan",
            file=ws.plan,
            remedy="run `pypto-op state replay`, which writes it anew",
        )


def freeze(ws: OpWorkspace, path: Path, stage: int, phase: str | None = None) -> Frozen:
    """Return the row that freezes a file with the bytes that it has now."""
    row = Frozen(path=str(path.relative_to(ws.root)), sha256=sha256_file(path), stage=stage)
    if phase is not None:
        row["phase"] = phase
    return row


def artifact_path(ws: OpWorkspace, name: str) -> Path:
    """Return the path of an artefact of the table."""
    path = getattr(ws, workflow().artifacts[name].at)
    assert isinstance(path, Path)
    return path


# -- stages -----------------------------------------------------------------------------------------------


@_gate
def _deliverables(context: Context) -> None:
    stage = context.args["stage"]
    row = workflow().stages[stage]
    needs = row.needs + (row.needs_staged if is_staged(context.state) else ())
    for name in needs:
        path = artifact_path(context.ws, name)
        if not path.is_file():
            raise Refused(
                "is missing",
                file=path,
                remedy=f"stage {stage} ({row.name}) ends with it; its owner is {row.owner}",
            )
        if not path.stat().st_size:
            raise Refused("is empty", file=path, remedy="write it")
    frozen = context.facts.setdefault("frozen", {})
    for name in row.freezes:
        path = artifact_path(context.ws, name)
        frozen[name] = freeze(context.ws, path, stage, _phase_of_impl(context, name))


def _phase_of_impl(context: Context, name: str) -> str | None:
    """On the single path the impl belongs to M1, so that reopening M1 thaws it."""
    return "M1" if name == "impl_py" and not is_staged(context.state) and context.args["stage"] == 5 else None


@_gate
def _documents(context: Context) -> None:
    for name in workflow().stages[context.args["stage"]].documents:
        deliverables.check_document(context.ws, name, context.state)


@_gate
def _documents_design(context: Context) -> None:
    for name in ("design", "interfaces"):
        deliverables.check_document(context.ws, name, context.state)


@_gate
def _plan(context: Context) -> None:
    plan = deliverables.make_plan(context.ws, context.args.get("modes"), context.facts["time"])
    context.facts["plan"] = plan
    context.facts["frozen"] = {
        "module_interfaces_yaml": freeze(context.ws, context.ws.interfaces, 4),
    }


@_gate
def _stage_evidence(context: Context) -> None:
    stage = context.args["stage"]
    if stage == 5 and not is_staged(context.state):
        row = context.facts["frozen"]["impl_py"]
        verified = phases(context.state)["M1"]["submitted"]["impl"]
        if row["sha256"] != verified:
            raise Refused("is not what M1 was verified with", file=context.ws.impl, remedy="reopen_phase M1")
    if not workflow().stages[stage].levels:
        return
    demand = Demand(None, None, tuple(_modes(context.state)))
    report = verdicts.find_pass(context.ws, demand, context.report)
    context.report = report
    context.facts["verdict"] = verdicts.verdict_of(report)


def _modes(state: State) -> list[str]:
    return state["plan"]["modes"] if state["plan"] else []


# -- lint -------------------------------------------------------------------------------------------------


@_gate
def _lint_stage(context: Context) -> None:
    stage = context.args["stage"]
    context.facts["lint"] = require_clean(context.ws, LintEvent.COMPLETE_STAGE, stage=stage)


@_gate
def _lint_design(context: Context) -> None:
    context.facts["lint"] = require_clean(context.ws, LintEvent.SUBMIT_DESIGN, stage=4)


@_gate
def _lint_phase(context: Context) -> None:
    k = phase_number(context.args["phase"])
    context.facts["lint"] = require_clean(context.ws, LintEvent.SUBMIT_FOR_VERIFY, stage=5, phase=k)


# -- phases -----------------------------------------------------------------------------------------------


def _phase_name(context: Context) -> str:
    name = context.args.get("phase") or attempt_phase(context.state, context.args["attempt"])
    assert name is not None  # the condition `attempt_open` holds
    return name


def _impl(context: Context, name: str) -> Path:
    k = impl_key(context.state, phase_number(name))
    return context.ws.impl if k is None else context.ws.module_impl(k)


@_gate
def _phase_impl(context: Context) -> None:
    path = _impl(context, context.args["phase"])
    digest = sha256_file(path)
    if digest == ABSENT:
        raise Refused("is missing", file=path, remedy="dispatch the coder; it writes exactly this file")
    context.facts["submitted"] = {"impl": digest}


@_gate
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


@_gate
def _kept_functions(context: Context) -> None:
    """Whatever was verified must still be in the file; on submission the file's own functions are noted."""
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
    """A staged phase needs the first levels; the single module is the whole operator: all levels."""
    k = impl_key(context.state, phase_number(name))
    levels = None if k is None else workflow().phase_levels
    return Demand(k, levels, tuple(_modes(context.state)))


def _freeze_phase(context: Context, name: str) -> None:
    ws, k = context.ws, impl_key(context.state, phase_number(name))
    frozen = context.facts.setdefault("frozen", {})
    if k is None:
        frozen["impl_py"] = freeze(ws, ws.impl, 5, name)
        return
    trio = {"impl": ws.module_impl(k), "golden": ws.module_golden(k), "test": ws.module_test(k)}
    for kind, path in trio.items():
        if not path.is_file():
            raise Refused("is missing", file=path, remedy="a verified module has impl, golden and test")
        frozen[f"module{k}_{kind}_py"] = freeze(ws, path, 5, name)


@_gate
def _phase_pass(context: Context) -> None:
    name = context.args["phase"]
    report = verdicts.find_pass(context.ws, _demand(context, name), context.report)
    context.report = report
    context.facts["verdict"] = verdicts.verdict_of(report)
    _freeze_phase(context, name)


@_gate
def _verdict(context: Context) -> None:
    """Take the report that is named; one that is not sealed is not believed: the judge runs again."""
    from pypto_op.state import evidence

    name = _phase_name(context)
    demand = _demand(context, name)
    path = deliverables.report_path(context.ws, context.args.get("report"))
    report = context.report or evidence.read_report(path)
    verdicts.check_report(report, context.ws, demand.phase)
    if not evidence.check_seal(report):
        raise NeedsJudge(demand)
    if (report.get("error") or {}).get("kind") == "contract":
        verdicts.refuse_infra(report, context.ws)
    if report["status"] == Status.PASS:
        report = verdicts.find_pass(context.ws, demand, context.report)
        _freeze_phase(context, name)
    judged_again = context.report is not None
    context.report = report
    context.facts["verdict"] = verdicts.verdict_of(report, judged_again=judged_again)


@_gate
def _phase_failure(context: Context) -> None:
    """A failure needs the judge's FAIL or ERROR for these bytes, as a PASS needs its PASS."""
    from pypto_op.state import evidence

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
    if report["status"] == Status.PASS:
        raise Refused("the judge passed these bytes", file=context.ws.report, remedy="run complete_phase")
    context.report = report
    context.facts["verdict"] = verdicts.verdict_of(report)


# -- staged path: composition and integration -------------------------------------------------------------


def composition_hashes(ws: OpWorkspace, n: int) -> dict[str, str]:
    """Return the hashes of the files that a composition depends on."""
    files = {"golden": ws.golden, "module_golden": ws.module_golden(n), "interfaces": ws.interfaces}
    return {name: sha256_file(path) for name, path in files.items()}


@_gate
def _composition(context: Context) -> None:
    """The goldens of M_1..M_N, composed, must say what the operator's own golden says."""
    result = context.report
    if result is None:
        raise NeedsJudge(None)
    context.report = None  # a composition is no verdict on a kernel: it is not kept as one
    if result["hashes"] != composition_hashes(context.ws, module_count(context.state)):
        raise Refused("files changed while they were composed", file=context.ws.root, remedy="repeat it")
    if result["status"] != Status.PASS:
        raise Refused(
            f"the composition does not reproduce the golden: {result['summary']}",
            file=context.ws.interfaces,
            remedy="let the designer revise the module boundaries (roll back to stage 3 or 4)",
        )
    context.facts["composition"] = {**result, "at": context.facts["time"]}


@_gate
def _integration_files(context: Context) -> None:
    ws = context.ws
    for path in (ws.impl, ws.readme, ws.test):
        if not path.is_file():
            raise Refused("is missing", file=path, remedy="run the clean-up of the staged chain")
    require_clean(ws, LintEvent.SUBMIT_FOR_VERIFY, stage=5, file=ws.impl)
    context.facts["frozen"] = {"impl_py": freeze(ws, ws.impl, 5), "test_py": freeze(ws, ws.test, 5)}


# -- artefacts --------------------------------------------------------------------------------------------


@_gate
def _artifact_file(context: Context) -> None:
    name = context.args["name"]
    row = workflow().artifacts[name]
    path = artifact_path(context.ws, name)
    frozen = freeze(context.ws, path, row.stage)
    if frozen["sha256"] == ABSENT:
        raise Refused("is missing", file=path, remedy="write it first")
    claimed = context.args.get("hash")
    if claimed is not None and claimed != frozen["sha256"]:
        raise Refused(
            f"has the sha256 {frozen['sha256'][:12]}..., not {claimed[:12]}...",
            file=path,
            remedy="leave --hash out; the tool computes it",
        )
    context.facts["frozen"] = {name: frozen}


def run(context: Context, names: Iterable[str]) -> None:
    """Pass the gates in order; the first that refuses ends it.

    Raises:
        ContractError, InfraError, NeedsJudge: as the gates do.
    """
    for name in names:
        GATES[name](context)


def open_attempts(state: State) -> list[str]:
    """Return the attempts that wait for a verdict."""
    return [
        p["attempt"] for p in phases(state).values() if p["status"] == PhaseStatus.AWAITING_VERIFY and p["attempt"] is not None
    ]
