"""Rows that lean on others: a margin of cosines shows on no rows that are drawn one by one, nor on rows that are alike."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from benchmarks import fresh, fresh_kernels
from tests.calling import command
from tests.generators.test_draws import made, placed, tensor

from pypto_op.documents.golden_scan import turning_parameters
from pypto_op.generators.cases import suite as suite_cases
from pypto_op.generators.operator.sources import gather

OP = "cosine_margin_bwd"
MARGIN = {"name": "margin", "shape": [], "dtype": "float32"}
HINGE = "import torch\n\n\ndef op_golden(x, y, margin):\n    cosine = (x * y).sum(-1, keepdim=True)\n    return {} * x\n"
TURNS = {
    "torch.relu(cosine - margin)": True,
    "(cosine - margin).clamp(min=0)": True,
    "torch.where(cosine > margin, cosine, 0.0)": True,
    "cosine.clamp_min(-margin)": True,
    "(cosine * margin)": False,
    "torch.relu(cosine)": False,
}


@pytest.mark.parametrize("turn", TURNS)
def test_rows_lean_where_a_golden_turns_at_a_scalar(tmp_path: Path, turn: str) -> None:
    front = {"default_params": {"margin": 0.2}, "shape_constraints": ["-0.5 <= margin <= 0.9"]}
    ws = placed(tmp_path, [tensor("x"), tensor("y"), MARGIN], **front)
    ws.golden.write_text(HINGE.format(turn))
    assert ("margin" in turning_parameters(ws.golden, "op_golden")) is TURNS[turn]
    cases = [case for case in suite_cases.cases(gather(ws)) if "leaning" in case["id"]]
    assert [case.get("margin") for case in cases] == ([None, -0.5, 0.9] if TURNS[turn] else [])
    for case in cases:
        drawn = made(ws, shape=case["shape"], draw_leaning=case["draw_leaning"])
        cosine = torch.nn.functional.cosine_similarity(drawn["x"].double(), drawn["y"].double(), dim=-1).sort().values
        assert torch.allclose(cosine, torch.linspace(-1.0, 1.0, len(cosine), dtype=torch.float64), atol=1e-5)
        plain = made(ws, shape=case["shape"])
        assert torch.allclose(drawn["y"].norm(dim=-1), plain["y"].norm(dim=-1), rtol=1e-5), "the lengths of rows stay"


@pytest.mark.parametrize(
    ("said", "found"),
    [({"y": "[0, 1]"}, 0), ({"y": {"row_length": 1}}, 0), ({"x": {"row_length": 1}, "y": {"row_length": 1}}, 3)],
)
def test_what_leaning_would_not_keep_does_not_lean(tmp_path: Path, said: dict[str, Any], found: int) -> None:
    front = {"default_params": {"margin": 0.2}, "shape_constraints": ["-0.5 <= margin <= 0.9"], "input_ranges": said}
    ws = placed(tmp_path, [tensor("x"), tensor("y"), MARGIN], **front)
    ws.golden.write_text(HINGE.format("torch.relu(cosine - margin)"))
    assert len([case for case in suite_cases.cases(gather(ws)) if "leaning" in case["id"]]) == found


@pytest.mark.sim
@pytest.mark.slow
def test_a_margin_that_is_held_to_a_half_is_refused(tmp_path: Path) -> None:
    root = fresh.workspace(OP, tmp_path)
    assert command("harness", "new", "--no-rehearsal", root).code == 0
    by_id = {kernel.id: kernel for kernel in fresh_kernels.kernels(OP)}
    for name, code in ((OP, 0), ("margin_held_to_a_half", 1)):
        (root / f"{OP}_impl.py").write_text(by_id[name].text, encoding="utf-8")
        assert command("verify", "--modes", "sim", "--case", "L5_leaning_b_a_float32_3", root).code == code, name
