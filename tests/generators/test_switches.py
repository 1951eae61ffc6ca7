"""Switches beside whole numbers at their ends and beside one another, a first step beside other scalars, few outputs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.generators.test_draws import placed, tensor

from pypto_op.backends.reference import ReferenceSession
from pypto_op.generators.cases import suite as suite_cases
from pypto_op.generators.evaluation import inputs_text
from pypto_op.generators.operator.sources import gather
from pypto_op.generators.rehearsing.first_candidate import Draw, FirstCandidate
from pypto_op.workspace import OpWorkspace

RESAMPLED = """import torch


def op_golden(x, lengths, size, align):
    count = lengths.long().unsqueeze(-1)
    place = torch.arange(size)
    row = place * (count - 1) / max(size - 1, 1) if align else (place + 0.5) * count / size
    row = row.nan_to_num(1e9).floor().long().clamp(min=0)
    row = torch.minimum(row, count - 1)
    return x[torch.arange(x.shape[0]).unsqueeze(-1), row] * 1.0
"""
LAST = "row = torch.minimum(row, count - 1)"
WRONG = {
    "the last row falls on none where there is one output": ("max(size - 1, 1)", "torch.tensor(size - 1.0)"),
    "one output is the middle row": (LAST, f"row = row + (count - 1) // 2 if align and size == 1 else row\n    {LAST}"),
    "32 outputs lie within 512 rows": (LAST, f"row = torch.minimum(row, row[:, place // 32 * 32] + 512)\n    {LAST}"),
}


STEPPED = """import torch


def op_golden(p, g, buf, decay, damp, nesterov, first, step):
    grad = g + decay * p
    new = grad if first or step == 0 else 0.9 * buf + (1.0 - damp) * grad
    return p - 0.1 * (grad + 0.9 * new if nesterov else new)
"""
WRONG_STEPS = {
    "the first step has no decay": ("new = grad if", "grad, new = (g, g) if step == 0 else (grad, grad)\n    new = new if"),
    "the first step is damped": ("new = grad if", "new = (1.0 - damp) * grad if step == 0 else grad if"),
    "nesterov forgets first": ("if first or", "if (first and not nesterov) or"),
}


def _refusals(ws: OpWorkspace, golden: str, wrong: dict[str, tuple[str, str]]) -> dict[str, list[str]]:
    """Return, for the golden as it is ("") and with one replacement each, the cases of L3 and L4 that refuse it."""
    ws.golden.write_text(golden)
    spaces: dict[str, dict[str, Any]] = {why: {} for why in ["", *wrong]}
    for why, space in spaces.items():
        old, new = wrong.get(why, ("op_golden", "op_golden"))
        assert old in golden
        exec(compile(golden.replace(old, new), "op.py", "exec"), space)  # noqa: S102
    sources = gather(ws)
    ws.test_inputs.write_text(inputs_text(sources))
    refused: dict[str, list[str]] = {why: [] for why in spaces}
    with ReferenceSession(ws) as session:
        first = FirstCandidate(session, ws, sources.spec.policy())
        for case in (case for case in suite_cases.cases(sources) if case["level"] in ("L3", "L4")):
            inputs = dict(session.make_inputs(case))
            draw = Draw(first, case, inputs, first.golden(list(inputs.values())))
            for why, space in spaces.items():
                if not draw.takes([space["op_golden"](*inputs.values())]):
                    refused[why].append(case["id"])
    return refused


@pytest.mark.slow
def test_what_shows_where_two_ends_meet_is_refused(tmp_path: Path) -> None:
    scalars = [{"name": "size", "shape": [], "dtype": "int"}, {"name": "align", "shape": [], "dtype": "bool"}]
    ports = [tensor("x", shape=("B", "T", "C")), tensor("lengths", "int32", ("B",)), *scalars]
    front = {"p0_shapes": [{"B": 2, "T": 80, "C": 16}], "dynamic_axes": ["B", "T"], "dynamic_axes_ranges": {"T": [1, 1024]}}
    said = ["1 <= lengths <= T", "1 <= size <= 1024"]
    ws = placed(tmp_path, ports, shape_constraints=said, default_params={"size": 100, "align": False}, **front)
    contract = yaml.safe_load(ws.interfaces.read_text())
    contract["modules"][0]["outputs"][0]["shape"] = ["B", "size", "C"]
    ws.interfaces.write_text(yaml.safe_dump(contract))
    refused = _refusals(ws, RESAMPLED, WRONG)
    assert not refused.pop("")
    assert all(refused.values()), refused


CONVOLVED = """import torch


def op_golden(x, weight, dilation, causal):
    taps, length = weight.shape[0], x.shape[0]
    reach = (taps - 1) * dilation
    before = reach if causal else reach // 2
    padded = torch.nn.functional.pad(x, (0, 0, before, reach - before))
    gap = torch.arange(length) - torch.arange(length) // 32 * 32
    parts = [padded[tap * dilation : tap * dilation + length] * weight[tap] for tap in range(taps)]
    return torch.stack(parts).sum(dim=0)
"""
WRONG_HALOS = {
    "the middle of an even number of taps is the later one": ("else reach // 2", "else (reach + 1) // 2"),
    "a tile of 32 rows sees 32 rows in front": (
        "* weight[tap]",
        "* weight[tap] * (tap * dilation - before + gap >= -32).unsqueeze(-1)",
    ),
}


@pytest.mark.slow
def test_the_reach_of_a_convolution_is_tried_where_taps_and_dilation_are_greatest(tmp_path: Path) -> None:
    scalars = [{"name": "dilation", "shape": [], "dtype": "int"}, {"name": "causal", "shape": [], "dtype": "bool"}]
    front = {"p0_shapes": [{"S": 80, "D": 16, "W": 3}], "default_params": {"dilation": 2, "causal": True}}
    said = ["1 <= dilation <= 16", "2 <= W <= 5"]
    ws = placed(tmp_path, [tensor("x"), tensor("weight", shape=("W", "D")), *scalars], shape_constraints=said, **front)
    refused = _refusals(ws, CONVOLVED, WRONG_HALOS)
    assert not refused.pop("")
    assert all(refused.values()), refused


@pytest.mark.slow
def test_a_first_step_meets_other_scalars_and_two_switches_meet(tmp_path: Path) -> None:
    kinds = {"decay": "float32", "damp": "float32", "nesterov": "bool", "first": "bool", "step": "int"}
    scalars: list[dict[str, Any]] = [{"name": name, "shape": [], "dtype": kind} for name, kind in kinds.items()]
    front = {"default_params": {"decay": 0.0, "damp": 0.0, "nesterov": False, "first": False, "step": 1}}
    said = {"shape_constraints": ["0 <= step"], "input_ranges": {"decay": "[0, 1]", "damp": "[0, 1]"}}
    ws = placed(tmp_path, [tensor("p"), tensor("g"), tensor("buf"), *scalars], **front, **said)
    refused = _refusals(ws, STEPPED, WRONG_STEPS)
    assert not refused.pop("")
    assert all(refused.values()), refused
