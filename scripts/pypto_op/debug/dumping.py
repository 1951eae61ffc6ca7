"""`pypto-op debug dump`: makes in `sim` what the readers of a run's files want, and leaves it in `_debug/dumps/`."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from pypto_op.backends.reference import ReferenceSession
from pypto_op.debug.running import ALL_GRAPHS, GRAPHS, TENSORS, run_child
from pypto_op.errors import ContractError
from pypto_op.judge.calling import positions, used_inputs
from pypto_op.judge.contract import load_contract
from pypto_op.judge.inputs import DEFAULT_SEED, with_seed
from pypto_op.judge.subject import resolve
from pypto_op.workspace import OpWorkspace

WANTED = {"graphs": GRAPHS, "passes": ALL_GRAPHS, "tensors": TENSORS, "all": {**ALL_GRAPHS, "verify": TENSORS["verify"]}}
"""What can be dumped: the recorded graph; the graph around each pass; the result of each operation; the last two."""


def dump(
    ws: OpWorkspace, case: str, what: str, *, impl: Path | None = None, up_to_module: str | None = None
) -> tuple[dict[str, Any], str]:
    """Run a kernel once and keep its dumps; return where they lie, and how the kernel ended where it did not end well.

    A kernel that fails leaves the graphs up to its failure, so that is no error here.

    Raises:
        ContractError: no such case, or nothing was dumped.
        InfraError: this machine has no simulator with numbers.
    """
    contract = load_contract(ws)
    subject = resolve(ws, contract.total_modules, impl=impl, up_to=up_to_module)
    chosen = contract.select(None, case)[0]
    with ReferenceSession(ws) as session:
        made = session.make_inputs(with_seed(chosen, int(chosen.get("seed", DEFAULT_SEED))))
    names = [name for name, _ in made]
    used = used_inputs(contract.interfaces, subject.phase)
    inputs = [made[i][1] for i in positions(subject.impl, subject.wrapper, names, used)]
    folder = ws.debug_dir / "dumps"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    run = run_child("kernel", subject.impl, subject.wrapper, inputs, folder, dumps=WANTED[what])
    for path in (*folder.glob("inputs.*"), *folder.glob("outputs.*"), folder / "request.json"):
        path.unlink(missing_ok=True)
    (folder / "log.txt").write_text(run.text, encoding="utf-8")
    found = sorted(str(one) for one in folder.glob("output_*"))
    if not found:
        raise ContractError(f"the kernel dumped nothing: {run.last_words}", file=subject.impl)
    files = [*found, str(folder / "log.txt")]
    result = {"schema_version": 1, "op_name": ws.name, "written": True, "files": files}
    return result, "" if run.ok else run.last_words
