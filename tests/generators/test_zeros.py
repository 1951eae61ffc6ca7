"""A float scalar at 0: a wrapper may take it for "not given" (`share or 0.1`), also where the golden mixes by it.

Where SPEC.md names no range of it, 0 is as legal as any number, but for a guard of zeros, which a wrapper may refuse.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from tests.generators.test_suite import operator

from pypto_op.generators.cases import suite as suite_cases
from pypto_op.generators.evaluation import inputs_text
from pypto_op.generators.operator.sources import gather
from pypto_op.generators.rehearsing.rehearsal import rehearse
from pypto_op.workspace import OpWorkspace

KEEPS = "(1 - share) * x + share * y"
PARTS = "(1 - share) * x + share * (1e4 * y)"
"""`v + (1 - share) * (x - v)`, a right kernel, loses here what x has below a rounding of 1e4."""


def with_scalar(folder: Path, name: str, golden: str, default: float, **front: object) -> OpWorkspace:
    """Write an operator of x, y, flag and a float scalar, with its inputs file."""
    operator(folder, golden=golden, default_params={name: default}, **front)
    ws = OpWorkspace.at(folder / "custom" / "op")
    data = yaml.safe_load(ws.interfaces.read_text())
    data["primary_inputs"].append({"name": name, "shape": [], "dtype": "float32"})
    ws.interfaces.write_text(yaml.safe_dump(data))
    ws.test_inputs.write_text(inputs_text(gather(ws)))
    return ws


UNRANGED = [
    ("scale", "x * scale + y", "", True),
    ("scale", "x * scale + y", "- scale <= 0: the wrapper raises ValueError.\n", False),
    ("scale", "x * scale + y", "- scale below 0.05: the wrapper raises ValueError.\n", False),
    ("scale", "x * scale + y", "| scale | scalar | - | float | > 0 |\n", False),
    ("scale", "x * scale + y", "- scale is positive.\n", False),
    ("scale", "x * scale + y", "- scale is not negative.\n", True),
    ("scale", "x * scale + y", "| scale | scalar | - | float | not negative |\n", True),
    ("scale", "x * scale + y", "- out is scale * x + y where [y > 0], and positive there.\n", True),
    ("scale", "x * scale + y", "- scale > 0.5 doubles x.\n", True),
    ("eps", "x * torch.rsqrt((y * y).mean(-1, keepdim=True) + eps)", "", False),
]


@pytest.mark.parametrize(("name", "result", "said", "stays"), UNRANGED)
def test_a_scalar_without_a_range_is_tried_at_0_unless_it_is_a_guard(
    name: str, result: str, said: str, stays: bool, tmp_path: Path
) -> None:
    """`scale or 0.125` passed: 0 was tried only where it was an end of a range in SPEC.md."""
    golden = f"import torch\n\n\ndef op_golden(x, y, flag, {name}):\n    return {result}\n"
    ws = with_scalar(tmp_path, name, golden, 0.125 if name == "scale" else 1e-5)
    ws.spec.write_text(ws.spec.read_text() + f"\n## 9. Edge cases\n\n{said}")
    sources = gather(ws)
    made = suite_cases.filled(sources).cases
    plain = next(case for case in made if case["id"].startswith("L2"))
    zeros = [case for case in made if case["id"] == f"L3_zero_{name}_float32"]
    done = rehearse(ws, [plain, *zeros], sources.spec.policy(), scalars=sources.scalars)
    assert any(case.get(name) == 0.0 for case in done.cases) == stays, done.dropped
    assert stays or said or "is a guard" in done.dropped[f"L3_zero_{name}_float32"]


@pytest.mark.parametrize(("result", "stays"), [(KEEPS, True), (PARTS, False)])
def test_a_share_is_tried_at_0_where_right_kernels_agree(result: str, stays: bool, tmp_path: Path) -> None:
    """A loss that smoothed by 0.1 where it was asked for no smoothing passed."""
    golden = f"def op_golden(x, y, flag, share):\n    return {result}\n"
    ws = with_scalar(tmp_path, "share", golden, 0.1, shape_constraints=["0 <= share < 1"])
    sources = gather(ws)
    made = suite_cases.filled(sources).cases
    [zero] = [case for case in made if case["id"] == "L3_zero_share_float32"]
    plain = next(case for case in made if case["id"].startswith("L2") and "share" not in case)
    done = rehearse(ws, [plain, zero], sources.spec.policy(), scalars=sources.scalars)
    assert (zero["id"] in {case["id"] for case in done.cases}) == stays, done.dropped
    assert stays or "right kernels may differ" in done.dropped[zero["id"]]
