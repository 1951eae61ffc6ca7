"""Cases in which several things are unusual at once: faults that no case of one alone shows. No kernel runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from pypto_op.documents import constraints
from pypto_op.generators.cases import suite as suite_cases

from .test_scalars_lists_and_pools import drawn, unseen
from .test_suite import operator


def test_heads_share_in_a_number_that_is_no_power_of_two_and_many_of_them(tmp_path: Path) -> None:
    """A shift by the logarithm of the share, and a key head modulo 4, were right in every case."""
    for op, heads, groups in (("window_attention", "H", "G"), ("paged_decode", "HQ", "HKV")):
        shapes = [case["shape"] for case in suite_cases.cases(unseen(op, tmp_path / op)) if case["precision"]]
        shared = [(shape[heads] // shape[groups], shape[groups]) for shape in shapes]
        assert any(share == 3 and parts > 4 for share, parts in shared), op


def test_only_a_rest_of_two_names_is_a_share() -> None:
    assert list(constraints.shares(["H % G == 0 and D % 16 == 0", "A % B == 1", "S <= T", "16 % K == 0"])) == [("H", "G")]


def test_the_smallest_build_is_tried(tmp_path: Path) -> None:
    """The draw of other builds begins at the suite's smallest: 8 pairs of a head of 16 were tried nowhere."""
    shapes = [case["shape"] for case in suite_cases.cases(unseen("rotary_pairs", tmp_path)) if "build_least" in case["id"]]
    assert [(shape["H"], shape["D"], shape["C"]) for shape in shapes] == [(1, 16, 8)]


def test_a_table_has_more_pages_than_float16_names(tmp_path: Path) -> None:
    shapes = [case["shape"] for case in suite_cases.cases(unseen("paged_decode", tmp_path))]
    assert max(shape["P"] for shape in shapes) == 4111


def test_whole_numbers_have_other_values_at_once_and_beyond_short_rows(tmp_path: Path) -> None:
    """A window that is wrong where it exceeds the row hid behind the sinks, and a bound of 512 behind rows of 195."""
    cases = suite_cases.cases(unseen("window_attention", tmp_path))
    tried = {(case.get("window", 40), case.get("sink", 4)) for case in cases}
    assert {(1, 0), (4096, 0), (1, 16)} <= tried
    assert {case["shape"]["S"] for case in cases if case.get("window") == 1 and case.get("sink") == 0} == {19, 195}
    assert any(512 < case.get("window", 40) < case["shape"]["S"] for case in cases)
    pooled = suite_cases.cases(unseen("avg_pool_image", tmp_path / "other"))
    assert all(2 * case.get("pad", 1) <= case.get("window", 3) for case in pooled), "none that SPEC.md rules out"


@pytest.mark.parametrize("window", ["gap < 384", "gap < WINDOW", "not gap >= 384"])
def test_rows_exceed_twice_a_number_that_the_golden_compares_with(window: str, tmp_path: Path) -> None:
    """A window of 768 where SPEC.md says 384 passed: no row was longer, and a bias hid what lies so far away."""
    sources = unseen("window_attention", tmp_path)
    golden = sources.ws.golden
    text = golden.read_text(encoding="utf-8")
    golden.write_text(f"WINDOW = 384\n{text.replace('gap < window', window)}", encoding="utf-8")
    cases = suite_cases.cases(sources)
    assert {case["shape"]["S"] for case in cases if "_past_384" in case["id"]} == {2 * 384 + 3}
    golden.write_text(text, encoding="utf-8")
    # The row longer than 40 is there already.
    assert not [case for case in suite_cases.cases(sources) if "_past_" in case["id"]]


@pytest.mark.parametrize("dtypes", [["float32"], ["float32", "bfloat16"]])
def test_values_in_bfloat16_exceed_float16(tmp_path: Path, dtypes: list[str]) -> None:
    """A detour by float16 keeps every bit of a bfloat16, and what is huge stayed below 65504."""
    cases = [case for case in suite_cases.cases(operator(tmp_path, supported_dtypes=dtypes)) if "beyond_half" in case["id"]]
    assert [case["draw_scale"] for case in cases] == ([{"x": 1e5}, {"y": 1e5}] if len(dtypes) > 1 else [])
    assert all(case["dtype"]["default"] == "bfloat16" for case in cases)
    bounded = suite_cases.cases(unseen("rotary_pairs", tmp_path / "other"))
    assert [case["draw_scale"] for case in bounded if "beyond_half" in case["id"]] == [{"x": 1e5}], "not those in [-1, 1]"


def test_a_tensor_that_drowns_the_others_is_large_beside_large_ones(tmp_path: Path) -> None:
    """A merge of experts by way of float16 passed: beside a residual of 1e5 no row shows, so that case was left out."""
    maker = suite_cases.filled(operator(tmp_path))
    single = [case for case in maker.cases if "beyond_half" in case["id"]]
    instead = [other for case in single for other in maker.in_place_of(case)]
    assert [case["draw_scale"] for case in instead] == [{"x": 1e5, "y": 1e5}], "once, whichever says nothing"


def test_every_score_is_far_below_zero(tmp_path: Path) -> None:
    """A maximum that starts at 0, or a mask of -10000: no row of scores lay below the latter."""
    sources = unseen("window_attention", tmp_path)
    [case] = [case for case in suite_cases.cases(sources) if "products_low_" in case["id"]]
    made = drawn(sources, case["shape"], 7, **{key: value for key, value in case.items() if key.startswith("draw")})
    first, other = (made[name].double().reshape(-1, 64) for name in ("q", "k"))
    assert float((first @ other.T).max()) * 0.125 < -1e4
