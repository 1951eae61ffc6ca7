"""Launches that end with the tensor graph: which ones do, their numbers are those of a whole run, nothing is kept alive."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from pypto_op.backends.sim import SimBackend
from pypto_op.vocabulary import Outcome
from pypto_op.workspace import OpWorkspace

from . import kernels
from .conftest import QUICK

pytestmark = [pytest.mark.sim, pytest.mark.usefixtures("numeric")]


def test_without_passes_the_numbers_are_the_same_in_each_call(operator: OpWorkspace) -> None:
    operator.impl.write_text(kernels.GOOD)
    inputs = [torch.randn(rows, 32, generator=torch.Generator().manual_seed(rows)) for rows in (2, 40, 3)]
    found = []
    for passes in (True, False):
        with SimBackend(passes=passes).open(operator.impl, "double_wrapper", operator, limits=QUICK) as session:
            runs = [session.run("case", [x]) for x in inputs]
        assert [(run.outcome, run.numeric, run.outputs_from_kernel) for run in runs] == [(Outcome.OK, True, True)] * 3
        assert not any(map(any, (run.sentinel_left for run in runs)))
        found.append([run.outputs[0] for run in runs])
    assert all(torch.equal(one, two) and torch.equal(one, 2 * x) for one, two, x in zip(*found, inputs, strict=True))


_SAYS = 'print("stage", int(pypto.get_host_options()["compile_stage"]))'
_STAGES = kernels.HEAD + kernels.KERNEL.replace("    pypto.set_vec", f"    {_SAYS}\n    pypto.set_vec") + kernels.WRAPPER
_ALL, _GRAPH = 0, 1


def _stages(stdout: str) -> list[int]:
    return [int(line.split()[1]) for line in stdout.splitlines() if line.startswith("stage")]


def test_passes_run_once_for_each_program_that_a_device_compiles(operator: OpWorkspace) -> None:
    operator.impl.write_text(_STAGES)
    inputs = [torch.randn(rows, 32, generator=torch.Generator().manual_seed(at)) for at, rows in enumerate((2, 40, 2, 40, 3, 2))]
    with SimBackend().open(operator.impl, "double_wrapper", operator, limits=QUICK) as session:
        runs = [session.run("case", [x]) for x in inputs]
    assert [run.outcome for run in runs] == [Outcome.OK] * len(runs)
    assert [_stages(run.stdout)[0] for run in runs] == [_ALL, _GRAPH, _GRAPH, _GRAPH, _GRAPH, _GRAPH]
    assert all(torch.equal(run.outputs[0], 2 * x) for run, x in zip(runs, inputs, strict=True))


def test_the_cost_model_gets_each_program_whole(operator: OpWorkspace) -> None:
    operator.impl.write_text(_STAGES)
    with SimBackend().open(operator.impl, "double_wrapper", operator, limits=QUICK, cost_model=True) as session:
        runs = [session.run("case", [torch.ones(2, 32)]) for _ in range(2)]
    assert all(set(_stages(run.stdout)) == {_ALL} and run.cost for run in runs)


@pytest.mark.parametrize("asked", [False, True])
def test_a_program_is_written_down_only_for_the_cost_model(operator: OpWorkspace, asked: bool) -> None:
    left = """
import os
from pathlib import Path

def double_wrapper(x):
    out = torch.empty_like(x)
    double_kernel(x, out)
    print("written", len(list(Path(os.environ["TILE_FWK_OUTPUT_DIR"]).glob("*/program.json"))))
    return out
"""
    operator.impl.write_text(kernels.HEAD + kernels.KERNEL + left)
    with SimBackend().open(operator.impl, "double_wrapper", operator, limits=QUICK, cost_model=asked) as session:
        run = session.run("case", [torch.ones(2, 32)])
    assert run.outcome is Outcome.OK, run.detail
    assert f"written {int(asked)}" in run.stdout.splitlines()


@pytest.mark.parametrize("fault", ["", "raise RuntimeError()", "return [(address, size) for address, size in found[::-1]]"])
def test_numbers_that_lie_elsewhere_are_never_taken(operator: OpWorkspace, fault: str) -> None:
    """The layout is pypto's own; a release with another one costs time, and no number."""
    where = kernels.HEAD + kernels.KERNEL.replace("    pypto.set_vec", f"    {_SAYS}\n    pypto.set_vec")
    program = f"""
from pypto_op.backends.worker import pypto_hooks, tensor_graph

if {fault!r}:
    find = tensor_graph._buffers
    def elsewhere(instance, data):
        found = find(instance, data)
        {fault or "pass"}
    tensor_graph._buffers = elsewhere
graph = tensor_graph.TensorGraph(always=False)
pypto_hooks.simulate(numeric=True, further=graph.options)
graph.install()
{where}
for at in (1.0, 3.0):
    x, out = torch.full((2, 32), at), torch.empty(2, 32)
    graph.expect(compiled=at == 3.0)
    double_kernel(x, out)
    print("right", bool((out == 2 * at).all()))
"""
    script = operator.root / "layout.py"
    script.write_text(program)
    command = [sys.executable, "-m", "pypto_op.cli", "script", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.count("right True") == 2
    assert _stages(done.stdout) == [_ALL, _ALL if fault else _GRAPH]


def test_an_operand_dies_when_the_kernel_lets_it_go(operator: OpWorkspace) -> None:
    kept = """
import weakref

def grown(tile):
    made = tile * 4.0
    first = weakref.ref(made.base())
    made = made * 0.5
    print("first operand", "lives" if first() is not None else "is gone")
    return made

"""
    inner = kernels.KERNEL.replace("tile * 2.0", "grown(tile)")
    assert inner != kernels.KERNEL
    operator.impl.write_text(kernels.HEAD + kept + inner + kernels.WRAPPER)
    with SimBackend().open(operator.impl, "double_wrapper", operator, limits=QUICK) as session:
        run = session.run("case", [torch.ones(2, 32)])
    assert run.outcome is Outcome.OK, run.detail
    assert "first operand is gone" in run.stdout and "lives" not in run.stdout
