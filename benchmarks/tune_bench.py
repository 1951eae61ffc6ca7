"""What the benchmarks of the tuner work on: kernel, clock and ledger of an example, or of a fresh operator."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


@contextmanager
def bench(name: str) -> Iterator[dict[str, Any]]:
    """Give kernel, clock and ledger of an example, or of a fresh operator, in a scratch workspace."""
    from pypto_op.backends.base import Limits
    from pypto_op.judge.cases.contract import load_contract
    from pypto_op.judge.cases.subject import resolve
    from pypto_op.tuning.clock import Clock
    from pypto_op.tuning.kernel import Kernel
    from pypto_op.tuning.ledger import Ledger
    from pypto_op.vocabulary import Mode
    from pypto_op.workspace import OpWorkspace

    with tempfile.TemporaryDirectory() as folder:
        op = _workspace(name, Path(folder))
        ws = OpWorkspace.at(op)
        contract = load_contract(ws)
        subject = resolve(ws, contract.total_modules)
        kernel = Kernel(subject.impl.read_text(encoding="utf-8"), subject.wrapper)
        with Clock(contract, subject, Mode.SIM, Limits()) as clock:
            yield {"ws": ws, "kernel": kernel, "clock": clock, "ledger": Ledger(op / "_debug" / "ledger")}


def _workspace(name: str, folder: Path) -> Path:
    """Copy an example, or make a fresh operator's suite by `harness new` and put its right kernel beside it."""
    from benchmarks import fresh, fresh_kernels, process
    from pypto_op.bundle_files import bundle_root

    example = bundle_root() / "examples" / "ops" / name
    if example.is_dir():
        return Path(shutil.copytree(example, folder / "custom" / name))
    op = fresh.workspace(name, folder)
    made = process.command(["harness", "new", str(op)], cwd=folder)
    if made.code:
        raise RuntimeError(made.last_lines(8))
    shutil.copy(fresh_kernels.FIXTURES / name / f"{name}_impl.py", op)
    return op
