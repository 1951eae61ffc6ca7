"""Flags of one axis that choose nothing: the golden is 0 everywhere there, and a kernel that divides by their number is not."""

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

pytestmark = pytest.mark.slow

MEAN = """import torch


def op_golden(x, y, keep):
    chosen = torch.where(keep[None, :, None], x * y, 0.0)
    return chosen / {number}
"""

COUNTED = """import torch


def op_golden(x, y, n):
    return torch.where((n > 0)[None, :, None], x * y * n[None, :, None], 0.0) / {number}
"""


@pytest.mark.parametrize(("number", "why"), [("keep.sum().clamp(min=1)", ""), ("keep.sum()", "the golden is not finite there")])
def test_nothing_chosen_is_a_case_where_the_golden_answers(number: str, why: str, tmp_path: Path) -> None:
    """A balance loss of padding alone was 0 / 0 in a kernel, and the one case that has it was left out: "constant there"."""
    operator(tmp_path, golden=MEAN.format(number=number), supported_dtypes=["float32"])
    ws = OpWorkspace.at(tmp_path / "custom" / "op")
    wiring = yaml.safe_load(ws.interfaces.read_text())
    wiring["primary_inputs"][2:] = [{"name": "keep", "shape": ["S"], "dtype": "bool"}]
    wiring["modules"][0]["inputs"] = [{"name": port["name"], "source": "primary"} for port in wiring["primary_inputs"]]
    ws.interfaces.write_text(yaml.safe_dump(wiring))
    sources = gather(ws)
    ws.test_inputs.write_text(inputs_text(sources))
    wanted = [case for case in suite_cases.cases(sources) if case["id"] in ("L2_base", "L3_none_keep")]
    done = rehearse(ws, wanted, sources.spec.policy())
    assert {case["id"] for case in done.cases} == {"L2_base", *([] if why else ["L3_none_keep"])}
    assert done.dropped == ({"L3_none_keep": why} if why else {})


@pytest.mark.parametrize(("number", "why"), [("n.sum().clamp(min=1)", ""), ("n.sum()", "the golden is not finite there")])
def test_counts_that_are_all_0_are_a_case_where_the_golden_answers(number: str, why: str, tmp_path: Path) -> None:
    """Statistics of parts that have no samples were 0 / 0 in a kernel, and SPEC.md said what they are."""
    operator(tmp_path, golden=COUNTED.format(number=number), supported_dtypes=["float32"], shape_constraints=["0 <= n <= 5000"])
    ws = OpWorkspace.at(tmp_path / "custom" / "op")
    wiring = yaml.safe_load(ws.interfaces.read_text())
    wiring["primary_inputs"][2:] = [{"name": "n", "shape": ["S"], "dtype": "int32"}]
    wiring["modules"][0]["inputs"] = [{"name": port["name"], "source": "primary"} for port in wiring["primary_inputs"]]
    ws.interfaces.write_text(yaml.safe_dump(wiring))
    sources = gather(ws)
    ws.test_inputs.write_text(inputs_text(sources))
    wanted = [case for case in suite_cases.cases(sources) if case["id"] in ("L2_base", "L3_n_all_least")]
    done = rehearse(ws, wanted, sources.spec.policy())
    assert {case["id"] for case in done.cases} == {"L2_base", *([] if why else ["L3_n_all_least"])}
    assert done.dropped == ({"L3_n_all_least": why} if why else {})
