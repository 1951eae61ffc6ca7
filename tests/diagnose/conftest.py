"""Runs the example kernels of the knowledge base in the simulator, as the judge runs a candidate."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pypto_op.diagnose.knowledge import Example
from pypto_op.workspace import OpWorkspace

RunExample = Callable[[Example, str], tuple[str, str]]


@pytest.fixture
def operator(tmp_path: Path) -> OpWorkspace:
    root = tmp_path / "custom" / "example"
    (root / "eval").mkdir(parents=True)
    return OpWorkspace.at(root)


@pytest.fixture
def run_example(operator: OpWorkspace) -> RunExample:
    """Return a function that runs an example's source and returns its outcome and everything that was said."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("pypto")
    from pypto_op.backends.base import Limits
    from pypto_op.backends.sim import SimBackend

    limits = Limits(memory_mb=3000, case_seconds=60, startup_seconds=60)

    def run(example: Example, source: str) -> tuple[str, str]:
        operator.impl.write_text(source)
        torch.manual_seed(0)
        inputs = [torch.randn(shape).to(getattr(torch, dtype)) for shape, dtype in example.inputs]
        backend = SimBackend()
        if not backend.availability().numeric:
            pytest.skip(backend.availability().reason)
        with backend.open(operator.impl, "example_wrapper", operator, limits=limits, cost_model=example.cost_model) as session:
            result = session.run("case", inputs)
        return str(result.outcome), f"{result.outcome}: {result.detail}\n{result.stdout}\n{result.stderr}"

    return run
