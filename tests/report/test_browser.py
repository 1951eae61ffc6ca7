"""The pages in a real browser: wide and narrow, light and dark, nothing overflows and no text is cut."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from tests.report.browser import Browser

from pypto_op.report import index
from pypto_op.report.index import Row
from pypto_op.report.maps import HeatMap
from pypto_op.report.page import Story, render
from pypto_op.report.timeline import Event, Kind

pytestmark = pytest.mark.slow

_LONG = "a_name_of_an_operator_that_somebody_made_as_long_as_names_may_be"
_DIGEST = "0123456789abcdef" * 4
VIEWS = [(1280, False), (1280, True), (390, False), (390, True)]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One Chromium for all tests of this file."""
    shared = Browser()
    yield shared
    shared.close()


def check(number: int) -> dict:
    status = "FAIL" if number % 3 == 0 else "PASS"
    leaf = {"name": "out", "max_violation": 31234.5678 * number, "fail_fraction": 0.0123}
    return {
        "id": f"L3_{_LONG}_{number}", "level": "L3", "status": status, "max_abs_diff": 1.23e-7, "max_rel_diff": 1e6,
        "per_mode_status": {"sim": status, "npu": "SKIPPED"},
        "modes": {"sim": {"status": status, "reason": f"elements of an output were never written ({_LONG}: 528 of 8976)",
                          "per_tensor": [leaf]}},
    }  # fmt: skip


def story() -> Story:
    tail = [[0.01 if row < 16 else 1e6 for _ in range(96)] for row in range(31)]
    report = {
        "status": "FAIL", "checks": [check(n) for n in range(6)], "cases_total": 6, "cases_passed": 4,
        "per_mode_status": {"sim": "FAIL", "npu": "SKIPPED"}, "first_failure": {"summary": f"{_LONG}: 7 of 64 elements"},
        "modes": {"sim": {"caveats": ["races are not seen"]}}, "hashes": {"impl": _DIGEST, "interfaces": _DIGEST},
        "versions": {"g++": "g++ (Debian 12.2.0-14+deb12u1) 12.2.0"}, "policy": {"name": "mere_mare", "version": 1},
        "created": "2026-11-22T10:00:00+00:00", "seconds": 61.0,
    }  # fmt: skip
    events = [
        Event(0, 1, "pypto-op-coder", Kind.WRITE, f"writes modules/{_LONG}_module12_impl.py"),
        Event(70, 3.2, "hook", Kind.REFUSAL, "refuses the draft", f"custom/{_LONG}/{_LONG}_impl.py:3:1 " * 6),
        Event(5000, 61, "judge", Kind.VERDICT_FAIL, "FAIL: 4 of 6 cases pass", f"sim: {_DIGEST}"),
    ]
    row = {"mode": "sim", "cost": {"utilisation": 0.031}}
    perf = {"per_shape_results": [{**row, "label": f"B=2, T={n}, H=1024 bfloat16, {_LONG}", "median": 2.5 * n} for n in (1, 9)]}
    return Story(
        _LONG, [("First draft", report)], perf, events,
        [HeatMap(f"{_LONG}: first draft", tail, "Output out in sim.", (31, 4096))],
        datetime(2026, 11, 22, 8, 0, tzinfo=timezone.utc), swimlanes(),
    )  # fmt: skip


def swimlanes() -> dict[str, Any]:
    """Three tasks on two cores."""
    task = {"y": 1, "w": 300, "colour": 0, "critical": False, "title": f"AIV 0: {_LONG}"}
    lane = {
        "number": 1, "us": 8.0, "height": 24, "cores": ["AIC 0", "AIV 23"], "left_out": 3, "legend": [(0, f"loop {_LONG}")],
        "tasks": [{**task, "x": 0}, {**task, "x": 700, "critical": True}, {**task, "x": 400, "y": 13}],
    }  # fmt: skip
    return {"width": 1000, "colours": [0], "caveat": "no device time", "shapes": [{"label": _LONG, "lane": lane}]}


def rows() -> list[Row]:
    now = datetime.now(timezone.utc)
    return [
        Row("softmax", "6 final e2e: in progress", "PASS", "PASS", "", "27 / 27", now - timedelta(hours=3), "2.5 to 24 us", "x"),
        Row(_LONG, "5 construction, M12: in progress", "FAIL", "FAIL", "of phase M12 of 13", "1 / 27", now, "1234.5 us", "y"),
        Row("rmsnorm", "unknown", "PASS", "STALE", f"stale: impl, interfaces, {_LONG}.py changed since", "", None, ""),
        Row("begun", "not started", "none yet", "NONE", "", "", None, ""),
    ]


@pytest.mark.parametrize(("width", "dark"), VIEWS)
@pytest.mark.parametrize("kind", ["operator", "index"])
def test_nothing_overflows_and_no_text_is_cut(browser: Browser, tmp_path: Path, kind: str, width: int, dark: bool) -> None:
    page = tmp_path / "page.html"
    page.write_text(render(story()) if kind == "operator" else index.render(tmp_path / _LONG, rows()), encoding="utf-8")
    found = browser.open(page, width, dark=dark)
    assert found["wrong"] == []
    assert found["texts"] > 20
    assert found["status_seen"], "the status of the first row is not on the screen"
    assert (found["background"] == "rgb(16, 21, 31)") is dark


_WHEEL = """
(() => {
  const svg = document.querySelector("svg[data-lane]"), box = svg.getBoundingClientRect(), seen = [];
  const look = () => seen.push(svg.getAttribute("viewBox"), svg.closest(".lane").querySelector(".axis").innerText.trim());
  svg.dispatchEvent(new WheelEvent("wheel", { deltaY: -1, clientX: box.right, cancelable: true })); look();
  svg.dispatchEvent(new MouseEvent("dblclick")); look();
  return JSON.stringify(seen);
})()
"""


def test_a_swimlane_zooms(browser: Browser, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text(render(story()), encoding="utf-8")
    browser.open(page, 1280, dark=False)
    near, axis, whole, all_of_it = json.loads(browser.value(_WHEEL))
    assert near == "200 0 800 24" and axis.split() == ["1.60", "µs", "8.00", "µs"], "towards the pointer, at the right end"
    assert whole == "0 0 1000 24" and all_of_it.split()[0] == "0.00"


def test_the_measure_sees_what_it_is_for(browser: Browser, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    wide = "<!doctype html><meta name=viewport content='width=device-width'><body style='margin:0'>{}"
    for body, said in (
        ("<div style='width:430px'>chart</div>", "page: 430 of 390 px"),
        ("<div style='overflow:hidden;white-space:nowrap;width:90px'>a text that is far too long</div>", "clipped"),
        ("<p class=card style='width:80px'>" + "w" * 40 + "</p>", "text over the edge"),
        ("<div style='overflow:auto;height:20px'><p>one<p>two<p>three</div>", "clipped in height"),
    ):
        page.write_text(wide.format(body), encoding="utf-8")
        assert any(said in line for line in browser.open(page, 390, dark=False)["wrong"]), said
