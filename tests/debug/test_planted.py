"""Some of the faults that `python -m benchmarks faults` plants, a cheap one of each class; and the page that it writes."""

from __future__ import annotations

import pytest
from benchmarks import faults, planted
from tests.diagnose.device_logs import all_logs

SAMPLE = (
    *sorted(fault for fault, _ in planted.SHOWN.values()),
    "softmax/last_column_left_out_of_sum",
    "rmsnorm/weight_inside_square",
    "rmsnorm/half_steps_written",
    "rmsnorm/tile_of_zero",
    "rmsnorm/weight_without_view",
    "gated_delta_rule_bwd/product_not_transposed",
    "softmax/sum_plus_one",
    "rmsnorm/same_place",
    "softmax/mean_unsquared",
    "softmax/tile_left_out",
    "matmul_bias_gelu/bias_of_other_columns",
    "matmul_bias_gelu/written_transposed",
    "group_norm_silu/scale",
    "cross_entropy/return_swapped",
    "flash_attention_fwd/sum_no_rescale",
    "flash_attention_bwd/row_dot_of_values",
    "swiglu/gate_and_up_exchanged",
    "rotary_pairs/cosine_for_sine",
    "group_norm_silu/gain_left_out",
    "cross_entropy/labels_from_one",
)
"""One of each class, and one of each way to a line."""


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


def test_every_class_names_a_fault_of_its_own_and_a_log_that_is_there() -> None:
    kinds = {fault.id: fault.kind for fault in faults.all_faults()}
    assert {kind: kinds.get(fault) for kind, (fault, _) in planted.SHOWN.items()} == {kind: kind for kind in planted.KINDS}
    logs = {log.name for log in all_logs()}
    assert {log for _, log in planted.SHOWN.values()} - {""} <= logs
