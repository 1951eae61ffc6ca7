"""The page a person is shown: self-contained, complete, and honest about what it does not know."""

from __future__ import annotations

import json
import re
from datetime import datetime, timezone
from pathlib import Path

import pytest
from click.testing import CliRunner

from pypto_op.errors import ContractError
from pypto_op.report.commands import report
from pypto_op.report.maps import HeatMap
from pypto_op.report.page import Story, render
from pypto_op.report.timeline import Event, Kind


def verdict(status: str = "FAIL") -> dict:
    check = {
        "id": "L3_tail",
        "level": "L3",
        "status": status,
        "max_abs_diff": 0.5,
        "max_rel_diff": 0.25,
        "per_mode_status": {"sim": status, "npu": "SKIPPED"},
        "modes": {
            "sim": {"reason": "values <outside> the tolerance", "per_tensor": [{"max_violation": 31.0, "fail_fraction": 0.01}]},
            "npu": {"reason": "no device", "per_tensor": []},
        },
    }
    return {
        "status": status,
        "checks": [check],
        "cases_total": 1,
        "cases_passed": int(status == "PASS"),
        "per_mode_status": {"sim": status, "npu": "SKIPPED"},
        "first_failure": {"summary": "out: 7 of 64 elements"},
        "modes": {"sim": {"caveats": ["races are not seen"]}},
        "hashes": {"impl": "ab" * 32},
        "versions": {"pypto": "0.2.0"},
        "policy": {"name": "mere_mare", "version": 1},
    }


def perf() -> dict:
    row = {"mode": "sim", "label": "T=64", "median": 2.5, "cost": {"utilisation": 0.27}}
    return {"per_shape_results": [row, {**row, "median": None}]}


def story(**parts: object) -> Story:
    return Story("demo", [("First draft", verdict())], **parts)  # type: ignore[arg-type]


def test_page_fetches_nothing() -> None:
    page = render(story(perf=perf(), heat_maps=[HeatMap("tail", [[0.1, 20.0]], "note")]))
    assert not re.search(r"<(?:script|link|img|iframe)\b", page)
    assert not re.search(r"url\(\s*['\"]?https?:", page)
    assert page.count("<svg") == 1


def test_page_shows_verdict_reason_caveats_and_binding() -> None:
    page = render(story())
    for text in ("FAIL", "L3_tail", "values &lt;outside&gt; the tolerance", "races are not seen", "ab" * 32, "31", "0.01"):
        assert text in page


def test_a_mode_that_was_skipped_is_no_row_of_a_case_that_was_judged() -> None:
    assert "no device" not in render(story())


def test_a_case_that_no_mode_judged_says_why() -> None:
    report_ = verdict("SKIPPED")
    assert "no device" in render(Story("demo", [("Verdict", report_)]))


def test_page_without_a_verdict_claims_none() -> None:
    page = render(Story("demo"))
    assert "no verdict yet" in page
    assert "PASS" not in re.sub(r"<style>.*?</style>", "", page, flags=re.S)


def test_refusals_are_counted_and_open() -> None:
    events = [Event(0, 1, "coder", Kind.WRITE, "writes"), Event(1, 1, "hook", Kind.REFUSAL, "refuses", "because <b>")]
    page = render(story(events=events))
    assert ">1</b><span>refusals" in page
    assert "because &lt;b&gt;" in page
    assert "<details open>" in page


def test_shapes_without_a_time_are_not_drawn() -> None:
    page = render(story(perf=perf()))
    assert page.count("27 % busy") == 1


def test_page_says_when_it_began_how_long_all_took_and_when_it_was_judged() -> None:
    begun = datetime(2026, 11, 22, 8, 30, tzinfo=timezone.utc)
    report_ = {**verdict(), "created": "2026-11-22T10:00:00+00:00", "seconds": 61.2}
    events = [Event(0, 1, "coder", Kind.WRITE, "writes"), Event(5400, 30, "judge", Kind.VERDICT_FAIL, "FAIL")]
    page = render(Story("demo", [("Verdict", report_)], events=events, begun=begun))
    assert "Begun 2026-11-22 08:30 UTC; 1 h 30 min from the first step to the last." in page
    assert "Judged 2026-11-22 10:00 UTC in 1 min 1 s." in page
    assert "<b>1 h 30 min</b>" in page


def test_command_without_a_verdict_says_what_to_run(tmp_path: Path) -> None:
    (tmp_path / "custom" / "demo").mkdir(parents=True)
    (tmp_path / "custom" / "demo" / "SPEC.md").touch()
    result = CliRunner().invoke(report, [str(tmp_path / "custom" / "demo")])
    assert isinstance(result.exception, ContractError)
    assert f"run `pypto-op verify {tmp_path}/custom/demo`" in result.exception.one_line()


def test_command_tells_an_unsealed_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYPTO_OP_KEY_FILE", str(tmp_path / "seal.key"))
    ws = tmp_path / "custom" / "demo"
    (ws / "eval").mkdir(parents=True)
    (ws / "eval" / "evaluation_report.json").write_text(json.dumps(verdict("PASS")), encoding="utf-8")
    result = CliRunner().invoke(report, [str(ws)], catch_exceptions=False)
    assert result.exit_code == 0
    assert "NOT SEALED" in (ws / "eval" / "report.html").read_text(encoding="utf-8")


def test_the_page_tells_a_verdict_on_other_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pypto_op.proof.evidence.check_seal", lambda verdict: True)
    ws = tmp_path / "custom" / "demo"
    (ws / "eval").mkdir(parents=True)
    (ws / "demo_impl.py").write_text("changed = True\n", encoding="utf-8")
    (ws / "eval" / "evaluation_report.json").write_text(json.dumps(verdict("PASS")), encoding="utf-8")
    result = CliRunner().invoke(report, [str(ws)], catch_exceptions=False)
    assert result.exit_code == 0
    assert "changed since" in (ws / "eval" / "report.html").read_text(encoding="utf-8")


def test_a_draw_that_was_left_is_told() -> None:
    known = verdict("PASS")
    known["checks"][0]["modes"]["sim"]["reason"] = ""
    known["checks"][0]["left_draws"] = [7, 11]
    assert "with seed 7, 11 honest rounding takes too much" in render(Story("demo", [("", known)]))
    del known["checks"][0]["left_draws"]
    known["checks"][0]["alike_draws"] = [13]
    assert "another draw: seed 13 repeats an input" in render(Story("demo", [("", known)]))
    del known["checks"][0]["alike_draws"]
    assert "another draw" not in render(Story("demo", [("", known)]))
