"""Which line is named where pypto names none, or a helper's; and that many small tensors are searched in little time."""

from __future__ import annotations

import time

import torch

from pypto_op.debug.matching import Golden
from pypto_op.diagnose.graph_place import line_of_graph

KERNEL = """import pypto


def kernel(x, out):
    for r in pypto.loop(4, name="ROWS", idx_name="r"):
        rows = 1
        for w in pypto.loop(5, name="WRITE", idx_name="w"):
            tile = load(x, r, w)

            pypto.assemble(tile, [r, w], out)
"""
_HEAD = "[VERIFY] tensor_graph, TENSOR_WRITE_Unroll1_PATH0_hiddenfunc0_17, w=2@r=0@loop_idx_0=0, 84, 117, 10000, {}\n"
_VIEW = (
    _HEAD.format("VIEW")
    + "dynvalidshape:[RUNTIME_Min((RUNTIME_GetInputShapeDim(ARG_x,0)-(r*16)), 16),RUNTIME_Min((7-(w*128)), 128)]\n"
    + "Storage size calculation overflowed with sizes=[{}] and strides=[128, 1]\n"
)
_WRITE = _HEAD.format("ASSEMBLE") + "storage offset 2193, and itemsize 2 are out of bounds for storage of size 4386\n"


def test_a_view_of_negative_size_leads_to_the_loop_that_moves_along_its_axis() -> None:
    assert line_of_graph(_VIEW.format("16, -127"), KERNEL) == 7
    assert line_of_graph(_VIEW.format("-15, 128"), KERNEL) == 5
    assert line_of_graph(_VIEW.format("16, 128"), KERNEL) == 0, "nothing is negative"


def test_a_write_past_the_end_leads_to_the_write_in_the_loop_of_its_graph() -> None:
    assert line_of_graph(_WRITE, KERNEL) == 10
    assert line_of_graph(_WRITE, KERNEL.replace('name="WRITE"', 'name="OTHER"')) == 0
    assert line_of_graph(_WRITE, KERNEL + "            pypto.assemble(tile, [r, 0], out)\n") == 7
    assert line_of_graph(_WRITE, "def broken(") == 0 and line_of_graph("no graph", KERNEL) == 0


LOADED = """import pypto


def load(x, row, column, rows):
    return pypto.view(x, [16, 32], [row, column], valid_shape=[rows, 32])


def kernel(x, out):
    for g in pypto.loop(4, name="GROUPS", idx_name="g"):
        column = g * 32 + 1
        total = pypto.tensor([16, 32], pypto.DT_FP32, "total")

        for r in pypto.loop(4, name="ROWS", idx_name="r"):
            row = r * 16 + 1
            rows = pypto.min(64 - r * 16, 16)


            total[:] = load(x, row, column, rows)
"""
_OUTSIDE = """[VERIFY] tensor_graph, TENSOR_ROWS_Unroll1_PATH0_hiddenfunc0_17, r=0@g=3, 84, 117, 10000, VIEW
/* k_impl.py:5 */ VIEW
pypto-op: a view leaves its tensor on axis {}: offset [0, 97] and valid shape [16, 32] in a tensor of shape [64, 128]
"""


def test_a_view_in_a_helper_leads_to_the_line_that_computes_the_offset_which_it_is_given() -> None:
    assert line_of_graph(_OUTSIDE.format(1), LOADED) == 10
    assert line_of_graph(_OUTSIDE.format(0), LOADED) == 18, "offset or extent: the call hands both over"
    assert line_of_graph(_OUTSIDE.format(1), LOADED.replace("= load(x, row, column,", "= load(x, row, g * 32 + 1,")) == 18
    spread = LOADED.replace("        total = ", "        column = column + 1\n        total = ")
    assert line_of_graph(_OUTSIDE.format(1), spread) == 19, "computed twice"


STATES = """import pypto


def start(part, total):
    total[:] = part


def add(part, total):
    total[:] = total + part


def kernel(x, out):
    total = pypto.tensor([1, 8], pypto.DT_FP32, "total")
    for r in pypto.loop(4, name="ROWS", idx_name="r"):
        part = load(x, r)
        if pypto.cond(pypto.is_loop_begin(r)):
            start(part, total)
        else:
            add(part, total)
        pypto.assemble(part + 1.0, [r, 0], out)
"""
_READ = "[VERIFY] tensor_graph, TENSOR_ROWS_Unroll1_PATH1_hiddenfunc0_9, r=0\nErrcode: FB100E!\n, func ExecuteControlFlow\n"


def test_a_state_without_a_value_leads_to_the_use_that_reads_it_first() -> None:
    assert line_of_graph(_READ, STATES) == 0, "written first"
    assert line_of_graph(_READ, STATES.replace("            start(part", "            add(part")) == 17
    itself = STATES.replace("            start(part, total)", "            total[:] = total * 2.0")
    assert line_of_graph("Errcode: FB1002!", itself) == 17


def test_a_view_outside_its_tensor_leads_to_the_call_that_hands_it_its_place() -> None:
    kernel = KERNEL + "\n\ndef load(x, row, rows):\n    return pypto.view(x, [16, 8], [row, 0], valid_shape=[rows, 8])\n"
    log = _HEAD.format("VIEW") + "/* /w/kernel.py:14 */\npypto-op: a view leaves its tensor on axis 0\n"
    assert line_of_graph(log, kernel) == 8
    assert line_of_graph(log, kernel.replace("[row, 0]", "[row + 1, 0]")) == 0, "the view itself computes it"


def test_a_cycle_leads_to_the_write_into_what_the_loop_reads() -> None:
    cycle = "Errcode: F21001!\ncycle detected: /* /w/kernel.py:15 */"
    assert line_of_graph(cycle, STATES) == 0
    assert line_of_graph(cycle, STATES.replace("[r, 0], out)", "[r, 0], x)")) == 20


def test_a_block_is_found_among_thousands_of_tensors_as_it_stands_and_transposed() -> None:
    torch.manual_seed(0)
    tensors = [torch.randn(2, 16, 32) for _ in range(1500)]
    rows = [{"op": "mul", "line": 3, "tensor": number, "inputs": []} for number in range(len(tensors))]
    golden = Golden(tensors, rows)
    begun = time.process_time()
    for number in range(0, 1500, 100):
        found = golden.matches(tensors[number][1, 4:12, 8:24].contiguous())
        assert [(one.tensor, one.places) for one in found] == [(number, ((4, 8),))]
        assert [one.tensor for one in golden.matches(tensors[number][0].T.contiguous())] == [number]
        assert not golden.matches(torch.randn(8, 16))
    assert time.process_time() - begun < 3.0
    nothing = torch.full((4, 4), float("nan"))
    assert not golden.matches(nothing)
    tensors[7][0, :4, :4] = nothing
    assert [one.tensor for one in Golden(tensors[:9], rows[:9]).matches(nothing)] == [7]


def test_a_block_is_found_beside_numbers_that_are_none() -> None:
    """Elements are found in order of size; NaN has no place in that order, and infinities stand at its ends."""
    for odd in (float("nan"), float("inf"), -float("inf")):
        whole = torch.arange(64.0).reshape(8, 8)
        whole[::2, 5:] = odd
        golden = Golden([whole], [{"op": "input", "tensor": 0, "line": 0, "inputs": []}])
        for row in range(8):
            assert [match.places for match in golden.matches(whole[row : row + 1, 1:5].clone())] == [((row, 1),)], (odd, row)
