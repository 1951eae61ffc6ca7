"""What the benchmarks of the tuner work on: kernel, clock and ledger of an example, or of a fresh operator."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


@contextmanager
def bench(name: str, only: Collection[str] = ()) -> Iterator[dict[str, Any]]:
    """Give kernel, clock and ledger of an example, or of a fresh operator, in a scratch workspace.

    Args:
        only: the cases that its suite keeps; all of them where none is named.
    """
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
        if only:
            keep(ws.suite, only)
        contract = load_contract(ws)
        subject = resolve(ws, contract.total_modules)
        kernel = Kernel(subject.impl.read_text(encoding="utf-8"), subject.wrapper)
        with Clock(contract, subject, Mode.SIM, Limits()) as clock:
            yield {"ws": ws, "kernel": kernel, "clock": clock, "ledger": Ledger(op / "_debug" / "ledger")}


def keep(suite: Path, only: Collection[str]) -> None:
    """Leave in a suite's file the named cases alone, and what the wrapper refuses."""
    document = json.loads(suite.read_text(encoding="utf-8"))
    kept = [case for case in document["cases"] if case["id"] in only]
    assert {case["id"] for case in kept} == set(only), "the suite has no such case"
    suite.write_text(json.dumps({**document, "cases": kept}), encoding="utf-8")


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
