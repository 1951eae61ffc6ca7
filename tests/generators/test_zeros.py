"""A float scalar at 0: a wrapper may take it for "not given" (`share or 0.1`), also where the golden mixes by it."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from tests.generators.test_suite import operator

from pypto_op.generators import suite as suite_cases
from pypto_op.generators.evaluation import inputs_text
from pypto_op.generators.rehearsal import rehearse
from pypto_op.generators.sources import gather
from pypto_op.workspace import OpWorkspace

KEEPS = "(1 - share) * x + share * y"
PARTS = "(1 - share) * x + share * (1e4 * y)"
"""`v + (1 - share) * (x - v)`, a right kernel, loses here what x has below a rounding of 1e4."""


@pytest.mark.parametrize(("result", "stays"), [(KEEPS, True), (PARTS, False)])
def test_a_share_is_tried_at_0_where_right_kernels_agree(result: str, stays: bool, tmp_path: Path) -> None:
    """A loss that smoothed by 0.1 where it was asked for no smoothing passed."""
    golden = f"def op_golden(x, y, flag, share):\n    return {result}\n"
    operator(tmp_path, golden=golden, default_params={"share": 0.1}, shape_constraints=["0 <= share < 1"])
    ws = OpWorkspace.at(tmp_path / "custom" / "op")
    data = yaml.safe_load(ws.interfaces.read_text())
    data["primary_inputs"].append({"name": "share", "shape": [], "dtype": "float32"})
    ws.interfaces.write_text(yaml.safe_dump(data))
    sources = gather(ws)
    ws.test_inputs.write_text(inputs_text(sources))
    made = suite_cases.filled(sources).cases
    [zero] = [case for case in made if case["id"] == "L3_zero_share_float32"]
    plain = next(case for case in made if case["id"].startswith("L2") and "share" not in case)
    done = rehearse(ws, [plain, zero], sources.spec.policy(), scalars=sources.scalars)
    assert (zero["id"] in {case["id"] for case in done.cases}) == stays, done.dropped
    assert stays or "right kernels may differ" in done.dropped[zero["id"]]
