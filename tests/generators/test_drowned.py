"""Long rows stay in a suite where one input drowns in them, and whole numbers from 0 on are tried at every order of magnitude."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.generators.test_draws import placed, tensor
from tests.generators.test_forgotten_branches import refusing

from pypto_op.generators.cases import suite as suite_cases
from pypto_op.generators.cases.whole_numbers import whole_ends
from pypto_op.generators.evaluation import inputs_text
from pypto_op.generators.operator.sources import gather
from pypto_op.generators.rehearsing.power import Power
from pypto_op.generators.rehearsing.rehearsal import rehearse

MEAN = """import torch


def op_golden(x, sink):
    wide, more = x.float(), 200.0 * sink.float().abs() / x.shape[0]
    return (wide.sum(0) / (wide.abs().sum(0) + more)).expand(x.shape).to(x.dtype)
"""


@pytest.mark.slow
def test_a_long_row_that_drowns_a_sink_is_judged_and_a_bound_on_it_shows(tmp_path: Path) -> None:
    """Decode attention that saw 512 tokens passed: each longer row was left out, since a kernel without the sink passes there."""
    ports = [tensor("x"), tensor("sink", shape=("D",))]
    ws = placed(tmp_path, ports, supported_dtypes=["bfloat16"], tolerance={"atol": 1e-2, "rtol": 1.6e-2})
    ws.golden.write_text(MEAN)
    sources = gather(ws)
    ws.test_inputs.write_text(inputs_text(sources))
    made = [case for case in suite_cases.cases(sources) if case["id"].startswith(("L2_base", "L4_S_"))]
    done = rehearse(ws, made, sources.spec.policy())
    longest = max(case["shape"]["S"] for case in made)
    assert longest == max(case["shape"]["S"] for case in done.cases)

    def kernel(x: torch.Tensor, sink: torch.Tensor, rows: int = longest, weight: float = 200.0) -> torch.Tensor:
        seen = x[:rows].float()
        total = seen.abs().sum(0) + weight * sink.float().abs() / x.shape[0]
        return (seen.sum(0) / total).expand(x.shape).to(x.dtype)

    assert refusing(ws, done.cases, kernel) == []
    assert refusing(ws, done.cases, partial(kernel, rows=longest - 64))
    assert set(refusing(ws, done.cases, partial(kernel, weight=0.0))) < {case["id"] for case in done.cases}


def test_of_whole_numbers_from_0_on_one_of_middling_magnitude_is_tried(tmp_path: Path) -> None:
    """A window of 32 at most passed where 0 stands for all tokens: between 0 and 8192 the one of 4097 saw all, too."""
    ports = [tensor("x"), {"name": "window", "shape": [], "dtype": "int"}]
    said: dict[str, Any] = {"shape_constraints": ["0 <= window <= 8192"], "default_params": {"window": 0}}
    assert whole_ends(gather(placed(tmp_path, ports, **said)), "window", {"S": 195, "D": 32}) == (8192, 91)


def test_whatever_an_input_that_drowns_is_read_as_is_no_fault() -> None:
    seen = {"x read as zeros": 3.0, "x read as ones": 0.0, "sink read as zeros": 0.0, "sink read as ones": 0.0}
    assert Power(seen).drowned == {"sink read as zeros", "sink read as ones"}
    assert Power({"x read as zeros": 0.0, "x read as ones": 0.0}).drowned == frozenset()
