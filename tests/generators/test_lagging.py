"""What a choice by two tensors falls on is low in one of them: a floor under what is reported there shows nowhere else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from benchmarks import fresh, fresh_kernels
from tests.calling import command
from tests.generators.test_draws import made, placed, tensor

from pypto_op.generators.cases import suite as suite_cases
from pypto_op.generators.operator.sources import gather
from pypto_op.workspace import OpWorkspace

OP, CASE = "gumbel_sample", "L5_lagging_logits_u_float32"
GOLDEN = "import torch\n\n\ndef op_golden(x, y):\n    best = {}\n    return x.gather(-1, best)\n"
CHOOSES = {
    "(x + y).argmax(-1, keepdim=True)": True,
    "(x + y).topk(2, dim=-1).indices": True,
    "(x + y).max(-1, keepdim=True).indices": True,
    "torch.zeros_like(x, dtype=torch.long)": False,
}


def _cases(ws: OpWorkspace) -> list[dict[str, Any]]:
    return [case for case in suite_cases.cases(gather(ws)) if "lagging" in case["id"]]


@pytest.mark.parametrize("choice", CHOOSES)
@pytest.mark.parametrize("said", [{}, {"x": "[0, 1]", "y": "[-2, 2]"}], ids=["free", "bounded"])
def test_what_is_chosen_by_two_is_low_in_one(tmp_path: Path, choice: str, said: dict[str, Any]) -> None:
    ws = placed(tmp_path, [tensor("x"), tensor("y")], input_ranges=said)
    ws.golden.write_text(GOLDEN.format(choice))
    cases = _cases(ws)
    assert [case["draw_lagging"] for case in cases] == ([{"x": "y"}, {"y": "x"}] if CHOOSES[choice] else [])
    for case in cases:
        drawn = made(ws, shape=case["shape"], draw_lagging=case["draw_lagging"])
        [(low, high)] = case["draw_lagging"].items()
        place = drawn[high].argmax(-1)
        assert torch.equal(drawn[low].argmin(-1), place)
        ends = {"x": (0.0, 1.0), "y": (-2.0, 2.0)} if said else {}
        for name, (least, greatest) in ends.items():
            assert bool(((drawn[name] >= least) & (drawn[name] <= greatest)).all())
        if not said:
            assert bool((drawn[low] + drawn[high]).argmax(-1).eq(place).all())
            assert float(drawn[low].min()) < -12.0


@pytest.mark.parametrize(
    ("ports", "more", "found"),
    [
        ([tensor("x"), tensor("y", shape=("D",))], {}, 2),
        ([tensor("x"), tensor("y", shape=("D", "S"))], {}, 0),
        ([tensor("x"), tensor("y")], {"input_ranges": {"y": {"row_length": 1}}}, 0),
        ([tensor("x")], {}, 0),
    ],
)
def test_rows_that_do_not_lie_side_by_side_do_not_lag(tmp_path: Path, ports: list[Any], more: dict[str, Any], found: int) -> None:
    ws = placed(tmp_path, ports, **more)
    ws.golden.write_text(GOLDEN.format("x.argmax(-1, keepdim=True)").replace("x, y", ", ".join(port["name"] for port in ports)))
    assert len(_cases(ws)) == found


@pytest.mark.sim
@pytest.mark.slow
def test_a_floor_under_the_probability_of_what_noise_chose_is_refused(tmp_path: Path) -> None:
    root = fresh.workspace(OP, tmp_path)
    assert command("harness", "new", "--no-rehearsal", root).code == 0
    by_id = {kernel.id: kernel for kernel in fresh_kernels.kernels(OP)}
    for name, code in ((OP, 0), ("logprob_floor", 1)):
        (root / f"{OP}_impl.py").write_text(by_id[name].text, encoding="utf-8")
        assert command("verify", "--modes", "sim", "--case", CASE, root).code == code, name
