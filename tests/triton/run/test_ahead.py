"""Moved cases are asked for while the implementation runs on the one before: questions about that one still find it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from tests.triton import lab

from pypto_op.backends.base import Limits
from pypto_op.triton.run import ahead
from pypto_op.triton.run.inputs import skewed
from pypto_op.triton.run.processes.sessions import TaskSession, Told
from pypto_op.triton.run.setup.targets import choose
from pypto_op.vocabulary import Outcome

SEED = 5


def test_what_is_computed_otherwise_is_the_case_before_the_one_asked_for_ahead(tmp_path: Path) -> None:
    session = TaskSession(lab.folder(tmp_path, lab.EXPO, lab.impl("return x")), choose("interpret"), Limits())
    with ThreadPoolExecutor(1) as beside:
        try:
            session.open(SEED)
            first = session.case(0, SEED)
            session.open(SEED + 1)
            session.ahead = beside.submit(session.case, 0, SEED + 1, move=skewed.LOW, holds=True)
            of_first = session.otherwise(SEED).truth()
            second = session.ahead.result()
            session.ahead = None
            of_second = session.otherwise(SEED + 1).truth()
        finally:
            session.close()
    for (given, _), truth in ((first, of_first), (second, of_second)):
        assert truth.dtype == torch.float64
        torch.testing.assert_close(truth, given["inputs"][0].double().exp())
    assert not torch.equal(of_first, of_second)


SCALED = """
    import os

    import torch
    import torch.nn as nn


    class Model(nn.Module):
        def forward(self, x):
            if float(x.abs().max()) > 100.0:
                os._exit(3)
            return x / (x * x).mean(dim=-1, keepdim=True).sqrt()


    def get_inputs():
        return [torch.randn(8, 64)]


    def get_init_inputs():
        return []
"""
"""The root of a mean square; the process dies where inputs are moved far."""

SCALED_KERNEL = """
@triton.jit
def scaled_kernel(x_ptr, out_ptr, EPS: tl.constexpr, COLS: tl.constexpr):
    i = tl.program_id(0) * COLS + tl.arange(0, COLS)
    x = tl.load(x_ptr + i)
    tl.store(out_ptr + i, x / tl.sqrt(tl.sum(x * x, axis=0) / COLS + EPS))
"""
SCALED_FORWARD = """
out = torch.empty_like(x)
scaled_kernel[(x.shape[0],)](x, out, EPS={eps}, COLS=64)
return out
"""


@pytest.mark.parametrize(("eps", "status"), [("0.0", "PASS"), ("1e-6", "FAIL")])
def test_a_reference_that_dies_on_the_next_inputs_changes_no_verdict_on_the_last(eps: str, status: str, tmp_path: Path) -> None:
    """An epsilon shows where inputs are small, which is the step before the one that ends the process."""
    implementation = lab.impl(SCALED_FORWARD.format(eps=eps), kernels=SCALED_KERNEL)
    result = lab.verify(lab.folder(tmp_path, SCALED, implementation))
    assert result["status"] == status
    if status == "FAIL":
        (failure,) = result["failures"]
        assert failure["error_type"] == "PrecisionError" and skewed.TOLD[skewed.HIGH] in failure["error_msg"]
    else:
        assert any("the reference failed when its inputs were moved" in line for line in result["caveats"])


def test_a_large_case_is_asked_for_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bool] = []
    kept = TaskSession.case

    def case(self: TaskSession, index: int, seed: int, **how: object) -> object:
        asked.append(bool(how.get("holds")))
        return kept(self, index, seed, **how)  # type: ignore[arg-type]

    monkeypatch.setattr(TaskSession, "case", case)
    project = lab.folder(tmp_path, lab.EXPO, lab.impl("return run(exp_kernel, x)", kernels=lab.EXP_KERNEL))
    assert lab.verify(project)["status"] == "PASS" and any(asked)
    asked.clear()
    monkeypatch.setattr(ahead, "_MOST_BYTES", 8 * 64 * 4)
    assert lab.verify(project)["status"] == "PASS" and asked and not any(asked)


def test_a_case_that_was_asked_for_ahead_in_vain_is_asked_for_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside the former case there may be too little memory: the passes are made all the same."""
    kept = TaskSession.case
    moves: list[str] = []

    def case(self: TaskSession, index: int, seed: int, **how: object) -> object:
        if how.get("holds"):
            raise Told("OutOfMemory", "the process was ended", Outcome.OUT_OF_MEMORY)
        moves.append(str(how.get("move", "")))
        return kept(self, index, seed, **how)  # type: ignore[arg-type]

    monkeypatch.setattr(TaskSession, "case", case)
    result = lab.verify(lab.folder(tmp_path, lab.EXPO, lab.impl("return run(exp_kernel, x)", kernels=lab.EXP_KERNEL)))
    assert result["status"] == "PASS" and {skewed.LOW, skewed.HIGH, skewed.FAR} <= {*moves}
    assert not any("the reference failed when its inputs were moved" in line for line in result["caveats"])
