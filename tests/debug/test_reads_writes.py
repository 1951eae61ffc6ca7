"""What is written in the place of an output, in words: a line of the golden, or an input of it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from pypto_op.debug.matching import Match
from pypto_op.debug.reads_writes import misplaced
from pypto_op.debug.run_files import Graph


@pytest.mark.parametrize(("line", "words"), [(0, "takes as an input"), (7, "has at line 7")])
def test_what_is_no_output_is_named(line: int, words: str) -> None:
    value = torch.arange(12.0).reshape(3, 4)
    parent: Any = SimpleNamespace(number=1, opcode="MULS", parents=[], tensor=lambda: value)
    write: Any = SimpleNamespace(
        number=2, opcode="ASSEMBLE", parents=[1], names_tensor=True, offset=[0, 0], valid=[3, 4], tensor=lambda: value
    )
    golden: Any = SimpleNamespace(shapes={5: (3, 4)}, matches=lambda _: [Match(9, line, ((0, 0),))])
    (found,) = misplaced([parent, write], golden, [5])
    assert found.step is parent and found.why == f"writes what the golden {words}, which is no output of it"


def test_a_circle_of_operations_is_found() -> None:
    def graph(*rows: tuple[int, list[int], list[int]]) -> Graph:
        return Graph({"operations": [{"opmagic": n, "opcode": "EXP", "ioperands": i, "ooperands": o} for n, i, o in rows]})

    line = [(1, [10], [11]), (2, [11], [12]), (3, [12, 11], [13]), (4, [14], [14])]
    assert graph(*line).cycle() == [], "an operation that writes to its own operand is no circle"
    assert sorted(graph(*line, (5, [13], [10])).cycle()) in ([1, 3, 5], [1, 2, 3, 5])
