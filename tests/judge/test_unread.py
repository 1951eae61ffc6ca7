"""Values where the golden reads nothing: a kernel that lets the padding behind a length in is refused, a right one never."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from .judging import place, verify

pytestmark = [pytest.mark.sim, pytest.mark.usefixtures("numeric")]

ROWS = "rows = pypto.min(count - t * ROWS, ROWS)"
SUM = "pypto.sum(pypto_widen(tile, dtype), 0, True)"
ALL_ROWS = {
    ROWS: "rows = pypto.min(size - t * ROWS, ROWS)\n            some = pypto.min(count - t * ROWS, ROWS)",
    SUM: "pypto.sum(pypto.view(pypto_widen(tile, dtype), [ROWS, width], [0, 0], valid_shape=[some, width]), 0, True)"
    " + pypto.sum(pypto_widen(tile, dtype) * FACTOR, 0, True)",
}
"""Rows behind the length are read, and come in times FACTOR: 0 hides every number but Inf and NaN."""


def judged(workspace: Path, impl: dict[str, str] | None = None, spec: str = "", golden: str = "", **case: Any) -> dict[str, Any]:
    """Return the report on ragged_mean with edits of the kernel, and with other words in the documents."""
    ws = place("ragged_mean", workspace)
    for old, new in (impl or {}).items():
        edit(ws.impl, old, new)
    if spec:
        edit(ws.spec, "NaN in the padding does not reach the output.", spec)
    if golden:
        edit(ws.golden, "def ragged_mean_golden", f"{golden}\ndef ragged_mean_golden")
    if case:
        edit(ws.suite, '"precision": true', '"precision": true, ' + ", ".join(f'"{k}": "{v}"' for k, v in case.items()))
    return verify(ws.root).report


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text, (path.name, old)
    path.write_text(text.replace(old, new))


def leaking(factor: str) -> dict[str, str]:
    return {old: new.replace("FACTOR", factor) for old, new in ALL_ROWS.items()}


def planted(report: dict[str, Any]) -> list[str]:
    return [what for check in report["checks"] for what in check.get("further_calls", {}).get("planted", [])]


def test_a_right_kernel_passes_with_anything_behind_its_lengths(tmp_path):
    report = judged(tmp_path)
    assert report["status"] == "PASS", report["first_failure"]
    assert planted(report) == ["huge values", "NaN"]


@pytest.mark.parametrize(("factor", "what"), [("0.0", "NaN"), ("1e-9", "huge values")])
def test_a_kernel_that_lets_the_padding_in_is_refused(tmp_path, factor, what):
    report = judged(tmp_path, leaking(factor))
    assert report["status"] == "FAIL"
    assert f"called with {what} where the golden reads nothing" in report["first_failure"]["summary"]


def test_nan_is_planted_only_where_the_spec_speaks_of_it(tmp_path):
    report = judged(tmp_path, leaking("0.0"), spec="Padding is finite.")
    assert report["status"] == "PASS" and planted(report) == ["huge values"]


def test_a_golden_without_gradients_is_asked_about_what_lies_behind_the_lengths(tmp_path):
    report = judged(tmp_path, leaking("0.0"), golden="@torch.no_grad()")
    assert report["status"] == "FAIL", "the NaN is planted all the same"
    assert planted(report) == ["huge values", "NaN"]


def test_zeros_behind_the_lengths_may_be_a_promise(tmp_path):
    report = judged(tmp_path, {ROWS: "rows = pypto.min(size - t * ROWS, ROWS)"}, behind="zeros")
    assert report["status"] == "PASS", report["first_failure"]["summary"]
    assert planted(report) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("loop", "status"), [("pypto.loop(count, ", "PASS"), ("pypto.loop(table.shape[1], ", "FAIL")], ids=["right", "all pages"]
)
def test_table_entries_behind_the_lengths_may_name_any_page(tmp_path, loop, status):
    ws = place("page_max", tmp_path)
    edit(ws.impl, "pypto.loop(count, ", loop)
    report = verify(ws.root, "--case", "pages").report
    assert report["checks"][0]["status"] == status, report["first_failure"]
    assert "other whole numbers" in planted(report)
    if status == "FAIL":
        assert "called with other whole numbers where the golden reads nothing" in report["first_failure"]["summary"]


def test_where_the_golden_reads_all_nothing_is_planted(tmp_path):
    report = verify(place("sum_diff", tmp_path).root).report
    assert report["status"] == "PASS", report["first_failure"]["summary"]
    assert planted(report) == []
