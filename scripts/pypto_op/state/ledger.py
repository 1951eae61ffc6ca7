"""What the machine itself writes into MEMORY.md: the verification log, the module tables, the status block, rejections.

For people: nothing reads it back, and a MEMORY.md that cannot be written holds up no transition. Metrics only, taken
from reports that have a schema, so no golden value gets in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pypto_op.errors import PyptoOpError
from pypto_op.modes import devices_first
from pypto_op.state.facts import Arguments, Facts
from pypto_op.state.model import State, impl_key, is_staged, module_count, phase_names, phase_number, phases
from pypto_op.vocabulary import Mode, PhaseStatus, Status
from pypto_op.workspace import OPERATORS_DIR, OpWorkspace

MODULES = "Module decomposition (mandatory)"
MODULE_COLUMNS = ("ID", "role", "boundary tensors", "heavy ops", "light merged", "CU", "depends on")
FILES = "Staged module files"
FILE_COLUMNS = ("file", "modules in one jit", "verified")
_MOST = 400

_REJECTIONS = {
    "record_composition": "Composition Rejection",
    "submit_design": "Architecture/Design Rejection",
    "freeze_plan": "Architecture/Design Rejection",
}


def write(ws: OpWorkspace, state: State, action: str, args: Arguments, facts: Facts, report: Mapping[str, Any] | None) -> str:
    """Write what an action that was carried out means for MEMORY.md.

    Args:
        facts: what the gates found.
        report: the verdict that was taken, if one was.

    Returns:
        Why it could not be written, or "".
    """
    if not ws.memory.is_file():
        return ""
    try:
        _write(ws, state, action, args, facts, report)
    except PyptoOpError as error:
        return error.one_line()
    return ""


def reject(ws: OpWorkspace, action: str, facts: Facts) -> None:
    """Write the section that says why a design or a composition was refused, once for each reason."""
    about = {str(ws.interfaces), str(ws.design)}
    refusals = [refusal for refusal in facts.get("refusals", []) if str(refusal.get("file")) in about]
    if action not in _REJECTIONS or not refusals or not ws.memory.is_file():
        return
    from pypto_op.documents import markdown, memory
    from pypto_op.documents.reading import read_text

    title = _REJECTIONS[action]
    text = "\n".join(f"- {_sentence(ws, refusal)}" for refusal in refusals)
    try:
        told = [s for s in markdown.sections(read_text(ws.memory)) if s.title.startswith(title)]
        if not told or told[-1].text.strip() != text:
            memory.append_section(ws.memory, title, text, now=_when(facts))
    except PyptoOpError:
        return  # the refusal itself is told to the caller


def _sentence(ws: OpWorkspace, refusal: Mapping[str, Any]) -> str:
    file = refusal.get("file")
    name = "" if file is None else f"`{str(file).removeprefix(f'{ws.root}/')}`: "
    place = f"{refusal['where']}: " if refusal.get("where") else ""
    return " ".join(f"{name}{place}{refusal['problem']}".split())


def _write(ws: OpWorkspace, state: State, action: str, args: Arguments, facts: Facts, report: Mapping[str, Any] | None) -> None:
    from pypto_op.documents.memory import LOG, LOG_COLUMNS
    from pypto_op.documents.memory_tables import put_rows, set_status

    if action == "freeze_plan":
        put_rows(ws.memory, MODULES, MODULE_COLUMNS, _module_rows(ws))
    if "verdict" in facts and report is not None:
        put_rows(ws.memory, LOG, LOG_COLUMNS, [_verdict_row(ws, state, _phase_of(args), facts, report)])
    if action == "record_composition":
        put_rows(ws.memory, LOG, LOG_COLUMNS, [_composition_row(ws, state, facts)])
    verified = [name for name in phase_names(state) if phases(state)[name]["status"] == PhaseStatus.VERIFIED]
    if action in ("record_verdict", "complete_phase") and verified:
        put_rows(ws.memory, FILES, FILE_COLUMNS, [(_file_of(ws, state, n), _modules_in(n), "yes") for n in verified])
    if state["plan"] is not None:
        set_status(ws.memory, _status(ws, state, verified))


def _phase_of(args: Arguments) -> str | None:
    return args.get("phase") or (args["attempt"].split(".", 1)[0] if "attempt" in args else None)


def _file_of(ws: OpWorkspace, state: State, name: str) -> str:
    k = impl_key(state, phase_number(name))
    return ws.impl.name if k is None else ws.module_impl(k).name


def _modules_in(name: str) -> str:
    return name if name == "M1" else f"M1..{name}"


def _whole(state: State) -> str:
    return _modules_in(f"M{module_count(state)}")


# -- the status block -------------------------------------------------------------------------------------


def _status(ws: OpWorkspace, state: State, verified: Sequence[str]) -> dict[str, Any]:
    """Return what the state says, under the keys of the status block; the other keys are people's."""
    active = state["stage5_phases"]["active_phase"]
    values: dict[str, Any] = {
        "decomposition_level": "L1" if is_staged(state) else "L0",
        "module_count": module_count(state),
        "active_module": active or "none",
        "current_staged_file": _file_of(ws, state, active or verified[-1]) if active or verified else None,
        "modules_pypto_verified": [
            {"id": name, "evidence": f"report {phases(state)[name].get('evidence', '')[:12]}", "detailed_tensor_compare_ok": True}
            for name in verified
        ],
    }
    if "6" in state["evidence"]:
        modes = state["plan"]["modes"] if state["plan"] else []
        values["correctness"] = f"{devices_first(map(Mode, modes or [Mode.SIM]))[0]}_ok"
    return values


