"""Parts that offsets cut: many of them, and empty ones at either end; many batches that are walked one by one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from benchmarks import fresh, fresh_kernels
from tests.generators.test_draws import with_inputs

from pypto_op.backends.reference import ReferenceSession
from pypto_op.generators.cases.suite import cases
from pypto_op.generators.operator.sources import gather
from pypto_op.workspace import OpWorkspace

CROWDED = "L3_offsets_crowded_float32"
SEEDS = range(40)


@pytest.mark.parametrize("op", ["grouped_gemm", "segment_mean"])
def test_empty_parts_lie_at_both_ends_and_rows_behind_them(op: str, tmp_path: Path) -> None:
    """A kernel passed that computed one row of an empty part: what comes after it wrote the row once more."""
    ws = OpWorkspace.at(fresh.workspace(op, tmp_path))
    sources = with_inputs(ws)
    [case] = [case for case in cases(sources) if case["id"] == CROWDED]
    ends = []
    with ReferenceSession(ws) as session:
        for seed in SEEDS:
            offsets = dict(session.make_inputs({**case, "seed": seed}))["offsets"]
            assert isinstance(offsets, torch.Tensor)
            assert int(offsets[0]) > 0 and int(offsets[-1]) < case["shape"]["T"]
            ends.append((bool(offsets[0] == offsets[1]), bool(offsets[-2] == offsets[-1])))
    for place in (0, 1):
        assert sum(end[place] for end in ends) > 0.8 * len(SEEDS)


COUNTS = [("grouped_gemm", "E", 67), ("gae_advantage", "T", 131), ("segment_mean", "S", 131)]


@pytest.mark.parametrize(("op", "axis", "count"), COUNTS)
def test_what_is_walked_one_by_one_is_tried_beyond_64(op: str, axis: str, count: int, tmp_path: Path) -> None:
    """A kernel with room for 64 experts passed."""
    made = cases(gather(OpWorkspace.at(fresh.workspace(op, tmp_path))))
    assert max(case["shape"][axis] for case in made) == count


@pytest.mark.sim
@pytest.mark.slow
@pytest.mark.parametrize(("beginning", "wrong"), [(CROWDED, "empty_writes"), ("L4_E_many", "experts_64")])
def test_real_kernels_that_forget_them_are_refused_and_right_ones_are_not(
    beginning: str, wrong: str, tmp_path: Path, call: Any
) -> None:
    root = fresh.workspace("grouped_gemm", tmp_path)
    assert call("harness", "new", "--no-rehearsal", root).code == 0
    made = json.loads((root / "eval" / "adversarial_suite.json").read_text(encoding="utf-8"))["cases"]
    case = next(case["id"] for case in made if case["id"].startswith(beginning))
    kernels = {kernel.id: kernel for kernel in fresh_kernels.kernels("grouped_gemm")}
    for name in ("grouped_gemm", "zeros_last", wrong):
        (root / "grouped_gemm_impl.py").write_text(kernels[name].text, encoding="utf-8")
        answer = call("verify", "--modes", "sim", "--case", case, root)
        assert answer.code == (1 if name == wrong else 0), f"{case} {name} {answer}"
