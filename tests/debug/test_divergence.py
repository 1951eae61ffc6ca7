"""Where a kernel leaves its golden, found on results that are written by hand."""

from __future__ import annotations

from pathlib import Path

import torch

from pypto_op.debug.divergence import first_divergences, maker_of, went_through
from pypto_op.debug.dump_files import Step
from pypto_op.debug.matching import Golden
from pypto_op.debug.reads_writes import other_batch
from pypto_op.debug.rerun import disagreeing
from pypto_op.debug.turns import walked_backwards
from pypto_op.diagnose.kernel_loops import KernelLoops

_WORDS = {torch.float32: "DT_FP32", torch.bool: "DT_BOOL"}


class Run:
    """Results of a kernel, one step for each call of `add`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.steps: list[Step] = []
        self.line = 0

    def add(self, opcode: str, value: torch.Tensor, *parents: Step, turn: int = 0) -> Step:
        number = len(self.steps) + 1
        data = self.folder / f"{number}.bin"
        data.write_bytes(value.contiguous().numpy().tobytes())
        made = Step(
            number=number,
            function="TENSOR_ROWS",
            magic=number,
            opcode=opcode,
            loops=(("i", turn),),
            offset=(),
            valid=tuple(value.shape),
            dtype=_WORDS[value.dtype],
            name=f"t{number}",
            data=data,
            inputs=tuple(one.name for one in parents),
            symbol="",
            line=self.line or 10 + number,
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


WALK = """import pypto


def kernel(x, out):
    total = pypto.tensor([1, 8], pypto.DT_FP32, "total")
    total[:] = pypto.full([1, 8], 0.0, pypto.DT_FP32)
    for i in pypto.loop(4, name="ROWS", idx_name="i"):
        row = 3 - i
        total[:] = total + load(x, row)
        pypto.assemble(total + 0.0, [row, 0], out)
"""


def test_turns_against_the_goldens_order_lead_to_the_line_that_sets_the_order(tmp_path: Path) -> None:
    torch.manual_seed(0)
    parts = list(torch.rand(4, 1, 8))
    golden = Golden(parts, [{"op": "mul", "line": 3, "tensor": number, "inputs": []} for number in range(4)])
    for order, index in (((0, 1, 2, 3), ""), ((3, 2, 1, 0), "i"), ((3, 2, 0, 1), "")):
        run = Run(tmp_path)
        run.line = 12
        for turn, number in enumerate(order):
            run.add("MULS", parts[number], turn=turn)
        assert walked_backwards(run.steps, golden) == index
    assert KernelLoops(WALK).order_of("i") == 8
    idle = WALK.replace("        total[:] = total +", "        total = total +")
    assert KernelLoops(idle).order_of("i") == 0, "nothing is carried"
    second = WALK[WALK.index("    for i") :].replace('"i"', '"k"')
    assert KernelLoops(WALK + second).order_of("i") == 0, "one of two walks"


def test_what_hands_its_operand_on_leads_to_the_operation_that_made_it(tmp_path: Path) -> None:
    torch.manual_seed(0)
    x = torch.rand(6, 8)
    run = Run(tmp_path)
    read = run.add("VIEW", x)
    largest = run.add("MAXS", x.clamp_min(0.5), read)
    copied = run.add("MULS", x.clamp_min(0.5), run.add("ADDS", x.clamp_min(0.5), largest))
    assert maker_of(copied, run.steps) == largest
    assert maker_of(run.add("ADDS", x, read), run.steps).opcode == "ADDS", "what a view reads is made by no operation"
    assert maker_of(doubled := run.add("MULS", x.clamp_min(0.5) * 2.0, copied), run.steps) == doubled


def _batch(run: Run, *read: tuple[int, int]) -> list[Step]:
    """Return the reads of entry 3 of an output of 4: each of one entry of an input, told as (entries, the one that is read)."""
    own = []
    for count, at in read:
        whole = run.add("VIEW", torch.rand(count, 6, 8))
        whole.inputs = ("Incast_0",)
        own.append(run.add("VIEW", torch.rand(1, 6, 8), whole))
        own[-1].offset = (at, 0, 0)
    made = run.add("ADD", torch.rand(1, 6, 8), *own)
    write = run.add("ASSEMBLE", torch.rand(4, 6, 8), made)
    write.offset, write.symbol = (3, 0, 0), "out"
    return own


def test_a_read_of_another_batch_is_told_where_another_input_of_as_many_is_read_well(tmp_path: Path) -> None:
    for number, (read, told) in enumerate(
        (
            ([(4, 3), (4, 2), (4, 3)], [1]),
            ([(4, 3), (2, 1), (2, 1)], []),  # two query heads share one head of keys
            ([(4, 3), (2, 0), (2, 1)], [1]),
            ([(4, 3), (2, 0), (2, 0)], []),  # shared in another order
            ([(4, 3), (3, 0), (3, 1)], []),  # an axis of something else
        )
    ):
        (tmp_path / str(number)).mkdir()
        run = Run(tmp_path / str(number))
        views = _batch(run, *read)
        assert [one.step for one in other_batch(run.steps, ["out"])] == [views[at] for at in told], read


def test_an_operation_that_the_simulator_computes_wrongly_is_told_and_no_other(tmp_path: Path) -> None:
    """Operands stand in either order, sums along any axis, and what the dump does not tell, such as a scalar, blames nobody."""
    torch.manual_seed(0)
    run = Run(tmp_path)
    x, y = (run.add("VIEW", torch.rand(4, 8) + 0.5) for _ in range(2))
    run.add("MULS", x.tensor() * 3.0, x)
    run.add("SUB", y.tensor() - x.tensor(), x, y)
    run.add("ROWSUM_SINGLE", x.tensor().sum(-1, keepdim=True), x)
    run.add("A_MUL_B", x.tensor() @ y.tensor().T, x, y)
    run.add("DIV", x.tensor() / torch.zeros(4, 8), x, run.add("VEC_DUP", torch.zeros(4, 8)))
    run.add("CAST", x.tensor(), x)
    assert disagreeing(run.steps) is None
    wrong = run.add("EXP", torch.exp(x.tensor()) * 1.01, x)
    run.add("RSQRT", x.tensor(), x)
    assert disagreeing(run.steps) is wrong
