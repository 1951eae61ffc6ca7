"""The record of what runs beside kernels: it looks away while a kernel's body runs, and at nothing else."""

from __future__ import annotations

import os
import sys
from types import FrameType
from typing import Any

import pytest

from pypto_op.triton.run.watching.lines import Lines

FILE = os.path.realpath(__file__)


def _marked() -> int:
    return sys._getframe().f_lineno


def _ran(lines: Lines, line: int) -> bool:
    return (FILE, line, "") in lines.ran


@pytest.mark.parametrize("rests", [False, True])
def test_it_looks_away_where_it_may_and_looks_again(rests: bool) -> None:
    lines = Lines(frozenset({FILE}))
    lines.rests = rests
    with lines:
        lines.rest()
        line = _marked()
        seen = _ran(lines, line)
        lines.wake()
        _marked()
        active = lines.is_active()
    assert seen is not rests
    assert active and _ran(lines, line)


def test_a_record_that_was_taken_away_meanwhile_stays_away() -> None:
    def other(frame: FrameType, event: str, argument: Any) -> None:
        return None

    lines = Lines(frozenset({FILE}))
    lines.rests = True
    with lines:
        lines.rest()
        sys.settrace(other)
        lines.wake()
        active = lines.is_active()
    assert not active


def test_a_record_that_was_taken_away_before_a_kernel_stays_away() -> None:
    lines = Lines(frozenset({FILE}))
    lines.rests = True
    with lines:
        sys.settrace(None)
        lines.rest()
        lines.wake()
        active = lines.is_active()
    assert not active
