"""What a demo leaves: two refusals, a sealed pass, a benchmark, and a page that shows the planted fault."""

from __future__ import annotations

import json
import re
from pathlib import Path


def assert_demo_refuses_and_passes(out: Path) -> None:
    """Look at the folder `out` of a demo that ended with exit code 0."""
    op = out / "custom" / "rmsnorm"
    report = json.loads((op / "eval" / "evaluation_report.json").read_text(encoding="utf-8"))
    assert report["status"] == "PASS"
    state = json.loads((op / ".orchestrator_state.json").read_text(encoding="utf-8"))
    assert state["stage_status"]["6"] == "completed"
    perf = json.loads((op / "eval" / "perf_result.json").read_text(encoding="utf-8"))
    assert perf["failed_cases"] == 0 < perf["passed_cases"]
    page = (out / "report.html").read_text(encoding="utf-8")
    assert ">2</b><span>refusals" in page
    assert page.count("<svg") == 2
    # The planted fault drops the ragged tail: the map shows it as such, with the whole tiles before it right.
    assert "Outside the tolerance: rows 16 to 30 (the last is 30), in every column." in page
    assert "No element is outside the tolerance." in page
    assert re.search(r"Begun 20\d\d-\d\d-\d\d", page)
    assert "OL48" in page
