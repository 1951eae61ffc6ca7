"""Some of the faults that `python -m benchmarks faults` plants, a cheap one of each class; and the page that it writes."""

from __future__ import annotations

import pytest
from benchmarks import faults, planted

SAMPLE = (
    "rmsnorm/dtype_mix",
    "rmsnorm/no_tile",
    "softmax/ub_overflow",
    "softmax/view_past_the_end",
    "softmax/state_consumed",
    "softmax/library_missing",
    "matmul_bias_gelu/aicore_error",
    "rmsnorm/no_wrapper",
    "rmsnorm/wrong_eps",
    "rmsnorm/dropped_tail",
    "softmax/last_column_left_out_of_sum",
    "rmsnorm/golden_sum",
    "softmax/sum_plus_one",
    "rmsnorm/weight_squared",
    "rmsnorm/same_place",
)


@pytest.mark.sim
@pytest.mark.timeout(900)
@pytest.mark.usefixtures("numeric")
@pytest.mark.parametrize("name", SAMPLE)
def test_the_debugger_names_category_skill_line_and_culprit(name: str) -> None:
    op = name.partition("/")[0]
    fault = next(one for made in (planted.failures(op), planted.wrong_numbers(op)) for one in made if one.id == name)
    row = faults.measured(fault, warm=True)
    assert not [what for what, right in row["right"].items() if right is False], row


def test_the_corpus_holds_every_class_and_sixty_faults() -> None:
    found = list(faults.all_faults())
    assert len(found) >= 60 and len({fault.id for fault in found}) == len(found)
    assert {fault.kind for fault in found} == set(planted.KINDS) and {fault.op for fault in found} == set(planted.operators())


def test_the_page_is_what_the_results_say() -> None:
    assert faults.PAGE.read_text(encoding="utf-8") == faults.page(), "run: python -m benchmarks.faults --page"
