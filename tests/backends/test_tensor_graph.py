"""A session that ends with the tensor graph: the numbers of a whole run, and nothing of a kernel is kept alive meanwhile."""

from __future__ import annotations

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