# -- rows -------------------------------------------------------------------------------------------------


def _module_rows(ws: OpWorkspace) -> list[tuple[str, ...]]:
    """Return a row per module, from the contract and the table in section 0.5 of DESIGN.md."""
    from pypto_op.documents import interfaces, markdown
    from pypto_op.documents.reading import read_text

    wiring = interfaces.load(ws.interfaces)
    design = [table for table in markdown.tables(read_text(ws.design)) if table.column("boundary") is not None]
    planned = {row[0].strip(): (design[0], row) for row in (design[0].rows if design else ())}

    def said(module: str, *words: str) -> str:
        if module not in planned:
            return ""
        table, row = planned[module]
        column = table.column(*words)
        return row[column] if column is not None else ""

    rows: list[tuple[str, ...]] = []
    for module in wiring.modules:
        name = f"M{module.id}"
        boundary = ", ".join(f"{port.name} [{', '.join(port.shape)}]" for port in wiring.live_out(module.id))
        heavy = ", ".join(module.heavy_ops) if module.heavy_ops is not None else said(name, "heavy")
        needs = sorted({port.module for port in module.inputs if port.module is not None})
        units = f"{module.cu:g}" if module.cu is not None else said(name, "cu")
        role = f"{module.name}: {module.description}" if module.description else module.name
        rows.append((name, role, boundary, heavy, said(name, "light"), units, ", ".join(f"M{j}" for j in needs) or "-"))
    return rows


def _verdict_row(ws: OpWorkspace, state: State, name: str | None, facts: Facts, report: Mapping[str, Any]) -> tuple[str, ...]:
    k = None if name is None else impl_key(state, phase_number(name))
    file = ws.impl.name if k is None else ws.module_impl(k).name
    rtol, atol = _tolerance(report)
    stats = f"{report['cases_passed']} of {report['cases_total']} cases"
    passed = report["status"] not in (Status.FAIL, Status.ERROR, Status.SKIPPED)
    if passed:
        stats += _worst(report)
    else:
        stats += f"; {facts['verdict'].get('failure_category', 'other')}: {facts['verdict'].get('summary', '')[:_MOST]}"
    words = ["pypto-op verify", f"{OPERATORS_DIR}/{ws.name}", "--modes", ",".join(report["per_mode_status"])]
    words += [] if k is None else ["--up-to-module", str(k)]
    levels = report["selection"]["levels"]
    words += ["--levels", ",".join(levels)] if levels else []
    return (
        _when(facts).strftime("%Y-%m-%d %H:%M:%S"),
        name or _whole(state),
        file,
        ", ".join(dict.fromkeys(leaf["name"] for _, leaf in _leaves(report))) or "-",
        rtol,
        atol,
        "true" if passed else "false" if report["status"] == Status.FAIL else "-",
        f"{stats}; report {facts['verdict']['report_sha256'][:12]}",
        f"`{' '.join(words)}`",
    )


def _composition_row(ws: OpWorkspace, state: State, facts: Facts) -> tuple[str, ...]:
    result = facts["composition"]
    tensors = ", ".join(dict.fromkeys(row["tensor"] for row in result.get("triples", []))) or "-"
    return (
        _when(facts).strftime("%Y-%m-%d %H:%M:%S"),
        _whole(state),
        ws.module_golden(module_count(state)).name,
        tensors,
        "composition",
        "composition",
        "true",
        f"the composed goldens reproduce {ws.golden_name()} on {result['pairs']} pairs of seed and shape",
        f"`pypto-op verify {OPERATORS_DIR}/{ws.name} --compose`",
    )


def _leaves(report: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """Return (case, leaf) of every comparison of a report."""
    return [
        (check["id"], leaf)
        for check in report["checks"]
        for result in check.get("modes", {}).values()
        for leaf in result.get("per_tensor", [])
    ]


def _worst(report: Mapping[str, Any]) -> str:
    told = [(leaf["max_violation"], case, leaf) for case, leaf in _leaves(report) if leaf.get("max_violation") is not None]
    if not told:
        return ""
    share, case, leaf = max(told, key=lambda entry: entry[0])
    differences = [
        f"max {word} diff {leaf[f'max_{word}_diff']:.3g}" for word in ("abs", "rel") if leaf.get(f"max_{word}_diff") is not None
    ]
    return "; ".join([f"; worst error {share:.2g} of the tolerance ({case}, {leaf['name']})", *differences])


def _tolerance(report: Mapping[str, Any]) -> tuple[str, str]:
    policy = report["policy"]
    table = policy.get("per_dtype", {})
    rows = [table[dtype] for dtype in {leaf["dtype"] for _, leaf in _leaves(report)} if dtype in table]
    if policy.get("name") != "allclose":
        word = f"{policy.get('name')}@{policy.get('version')}"
        return word, word
    pair = [{row.get(bound) for row in rows} for bound in ("rtol", "atol")]
    rtol, atol = (f"{values.pop():g}" if len(values) == 1 else "per dtype (SPEC.md 7)" for values in pair)
    return rtol, atol


def _when(facts: Facts) -> Any:
    from datetime import datetime

    return datetime.fromisoformat(facts["time"])
