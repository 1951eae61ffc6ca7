"""The simulator's memory is as strict as a device's: what nobody wrote is NaN, and no view leaves its tensor."""

from __future__ import annotations

import pytest
import torch

from pypto_op.vocabulary import Outcome

from . import kernels
from .conftest import Run

pytestmark = [pytest.mark.sim, pytest.mark.usefixtures("numeric")]

VIEW = "tile = pypto.view(x, [16, 32], [i * 16, 0], valid_shape=[rows, 32])"
WRITE = "pypto.assemble(tile * 2.0, [i * 16, 0], out)"
WHOLE = "whole = pypto.view(tile * 1.0, [16, 32], [0, 0], valid_shape=[16, 32])\n        "


def changed(*steps: tuple[str, str]) -> str:
    """Return the good candidate with pieces of its kernel replaced."""
    text = kernels.GOOD
    for old, new in steps:
        assert old in text
        text = text.replace(old, new)
    return text


@pytest.mark.parametrize(
    ("step", "operation", "axis"),
    [
        ((VIEW, VIEW.replace("[16, 32], [i * 16, 0]", "[16, 16], [i * 16, 24]").replace("rows, 32", "rows, 16")), "VIEW", 1),
        ((WRITE, WRITE.replace("[i * 16, 0]", "[i * 16, 1]")), "ASSEMBLE", 1),
        ((VIEW, VIEW.replace("[i * 16, 0]", "[i * 16 - 1, 32]")), "VIEW", 0),
    ],
    ids=["a read of the next row's begin", "a write into the next row", "an offset below zero"],
)
def test_a_view_that_leaves_its_tensor_inside_the_allocation_is_refused(
    run: Run, step: tuple[str, str], operation: str, axis: int
) -> None:
    """The last rows are not touched, so that no allocation's end is reached."""
    fewer = ("(x.shape[0] + 15) // 16", "x.shape[0] // 32")
    result = run(changed(step, fewer), rows=40)
    assert result.outcome is Outcome.EXCEPTION, result.detail
    assert f"a view leaves its tensor on axis {axis}" in result.detail + result.stderr
    assert f"{operation}OpError" in result.detail + result.stderr


@pytest.mark.parametrize("height", [32, 301], ids=["one page", "several pages and a part"])
def test_scratch_that_nobody_wrote_reads_as_nan(run: Run, height: int) -> None:
    """The last eight rows of the scratch tensor are never written; a simulator full of zeros would give 0."""
    scratch = ("    for i in pypto.loop(", f'    t = pypto.tensor([{height}, 32], pypto.DT_FP32, "t")\n    for i in pypto.loop(')
    both = (
        WRITE,
        "pypto.assemble(tile * 2.0, [i * 16, 0], t)\n"
        '    for j in pypto.loop(2, name="BACK", idx_name="j"):\n'
        "        left = pypto.min(x.shape[0] - j * 16, 16)\n"
        f"        part = pypto.view(t, [16, 32], [j * {height - 16} + 8, 0], valid_shape=[left, 32])\n"
        "        pypto.assemble(part * 1.0, [j * 16, 0], out)",
    )
    result = run(changed(scratch, both), rows=24)
    assert result.outcome is Outcome.OK, result.detail
    found = result.outputs[0]
    assert torch.equal(found[:16], (torch.arange(8 * 32, 24 * 32).float() * 2).reshape(16, 32))
    assert found[16:].isnan().all()


def test_padding_counts_as_nan_where_it_reaches_the_result(run: Run) -> None:
    """The valid shape is widened to the whole tile and the rows are summed: the last tile's sum holds padding."""
    result = run(changed((WRITE, WHOLE + WRITE.replace("tile * 2.0", "tile + pypto.sum(whole, 0, True)"))), rows=20)
    assert result.outcome is Outcome.OK, result.detail
    assert result.outputs[0][:16].isfinite().all()
    assert result.outputs[0][16:].isnan().all()


def test_padding_may_be_read_where_the_result_does_not_depend_on_it(run: Run) -> None:
    """The same widened tile, row by row: the rows of padding are written nowhere."""
    again = "again = pypto.view(whole * 2.0, [16, 32], [0, 0], valid_shape=[rows, 32])\n        "
    result = run(changed((WRITE, WHOLE + again + WRITE.replace("tile * 2.0", "again * 1.0"))), rows=20)
    assert result.outcome is Outcome.OK, result.detail
    assert torch.equal(result.outputs[0], torch.arange(20 * 32).float().reshape(20, 32) * 2)
