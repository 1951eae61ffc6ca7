"""How wrong outputs look, where no text says anything."""

from __future__ import annotations

from pypto_op.diagnose.numbers import ALL, EMPTY, look_of

_WRONG = {"name": "loss", "all_close": False, "fail_fraction": 1.0, "worst_index": [3], "shape": [8]}


def test_an_output_that_no_write_reached_is_told_before_wrong_numbers_of_another() -> None:
    unwritten = {"name": "entropy", "all_close": False, "unwritten_elements": 8}
    assert look_of([_WRONG])[0] == ALL
    assert look_of([_WRONG, unwritten]) == (EMPTY, "entropy is unwritten in 8 places")
    assert look_of([_WRONG, {**unwritten, "all_close": True}])[0] == ALL, "what is right explains nothing"
