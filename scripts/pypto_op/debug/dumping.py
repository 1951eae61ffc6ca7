"""`pypto-op debug dump`: makes in `sim` what the readers of a run's files want, and leaves it in `_debug/dumps/`."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from pypto_op.debug.running import ALL_GRAPHS, TENSORS, Desk, scratch
from pypto_op.errors import ContractError
from pypto_op.judge.cases.contract import load_contract
from pypto_op.judge.cases.subject import resolve
from pypto_op.workspace import OpWorkspace

_WANTED = {**ALL_GRAPHS, "verify": TENSORS["verify"]}
"""The graph around each pass, and the result of each operation: what the readers of a run ask for."""


def dump(ws: OpWorkspace, case: str, *, impl: Path | None = None, up_to_module: str | None = None) -> tuple[dict[str, Any], str]:
    """Run a kernel once and keep its dumps; return where they lie, and how the kernel ended where it did not end well.

    A kernel that fails leaves the graphs up to its failure, so that is no error here.

    Raises:
        ContractError: no such case, or nothing was dumped.
        InfraError: this machine has no simulator with numbers.
    """
    contract = load_contract(ws)
    subject = resolve(ws, contract.total_modules, impl=impl, up_to=up_to_module)
    chosen = contract.select(None, case)[0]
    folder = ws.debug_dir / "dumps"
    shutil.rmtree(folder, ignore_errors=True)
    with scratch(ws, "dump") as values, Desk(contract, subject, values) as desk:
        desk.make_inputs(chosen)
        run = desk.kernel("dumps", _WANTED)
        (run.folder / "outputs.safetensors").unlink(missing_ok=True)
        (run.folder / "outputs.json").unlink(missing_ok=True)
        run.folder.rename(folder)
    (folder / "log.txt").write_text("\n".join(filter(None, (run.words, run.text))), encoding="utf-8")
    found = sorted(str(one) for one in folder.glob("output_*"))
    if not found:
        raise ContractError(f"the kernel dumped nothing: {run.words}", file=subject.impl)
    files = [*found, str(folder / "log.txt")]
    result = {"schema_version": 1, "op_name": ws.name, "written": True, "files": files}
    return result, run.words
