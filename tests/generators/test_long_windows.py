"""Windows of more than 1024, and longer than the longest row: a kernel with room for 1024, or for a row, passed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.generators.test_draws import placed, tensor

from pypto_op.backends.reference import ReferenceSession
from pypto_op.generators.cases import suite as suite_cases
from pypto_op.generators.evaluation import inputs_text
from pypto_op.generators.operator.sources import gather
from pypto_op.generators.rehearsing.first_candidate import Draw, FirstCandidate

TRAILING = """import torch


def op_golden(x, window):
    place = torch.arange(x.shape[0], device=x.device)
    gap = place.unsqueeze(1) - place.unsqueeze(0)
    seen = ((gap >= 0) & (gap < {window})).to(torch.float32)
    return torch.matmul(seen, x.to(torch.float32)).to(x.dtype)
"""


@pytest.mark.slow
@pytest.mark.parametrize("said", [["1 <= window <= 4096"], ["1 <= window"], []])
@pytest.mark.parametrize("wrong", ["min(window, 1024)", "min(window, 900)", "(window if window <= x.shape[0] else 1)"])
def test_a_bound_of_a_window_shows(wrong: str, said: list[str], tmp_path: Path) -> None:
    ports = [tensor("x"), {"name": "window", "shape": [], "dtype": "int"}]
    ws = placed(tmp_path, ports, default_params={"window": 40}, shape_constraints=said, tolerance={"atol": 1e-2, "rtol": 2e-2})
    ws.golden.write_text(TRAILING.format(window="window"))
    space: dict[str, Any] = {}
    exec(compile(TRAILING.format(window=wrong), "wrong.py", "exec"), space)  # noqa: S102
    sources = gather(ws)
    ws.test_inputs.write_text(inputs_text(sources))
    refused = []
    with ReferenceSession(ws) as session:
        first = FirstCandidate(session, ws, sources.spec.policy())
        for case in (case for case in suite_cases.cases(sources) if case.get("window", 0) > 40):
            inputs = dict(session.make_inputs(case))
            draw = Draw(first, case, inputs, first.golden(list(inputs.values())))
            if not draw.takes([space["op_golden"](*inputs.values())]):
                refused.append(case["id"])
    assert refused
