"""Writes `_debug/tolerance_analysis.py`, and runs it where it can do no harm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from pypto_op.backends.base import Limits
from pypto_op.backends.reference import ReferenceSession
from pypto_op.documents.policy import Policy
from pypto_op.documents.writing import write_atomically
from pypto_op.errors import ContractError, unwritable
from pypto_op.judge.cases.calling import positions, used_inputs
from pypto_op.judge.cases.contract import Contract
from pypto_op.judge.cases.inputs import FRESH, with_seed
from pypto_op.judge.cases.subject import Subject
from pypto_op.workspace import OpWorkspace

FILE = "tolerance_analysis.py"
"""Name of the script (debugger seed), in `_debug/`."""

Drift = dict[str, list[dict[str, Any]]]
"""Twin -> metrics of each output (`metrics.METRICS`)."""


@dataclass(frozen=True)
class Script:
    """A written reproducer."""

    path: Path  # the file
    workspace: OpWorkspace  # the operator
    case_id: str  # the case that it is about

    def run(self, changes: Sequence[Mapping[str, Any]], limits: Limits) -> list[Drift]:
        """Run the script in a process of its own, and return the drift for each change of the case ({}: the case itself).

        Raises:
            ContractError: golden or inputs do not run on the case.
            InfraError: the process cannot be started.
        """
        with ReferenceSession(self.workspace, limits=limits) as session:
            drifts: list[Drift] = session.call(self.path, "analyse", [dict(change) for change in changes])
        return drifts


def write_script(contract: Contract, subject: Subject, case: Mapping[str, Any], seed: int, policy: Policy) -> Script:
    """Write the reproducer of one case.

    Raises:
        ContractError: the golden's signature cannot be read.
        InfraError: `_debug/` cannot be written.
    """
    ws = subject.workspace
    path = ws.debug_dir / FILE
    names = contract.input_names
    taken = positions(subject.golden, subject.golden_function, names, used_inputs(contract.interfaces, subject.phase))
    text = _render(
        op=ws.name,
        case_id=str(case["id"]),
        seed=seed,
        drawn=with_seed(case, seed) if case.get(FRESH) else None,
        script=f"custom/{ws.name}/_debug/{FILE}",
        golden_file=_relative(subject.golden, ws),
        golden=subject.golden_function,
        takes=[names[i] for i in taken],
        outputs=list(contract.leaf_names(subject.phase)),
        policy=_short(policy),
    )
    try:
        ws.debug_dir.mkdir(exist_ok=True)
    except OSError as error:
        raise unwritable(error, ws.debug_dir) from None
    write_atomically(path, text)
    return Script(path, ws, str(case["id"]))


def _short(policy: Policy) -> dict[str, Any]:
    """Return a policy for a person's eye: the numbers of the dtypes that kernels return."""
    if policy.needs_twins:
        return {"name": "allclose"}  # the twins are what is being compared here; how far off they are is told anyway
    rows = policy.as_dict()["per_dtype"]
    kept = {dtype: rows[dtype] for dtype in ("float32", "float16", "bfloat16") if dtype in rows}
    return {"name": policy.name, "version": policy.version, "per_dtype": kept}


def _relative(path: Path, ws: OpWorkspace) -> str:
    if not path.is_relative_to(ws.root):
        raise ContractError("lies outside the operator's directory", file=path, remedy="move it there")
    return path.relative_to(ws.root).as_posix()


def _render(**context: Any) -> str:
    folder = Path(__file__).with_name("templates")
    # Python, not HTML: every value goes through `repr` or was checked by a schema.
    environment = Environment(  # noqa: S701
        loader=FileSystemLoader(folder), undefined=StrictUndefined, keep_trailing_newline=True, trim_blocks=True
    )
    environment.filters["repr"] = repr
    return environment.get_template("tolerance_analysis.py.j2").render(**context)
