"""docs/speed.md holds what was kept of the benchmarks, and says which targets were missed."""

import json

from benchmarks import keeping, page, request
from benchmarks.table import Row, Table

from pypto_op.bundle_files import bundle_root


def test_the_page_is_the_one_of_the_results():
    assert page.PAGE.read_text(encoding="utf-8") == page.text(json.loads(page.RESULTS.read_text(encoding="utf-8")))


def test_a_missed_target_is_named():
    table = Table("edits", "ms", [Row("fast", {"p95": 12.0}, 60), Row("slow", {"p95": 61.0}, 60)], ["quiet"])
    text = page.text({"hooks": {"load": 1.0, "tables": [table.as_dict()]}})
    assert "| fast | 12 | p95 <= 60: met |" in text and "| slow | 61 | p95 <= 60: **missed** |" in text
    assert "- quiet" in text


def test_keeping_one_benchmark_leaves_the_others(tmp_path, monkeypatch):
    monkeypatch.setattr(page, "RESULTS", tmp_path / "speed.json")
    monkeypatch.setattr(page, "PAGE", tmp_path / "speed.md")
    for name in ("state", "hooks", "state"):
        page.keep({name: {"load": 0.5, "tables": [Table(f"of {name}", "ms").as_dict()]}})
    assert list(json.loads(page.RESULTS.read_text())) == ["hooks", "state"]
    assert page.PAGE.read_text().count("## ") == 2


def test_a_call_takes_one_row_and_names_no_place_of_this_machine():
    command = f"pypto-op script {bundle_root()}/skills/x/run.py\n\n  pypto-op lint a | head\n"
    said = request.said({"tool": "Bash", "input": {"command": command}})
    assert said == "pypto-op script {{bundle}}/skills/x/run.py; pypto-op lint a / head"
    rows = [Row(said, {"cpu": 1.0})]
    text = page.text({"request": {"load": 0.0, "tables": [Table("calls", "s", rows).as_dict()]}})
    assert f"| {said} | 1 |  |" in text.splitlines()


def test_results_have_a_row_a_line_and_say_the_same() -> None:
    long = {f"column{n}": "x" * 50 for n in range(20)}
    value = {"one": long, "other": [long, long, 1.5], "short": {"a": [], "b": {}, "c": None}}
    assert json.loads(keeping.text(value)) == value
    starts = [line.strip()[:9] for line in keeping.text(value).splitlines()]
    assert starts == ["{", '"one": {"', '"other": ', '{"column0', '{"column0', "1.5", "],", '"short": ', "}"]
