"""Every bad candidate gets its verdict through the public command, in bounded time, and leaves nothing behind.

An ordinary run judges one for each verdict, others whenever a back end changes; PYPTO_OP_ALL_CASES=1 judges them all.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests import quickly

from pypto_op.backends.registry import get_backend
from pypto_op.proof import evidence
from pypto_op.vocabulary import Mode

from . import bad_table
from .bad_table import BadCandidate
from .judging import CASES, REPOSITORY, Answer, files_below, place, verify

ROWS = bad_table.load()


def _judged() -> list[BadCandidate]:
    """Return one row for each verdict, and all that pass: a right kernel that is refused is the dearer mistake here."""
    kinds = {row.id: f"{row.expect['status']} {row.expect['reason']} {row.expect['category']}" for row in ROWS}
    drawn = quickly.drawn_of_each(kinds, 1, about="backends")
    return [row for row in ROWS if row.id in drawn or row.expect["status"] == "PASS"]


MODES = [str(mode) for mode in Mode if get_backend(mode).availability().ok]
"""Every back end of this machine is held to the whole table."""


def cases_for(row: BadCandidate) -> list[dict[str, Any]]:
    """One case shows most verdicts; two where the row is about the ragged one, and for the control."""
    return CASES if "case" in row.expect or row == ROWS[0] else CASES[:1]


def judge(row: BadCandidate, workspace: Path, mode: str) -> Answer:
    cases = [{**case, **({"layout": row.layout} if row.layout else {})} for case in cases_for(row)]
    ws = place("sum_diff", workspace, cases=cases, most=80)
    source = row.source_from(ws.impl.read_text())
    ws.impl.unlink()
    if source is not None:
        ws.impl.write_text(source)
    return verify(ws.root, *row.arguments, modes=mode)


@pytest.mark.sim
@pytest.mark.usefixtures("numeric")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("row", _judged(), ids=lambda row: row.id)
def test_verdict(row: BadCandidate, mode: str, clean_workspace: Path) -> None:
    answer = judge(row, clean_workspace, mode)
    report, want = answer.report, row.expect
    failure = report["first_failure"] or {}
    got = (report["status"], failure.get("reason"), failure.get("failure_category"), answer.code)
    assert got == (want["status"], want["reason"], want["category"], want["exit"]), failure.get("summary")
    if "case" in want:
        assert failure["case_id"] == want["case"]
    for reason in want.get("also", ()):
        assert reason in report["checks"][0]["modes"][mode]["reasons"]
    whole = len(cases_for(row)) + len(report.get("fresh_shapes", {"cases": []})["cases"])
    assert (report["status"] == "PASS") == (report["cases_passed"] == whole)
    assert evidence.check_seal(report)
    assert answer.stdout == (clean_workspace / "custom/sum_diff/eval/evaluation_report.json").read_text()
    strays = {path for path in files_below(clean_workspace / "custom/sum_diff") if not path.startswith("_debug")}
    assert strays <= bad_table.FILES_OF_AN_OPERATOR


def test_the_page_is_current() -> None:
    """`python -m tests.judge.bad_table` writes it."""
    assert (REPOSITORY / bad_table.PAGE).read_text(encoding="utf-8") == bad_table.render(ROWS)


def test_every_row_differs_from_the_control() -> None:
    """An edit that no longer finds its place would test the correct kernel."""
    good = (REPOSITORY / "tests/fixtures/ops/sum_diff/sum_diff_impl.py").read_text()
    same = [row.what for row in ROWS if row.source_from(good) == good and not row.layout]
    assert same == ["correct kernel (the control)"]
    assert len({row.id for row in ROWS}) == len(ROWS)
