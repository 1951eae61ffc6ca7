"""Where a kernel leaves its golden, found on results that are written by hand."""

from __future__ import annotations

from pathlib import Path

import torch

from pypto_op.debug.divergence import first_divergences, went_through
from pypto_op.debug.dump_files import Step
from pypto_op.debug.matching import Golden

_WORDS = {torch.float32: "DT_FP32", torch.bool: "DT_BOOL"}


class Run:
    """Results of a kernel, one step for each call of `add`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.steps: list[Step] = []

    def add(self, opcode: str, value: torch.Tensor, *parents: Step) -> Step:
        number = len(self.steps) + 1
        data = self.folder / f"{number}.bin"
        data.write_bytes(value.contiguous().numpy().tobytes())
        made = Step(
            number=number,
            function="TENSOR_ROWS",
            magic=number,
            opcode=opcode,
            loops=(("i", 0),),
            offset=(),
            valid=tuple(value.shape),
            dtype=_WORDS[value.dtype],
            name=f"t{number}",
            data=data,
            inputs=tuple(one.name for one in parents),
            symbol="",
            line=10 + number,
            parents=[one.number for one in parents],
        )
        self.steps.append(made)
        return made


def test_a_mask_of_wrong_numbers_that_hides_nothing_does_not_prove_them_right(tmp_path: Path) -> None:
    torch.manual_seed(0)
    x = torch.rand(6, 8) + 0.5
    doubled = x * 2.0
    golden = Golden(
        [x, doubled, doubled.cumsum(-1), torch.where(doubled.cumsum(-1) < 5.0, doubled, 0.0)],
        [
            {"op": "input", "line": 0, "tensor": 0, "inputs": []},
            {"op": "mul", "line": 3, "tensor": 1, "inputs": [0]},
            {"op": "cumsum", "line": 4, "tensor": 2, "inputs": [1]},
            {"op": "where", "line": 5, "tensor": 3, "inputs": [1, 2]},
        ],
    )
    run = Run(tmp_path)
    read = run.add("VIEW", x)
    product = run.add("MULS", doubled, read)
    wrong = run.add("CUM_SUM", doubled.cumsum(0), product)
    mask = run.add("CMPS", torch.ones(6, 8, dtype=torch.bool), wrong)
    kept = run.add("WHERE_TS", doubled, product, mask)
    assert first_divergences(run.steps, golden)[0] == [], "what is kept agrees with the golden's product"
    assert [one.step for one in went_through(run.steps, golden, [kept])] == [wrong]
    assert went_through(run.steps, golden, []) == []
    assert went_through(run.steps, golden, [product]) == [], "it lies on no way to what stands in the wrong place"
