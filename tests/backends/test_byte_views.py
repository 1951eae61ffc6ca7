"""`pypto.view(x, dtype=...)` of a part of a tensor reads its own rows, as torch does; pypto read what lies beside them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests import program, quickly

quickly.skip_without("pypto")
pytestmark = [pytest.mark.sim, pytest.mark.slow]

KERNELS = Path(__file__).with_name("byte_views.py")


def test_each_row_of_a_part_is_read_as_the_other_type() -> None:
    done = program.python("-m", "pypto_op.cli", "script", KERNELS)
    found: dict[str, list[bool]] = {}
    for line in done.stdout.splitlines():
        found |= json.loads(line)
    four, two = [True] * 4, [True] * 2
    expected = {"bytes_as_floats": four, "columns_as_halves": four, "middle_of_three_axes": two, "all_of_it": four}
    assert found == expected, done.stderr[-2000:]
