"""Some of the faults that `python -m benchmarks faults` plants, a cheap one of each class; and the page that it writes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

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
    "lora_linear/base_scaled",
    "paged_decode/pages_of_first_sequence",
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


def test_a_run_measures_what_has_no_row_or_changed_and_keeps_the_rest(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    chosen = list(planted.failures("swiglu"))
    asked: list[str] = []

    def measured(fault: planted.Fault) -> dict[str, object]:
        asked.append(fault.id)
        right = dict.fromkeys(("category", "skill", "line", "line_among", "blame"), True)
        return {"digest": faults.digest(fault), "debugger": "now", "kind": fault.kind, "cpu": {}, "right": right}

    monkeypatch.setattr(faults, "all_faults", lambda: iter(chosen))
    monkeypatch.setattr(faults, "measured", measured)
    monkeypatch.setattr(faults, "RESULTS", tmp_path / "results" / "faults.json")
    monkeypatch.setattr(faults, "PAGE", tmp_path / "page.md")
    faults.run(quick=False)
    assert asked == [fault.id for fault in chosen]

    monkeypatch.setattr(faults, "debugger", lambda: "later")  # another debugger alone is no reason to measure for half an hour
    faults.run(quick=False)
    assert len(asked) == len(chosen)
    assert f"0 of the {len(chosen)} were measured with the last state" in faults.PAGE.read_text(encoding="utf-8")

    impl = "swiglu_impl.py"
    chosen[0] = replace(chosen[0], files={impl: chosen[0].files[impl] + b"\n# changed\n"})
    moved = planted.planted_into("swiglu") | {"swiglu_golden.py": b"# another golden\n"}
    faults.run(quick=False)
    assert asked[len(chosen) :] == [chosen[0].id]
    monkeypatch.setattr(faults, "planted_into", lambda op: moved)
    faults.run(quick=False)
    assert asked[len(chosen) + 1 :] == [fault.id for fault in chosen]
