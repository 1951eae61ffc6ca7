"""Numbers that a task gives to its constructor: which are tried, and what is said.

fresh/masks_and_constructors.yaml has whole files.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from tests.triton import lab

from pypto_op.backends.base import Limits
from pypto_op.triton.run.inputs import constructor
from pypto_op.triton.run.processes.sessions import TaskSession
from pypto_op.triton.run.setup.targets import choose


class Kind:
    def __init__(self, size: int, slope: float, groups: int, dim: int, bias: bool, *, eps: float = 1e-5) -> None: ...


GIVEN: constructor.Given = ([64, 0.1, 5, -1, True], {"eps": 0.0})


def test_fractions_and_whole_numbers_that_are_no_sizes_are_found() -> None:
    found = constructor.found(GIVEN, Kind, [torch.ones(3, 64)])
    assert found == [("1", 0.1, "slope"), ("eps", 0.0, "eps"), ("2", 5, "groups")]
    assert constructor.found(([], {}), torch.exp, []) == []


def test_other_numbers_keep_their_kind_and_their_place() -> None:
    positional, named = constructor.moved(GIVEN, {"2": [6.0], "eps": [0.5]})
    assert positional == [64, 0.1, 6, -1, True] and type(positional[2]) is int and named == {"eps": 0.5}


@pytest.mark.parametrize(("value", "others"), [(0.5, [0.375, 0.125]), (-2.0, [-3.0, -1.5]), (0.0, [0.5, -0.5]), (4, [5, 3, 8])])
def test_a_part_of_one_stays_one(value: float, others: list[float]) -> None:
    assert constructor.others(value) == others


def test_numbers_that_are_equal_get_different_ones_together() -> None:
    numbers = [("0", 0.5, "alpha"), ("1", 0.5, "beta"), ("2", 2.0, "power")]
    assert constructor.together(numbers) == {"0": [0.375], "1": [0.125], "2": [3.0]}
    assert constructor.alike([*numbers, ("3", 1, "turns")], numbers[0]) == [numbers[1]]


LEAKY = """
    import torch
    import torch.nn as nn


    class Model(nn.Module):
        def __init__(self, slope, scale):
            super().__init__()
            self.slope, self.scale = slope, scale

        def forward(self, x):
            return torch.where(x > 0, x, x * self.slope) * self.scale


    def get_inputs():
        return [torch.randn(8, 64)]


    def get_init_inputs():
        return [0.1, 2.0]
"""
KERNEL = """
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def leaky_kernel(x_ptr, out_ptr, slope, scale, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(out_ptr + i, tl.where(x > 0, x, x * slope) * scale, mask=i < n)


class ModelNew(nn.Module):
    def __init__(self, slope, scale):
        super().__init__()
        self.slope, self.scale = slope, scale

    def forward(self, x):
        out = torch.empty_like(x)
        leaky_kernel[(2,)](x, out, {slope}, {scale}, x.numel(), BLOCK=256)
        return out
"""


def judged(place: Path, slope: str, scale: str, given: str = "[0.1, 2.0]") -> dict[str, Any]:
    impl = KERNEL.replace("{slope}", slope).replace("{scale}", scale)
    return lab.verify(lab.folder(place, LEAKY.replace("[0.1, 2.0]", given), impl, op="leaky"))


@pytest.mark.slow
@pytest.mark.parametrize(("slope", "scale", "named"), [("0.1", "2.0", "slope"), ("self.slope", "2.0", "scale")])
def test_a_kernel_that_knows_such_a_number_is_refused(slope: str, scale: str, named: str, place: Path) -> None:
    result = judged(place, slope, scale)
    assert result["status"] == "FAIL"
    assert f"argument {named} of the constructor is ignored" in result["failures"][0]["error_msg"]


@pytest.mark.slow
def test_one_that_asks_for_it_passes(place: Path) -> None:
    assert judged(place, "self.slope", "self.scale")["status"] == "PASS"


@pytest.mark.slow
def test_one_that_is_wrong_in_another_way_passes_with_a_word(place: Path) -> None:
    result = judged(place, "self.slope if self.slope == 0.1 else 0.7", "self.scale")
    assert result["status"] == "PASS"
    assert any("argument slope of the constructor the implementation is wrong" in line for line in result["caveats"])


@pytest.mark.slow
def test_one_that_is_written_for_a_whole_number_passes_with_a_word(place: Path) -> None:
    result = judged(place, "self.slope", "3", "[0.1, 3]")
    assert result["status"] == "PASS"
    assert any("argument scale of the constructor is ignored" in line for line in result["caveats"])


ROWS = """
    import torch
    import torch.nn as nn


    class Model(nn.Module):
        def __init__(self, rows):
            super().__init__()
            if rows % 2:
                raise ValueError("an even number")
            self.rows = rows

        def forward(self, x):
            return torch.zeros(self.rows).index_add(0, torch.arange(8), x)


    def get_inputs():
        return [torch.randn(8)]


    def get_init_inputs():
        return [8]
"""


@pytest.mark.parametrize("rows", [7, 6], ids=["by_the_constructor", "by_forward"])
def test_a_number_that_the_reference_does_not_take_costs_no_process(rows: int, place: Path) -> None:
    """On a device a new one takes 7 s: torch is loaded again."""
    session = TaskSession(lab.folder(place, ROWS, lab.impl("return x")), choose("interpret"), Limits())
    try:
        session.open(1)
        session.case(0, 1)
        before = session._conversation
        session.open(1)
        _, facts = session.case(0, 1, move=constructor.MOVE, places={"0": [rows]})
        assert facts["same"] and session._conversation is before is not None
    finally:
        session.close()


BOUND = """
    import torch
    import torch.nn as nn


    class Model(nn.Module):
        def __init__(self, bound):
            super().__init__()
            self.bound = bound

        def forward(self, x):
            return x.clamp(max=self.bound)


    def get_inputs():
        return [torch.randn(8, 16)]


    def get_init_inputs():
        return [50.0]
"""


def test_a_bound_tells_on_inputs_that_reach_it(place: Path) -> None:
    session = TaskSession(lab.folder(place, BOUND, lab.impl("return x")), choose("interpret"), Limits())
    try:
        session.open(1)
        _, facts = session.case(0, 1, move=constructor.MOVE, places={"0": [75.0]})
        assert facts["same"]
        session.open(1)
        given, facts = session.case(0, 1, move=constructor.FAR, places={"0": [75.0]})
        assert facts["skewed"] == constructor.FAR
        assert float(given["outputs"].max()) == 75.0
    finally:
        session.close()
