"""An operator in a temporary workspace, and a way to run one candidate of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests import quickly

torch = pytest.importorskip("torch")
quickly.skip_without("pypto")

from pypto_op.backends import launcher, processes, sim  # noqa: E402
from pypto_op.backends.base import Limits, RunResult  # noqa: E402
from pypto_op.vocabulary import Outcome  # noqa: E402
from pypto_op.workspace import OpWorkspace  # noqa: E402

from . import kernels  # noqa: E402

QUICK = Limits(memory_mb=1500, case_seconds=60, startup_seconds=60, output_bytes=4096)
IMPATIENT = replace(QUICK, case_seconds=2, startup_seconds=2)


def assert_correct(result: RunResult, rows: int = 20) -> None:
    assert result.outcome is Outcome.OK, result.detail
    expected = torch.arange(rows * 32, dtype=torch.float32).reshape(rows, 32) * 2
    assert torch.equal(result.outputs[0], expected)


@pytest.fixture
def operator(tmp_path: Path) -> OpWorkspace:
    """The operator `double`: golden, inputs, and no implementation yet."""
    root = tmp_path / "custom" / "double"
    (root / "eval").mkdir(parents=True)
    (root / "double_golden.py").write_text(kernels.GOLDEN)
    (root / "test_double.py").write_text("SECRET = 1\n")
    (root / "eval" / "test_inputs.py").write_text(kernels.TEST_INPUTS)
    (root / "eval" / "adversarial_suite.json").write_text("{}")
    return OpWorkspace.at(root)


Run = Callable[..., RunResult]


@pytest.fixture
def run(operator: OpWorkspace) -> Iterator[Run]:
    """Run one candidate on one case; afterwards nothing of it may be left running or lying about."""
    before = _files_outside(operator)

    def run_candidate(
        source: str, *, rows: int = 20, limits: Limits = QUICK, enclose: bool = True, x: torch.Tensor | None = None
    ) -> RunResult:
        operator.impl.write_text(source)
        inputs = [torch.arange(rows * 32, dtype=torch.float32).reshape(rows, 32) if x is None else x]
        with sim.SimBackend(enclose=enclose).open(operator.impl, "double_wrapper", operator, limits=limits) as session:
            return session.run("case", inputs)

    yield run_candidate
    assert left_running() == []
    assert _files_outside(operator) == before
    runs = operator.debug_dir / "runs"
    assert not runs.exists() or list(runs.iterdir()) == []


def _files_outside(operator: OpWorkspace) -> set[str]:
    """Return every file of the temporary workspace that is not under the operator's `_debug/`."""
    workspace = operator.root.parents[1]
    return {
        str(path)
        for path in workspace.rglob("*")
        if operator.debug_dir not in path.parents and path not in (operator.debug_dir, operator.impl)
    }


def left_running() -> list[int]:
    """Return what still runs below the zygotes a moment after the session ended."""
    deadline = time.monotonic() + 60.0
    while True:
        left = [
            process
            for zygote in launcher.living_zygotes()
            for process in processes.tree_below(zygote)
            if not processes.is_gone(process)
        ]
        if not left or time.monotonic() > deadline:
            return left
        time.sleep(0.02)
