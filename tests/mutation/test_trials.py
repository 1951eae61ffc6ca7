"""Which trial comes first, and which inputs beside the suite tell a mutant from the kernel."""

from __future__ import annotations

from itertools import islice

import torch

from pypto_op.mutation.likeness import MOST_PROBES, SPECIAL, Likeness, _recipes
from pypto_op.mutation.trials import Order, Trial, one_per_kind


def trial(case: str) -> Trial:
    return Trial(case, 1, [], None, None)  # type: ignore[arg-type]


def test_what_killed_a_fault_of_the_same_kind_comes_first() -> None:
    order = Order([trial("short"), trial("long")])
    for _ in range(6):
        order.learn(0, True, "constant")
        order.learn(0, False, "loop_bound")
        order.learn(1, False, "constant")
        order.learn(1, True, "loop_bound")
    assert order.next(set(), "constant") == 0
    assert order.next(set(), "loop_bound") == 1


def test_the_first_inputs_are_each_special_value_and_axes_beyond_the_suite() -> None:
    cases = [
        {"id": f"{dtype}_{rows}", "shape": {"N": rows, "D": 8}, "dtype": {"default": dtype}, "seed": 1}
        for dtype in ("float32", "float16", "bfloat16")
        for rows in (4, 40, 400)
    ]
    first = [(name, case) for name, case, _ in islice(_recipes(cases, 3), MOST_PROBES)]
    assert all(any(name.endswith(f"with {word}") for name, _ in first) for word in SPECIAL)
    assert any(case["shape"]["N"] > 400 for _, case in first) and any(case["shape"]["D"] > 8 for _, case in first)
    assert {case["dtype"]["default"] for _, case in first} == {"float32", "float16", "bfloat16"}
    assert len({name for name, *_ in _recipes(cases, 3)}) == len(list(_recipes(cases, 3)))


def test_a_whole_run_is_asked_for_in_each_dtype_and_with_each_scalar() -> None:
    def made(case: str, rows: int, dtype: torch.dtype, causal: bool) -> Trial:
        return Trial(case, 1, [torch.zeros(rows, 4, dtype=dtype), causal], None, None)  # type: ignore[arg-type]

    trials = [made("long", 9, torch.float32, True), made("short", 2, torch.float32, True)]
    trials += [made("plain", 5, torch.float32, False), made("narrow", 5, torch.float16, True)]
    assert {trial.case for trial in one_per_kind(trials)} == {"short", "plain", "narrow"}


def test_inputs_on_which_the_kernel_is_wrong_say_nothing_of_a_mutant() -> None:
    assert Likeness(60, outside=1).sentence() == (
        "same bits as the kernel on all 60 inputs; 1 more, on which the kernel itself is wrong, gave others"
    )
    assert Likeness(61).sentence() == "same bits as the kernel on all 61 inputs"
