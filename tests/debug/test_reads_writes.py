"""What is written in the place of an output, in words: a line of the golden, or an input of it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from pypto_op.debug.matching import Match
from pypto_op.debug.reads_writes import misplaced


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
