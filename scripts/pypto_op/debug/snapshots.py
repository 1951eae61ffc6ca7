"""`pypto-op debug snapshot-generate` and `snapshot-bisect`: from which iteration on is each intermediate off?"""

from __future__ import annotations

import json
import shlex
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pypto_op.backends.base import Buffer, RunResult
from pypto_op.backends.reference import ReferenceSession
from pypto_op.backends.registry import get_backend
from pypto_op.debug import snapshot_golden, snapshot_kernel, snapshot_manifest
from pypto_op.debug.snapshot_manifest import Intermediate, Manifest
from pypto_op.documents import schema
from pypto_op.documents.policy import get_policy
from pypto_op.documents.reading import read_text
from pypto_op.documents.writing import write_atomically
from pypto_op.errors import ContractError
from pypto_op.judge.cases import inspection
from pypto_op.judge.cases.calling import positions, used_inputs
from pypto_op.judge.cases.contract import Contract, load_contract
from pypto_op.judge.cases.inputs import DEFAULT_SEED, with_seed
from pypto_op.judge.cases.subject import Subject, resolve
from pypto_op.vocabulary import Mode, Outcome, Status
from pypto_op.workspace import OpWorkspace

if TYPE_CHECKING:
    from pypto_op.documents.policy import Policy

REPORT = "snapshot_report.json"
UNFILLED = "GOLDEN_STUB_UNFILLED"
"""Status of an intermediate without a `golden_expression`."""


class Snapshot:
    """One manifest, with the operator that it is about.

    Raises:
        ContractError: the manifest or a document of the operator is wrong.
    """

    def __init__(self, path: Path) -> None:
        self.manifest: Manifest = snapshot_manifest.load(path)
        ws = OpWorkspace.owning(path)
        if ws is None or ws.name != self.manifest.op:
            raise ContractError(f"lies in no folder of the operator {self.manifest.op}", file=path, remedy="put it into _debug/")
        self.path, self.ws = path, ws
        self.contract: Contract = load_contract(ws)
        # The integrated kernel stands for the last phase, and for the only one of a single module.
        staged = ws.module_impl(self.manifest.phase).is_file()
        self.subject: Subject = resolve(ws, self.contract.total_modules, up_to=self.manifest.phase if staged else None)
        self.case: Mapping[str, Any] = self.contract.select(None, self.manifest.case)[0]
        self.sizes = {
            one.name: snapshot_manifest.sizes(one, self.case.get("shape", {}), path) for one in self.manifest.intermediates
        }
        stem = f"M{self.manifest.phase}"
        self.kernel = ws.debug_dir / f"{ws.name}_{stem}_snapshot.py"
        self.script = ws.debug_dir / "run_snapshot_bisect.sh"

    def recording_golden(self) -> str:
        """Return the golden's text with what records the intermediates.

        Raises:
            ContractError: it has no such function or loop.
        """
        golden, function = self.subject.golden, self.subject.golden_function
        return snapshot_golden.recorded(read_text(golden), golden, function, self.manifest.phase, self.manifest.intermediates)


def generate(path: Path, *, dry_run: bool = False) -> dict[str, Any]:
    """Write the probed kernel and the script; with `dry_run` only say what would be written.

    The recording golden is made to see that it can be made, and is not kept: its text is the golden's, which debugger and
    coder may not read.

    Raises:
        ContractError: see `Snapshot`; a marker is missing, or the golden has no such loop.
    """
    one = Snapshot(path)
    wanted, subject = one.manifest.intermediates, one.subject
    one.recording_golden()
    texts = {
        one.kernel: snapshot_kernel.probed(read_text(subject.impl), subject.impl, subject.wrapper, wanted, one.sizes),
        one.script: f'#!/bin/sh\nexec pypto-op debug snapshot-bisect --manifest {shlex.quote(str(one.path.resolve()))} "$@"\n',
    }
    if not dry_run:
        for file, text in texts.items():
            write_atomically(file, text)
        one.script.chmod(0o755)
    return {"schema_version": 1, "op_name": one.ws.name, "written": not dry_run, "files": [str(file) for file in texts]}


