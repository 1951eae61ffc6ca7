"""What travels to a worker: whatever file was named, by whatever path, from whatever folder."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.judge.judging import CASES, place

from pypto_op.backends.base import Limits
from pypto_op.judge.cases.request import Request
from pypto_op.judge.running.away import LanesWork
from pypto_op.judge.verify import plan_of
from pypto_op.pool.parcel import Parcel
from pypto_op.vocabulary import Mode

ASKED = Request((Mode.SIM,), None, None, None, None, None, 1, Limits(), 5, None, False)


@pytest.mark.parametrize("place_of", ["_debug/tuning/before.py", "other.py", "../other.py", "../../elsewhere/other.py"])
def test_a_kernel_and_a_suite_that_were_named_are_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place_of: str) -> None:
    """Named from the current folder, as a person does; the worker has another one."""
    ws = place("sum_diff", tmp_path, cases=CASES)
    other = ws.root / place_of
    other.parent.mkdir(parents=True, exist_ok=True)
    other.write_text(ws.impl.read_text(encoding="utf-8") + "# another\n", encoding="utf-8")
    suite = other.with_name("other_suite.json")
    suite.write_bytes(ws.suite.read_bytes())
    monkeypatch.chdir(ws.root.parent)
    relative = Path(ws.root.name) / place_of
    request = replace(ASKED, impl=relative, suite=relative.with_name("other_suite.json"))
    work = LanesWork.of(plan_of, ws, request, CASES, 5)
    monkeypatch.chdir(tmp_path)
    with work.open() as bench:
        subject = bench._plan.subject
        assert subject.impl.read_bytes() == other.read_bytes() and not subject.impl.is_relative_to(tmp_path)
        assert bench._copy.translated(str(subject.impl)) == str(other.resolve())


def test_what_was_not_named_stays(tmp_path: Path) -> None:
    ws = place("sum_diff", tmp_path, cases=CASES)
    (ws.debug_dir / "x").mkdir(parents=True)
    (ws.debug_dir / "x" / "large.bin").write_bytes(b"0")
    parcel = Parcel.of(ws.root, [ws.impl])
    assert not parcel.others and not any("_debug" in name for name in parcel.files)
