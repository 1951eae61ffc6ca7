"""A kernel that was wrong on a draw is judged on that draw again, so that nobody may ask until chance is kind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.passes import pass_for_bytes

from pypto_op.judge import verify as judging
from pypto_op.proof import evidence
from pypto_op.workspace import OpWorkspace

from .judging import CASES, place, verify

pytestmark = [pytest.mark.sim, pytest.mark.usefixtures("numeric")]
BAD, GOOD, OTHER = 777, 5, 6


@pytest.fixture
def ws(clean_workspace: Path) -> OpWorkspace:
    """sum_diff, right but for large values, which one seed alone draws."""
    ws = place("sum_diff", clean_workspace, cases=CASES[:1])
    ws.impl.write_text(ws.impl.read_text().replace("x_tile - y_tile", "pypto.clip(x_tile, -50.0, 50.0) - y_tile"))
    inputs = ws.test_inputs.read_text()
    large = f'    x = x * (100.0 if case.get("seed") == {BAD} else 1.0)\n'
    ws.test_inputs.write_text(inputs.replace("    return {", f"{large}    return {{"))
    return ws


def draws(monkeypatch: pytest.MonkeyPatch, *seeds: int) -> None:
    """Let the verdicts that follow draw these seeds."""
    left: Iterator[int] = iter(seeds)
    monkeypatch.setattr(judging, "fresh_seed", lambda: next(left))


def status(ws: OpWorkspace, *arguments: str) -> str:
    report: dict[str, Any] = verify(ws.root, *arguments).report
    return str(report["status"])


def test_a_kernel_that_failed_fails_again_whatever_is_drawn_next(ws: OpWorkspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until its text, its suite or its inputs are others; a comment makes no other kernel."""
    draws(monkeypatch, GOOD, BAD, OTHER, OTHER, OTHER)
    assert status(ws) == "PASS"
    evidence.keep(ws, evidence.read_report(ws.report))
    assert pass_for_bytes(ws) is not None
    assert status(ws) == "FAIL"
    assert pass_for_bytes(ws) is None, "the PASS before is none any more"
    assert status(ws) == "FAIL"
    ws.impl.write_text(f"# as before\n{ws.impl.read_text()}")
    assert status(ws) == "FAIL"
    ws.suite.write_text(ws.suite.read_text() + "\n")
    assert status(ws) == "PASS"
    assert pass_for_bytes(ws) is not None


def test_a_verdict_that_is_broken_off_is_judged_on_its_draw(ws: OpWorkspace, monkeypatch: pytest.MonkeyPatch) -> None:
    draws(monkeypatch, BAD, GOOD)

    def broken_off(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as once:
        once.setattr(judging, "run_cases", broken_off)
        with pytest.raises((KeyboardInterrupt, SystemExit)):
            judging.verify_operator(ws)
    assert status(ws) == "FAIL"