def bisect(path: Path, modes: Sequence[Mode] | None = None) -> dict[str, Any]:
    """Run the probed kernel against the recording golden and write `_debug/snapshot_report.json`; return what it holds.

    Args:
        modes: in the place of the manifest's.

    Raises:
        ContractError: see `generate`; the inputs do not run.
    """
    generate(path)
    one = Snapshot(path)
    chosen = tuple(modes or one.manifest.modes)
    rows: dict[str, Any] = {each.name: {"line": _line(one, each), "per_mode": {}} for each in one.manifest.intermediates}
    # Outside of the workspace, readable by this user alone, and gone when the values are there.
    with tempfile.TemporaryDirectory(prefix="pypto-op-") as private, ReferenceSession(one.ws) as references:
        golden = Path(private) / "golden_modular_snapshot.py"
        golden.write_text(one.recording_golden(), encoding="utf-8")
        inputs = references.make_inputs(with_seed(one.case, int(one.case.get("seed", DEFAULT_SEED))))
        for each in one.manifest.intermediates:
            expected = _expected(one, references, inputs, each, golden)
            for mode in chosen:
                rows[each.name]["per_mode"][str(mode)] = _compared(one, mode, inputs, each, expected)
    per_mode = {str(mode): str(_worst(rows, str(mode))) for mode in chosen}
    first = [(row["per_mode"][mode]["drift_onset_iter"], name) for mode in per_mode for name, row in rows.items()]
    drifting = sorted((onset, list(rows).index(name), name) for onset, name in first if onset is not None)
    report = {
        "schema_version": 1,
        "op_name": one.ws.name,
        "module": f"M{one.manifest.phase}",
        "case_id": one.manifest.case,
        "modes": [str(mode) for mode in chosen],
        "per_mode_status": per_mode,
        "intermediates": rows,
        "first_drift": None if not drifting else {"name": drifting[0][2], "iter": drifting[0][0]},
    }
    schema.check(report, "snapshot_report")
    write_atomically(one.ws.debug_dir / REPORT, json.dumps(report, indent=2, allow_nan=False) + "\n")
    return report


def _line(one: Snapshot, each: Intermediate) -> int | None:
    """Return the line of the kernel's file, without probes, at whose marker the value is taken."""
    lines = read_text(one.subject.impl).splitlines()
    return next((n for n, line in enumerate(lines, 1) if line.strip() == f"# <<< SNAPSHOT:{each.probe_point}"), None)


def _expected(
    one: Snapshot, references: ReferenceSession, inputs: Sequence[tuple[str, Any]], each: Intermediate, golden: Path
) -> RunResult | None:
    if each.expression is None:
        return None
    handed = _handed(one, inputs, one.subject.golden, one.subject.golden_function)
    return references.golden(handed, function=f"module_{one.manifest.phase}_inspect", file=golden, probe=each.name)


def _handed(one: Snapshot, inputs: Sequence[tuple[str, Any]], file: Path, function: str) -> list[Any]:
    names = [name for name, _ in inputs]
    used = used_inputs(one.contract.interfaces, one.subject.phase)
    return [inputs[i][1] for i in positions(file, function, names, used)]


def _compared(
    one: Snapshot, mode: Mode, inputs: Sequence[tuple[str, Any]], each: Intermediate, expected: RunResult | None
) -> dict[str, Any]:
    """Return the row of one intermediate in one mode; differences only, no values."""
    if expected is None:
        return _row(UNFILLED, f"{each.name} has no golden_expression in the manifest")
    if expected.outcome is not Outcome.OK:
        return _row(str(Status.ERROR), f"the golden: {expected.detail}")
    backend = get_backend(mode)
    available = backend.availability()
    if not (available.ok and available.numeric):
        return _row(str(Status.SKIPPED), available.reason)
    wanted = expected.outputs[0]
    buffer = Buffer(each.buffer, tuple(wanted.shape), each.dtype)
    handed = _handed(one, inputs, one.subject.impl, one.subject.wrapper)
    with backend.open(one.kernel, one.subject.wrapper, one.ws) as session:
        run = session.run(f"snapshot_{each.name}", handed, buffer=buffer)
    if run.outcome is not Outcome.OK:
        return _row(str(Status.ERROR), f"the kernel: {run.detail}")
    policy: Policy = get_policy(_tolerance(one.manifest))
    per_iter = inspection.per_iteration(run.outputs[0], wanted.to(run.outputs[0].dtype), policy)
    onset = inspection.onset(per_iter)
    row = _row(str(Status.PASS if onset is None else Status.FAIL), "")
    return {**row, "drift_onset_iter": onset, "per_iter": per_iter}


def _tolerance(manifest: Manifest) -> dict[str, Any]:
    base = get_policy("allclose@1").as_dict()
    pair = {"atol": manifest.atol, "rtol": manifest.rtol}
    return {**base, "per_dtype": dict.fromkeys(base["per_dtype"], pair)}


def _row(status: str, reason: str) -> dict[str, Any]:
    return {"status": status, "reason": reason, "drift_onset_iter": None, "per_iter": []}


def _worst(rows: Mapping[str, Any], mode: str) -> Status:
    told = [row["per_mode"][mode]["status"] for row in rows.values()]
    return Status.worst([Status.SKIPPED if status == UNFILLED else Status(status) for status in told])
