"""Where no log speaks, `pypto-op diagnose` says what does: wrong numbers are triage's."""

from __future__ import annotations

import json
from pathlib import Path

from tests.calling import command

from pypto_op.workspace import OpWorkspace


def _operator(folder: Path, category: str) -> OpWorkspace:
    (folder / "custom" / "op" / "eval").mkdir(parents=True)
    ws = OpWorkspace.at(folder / "custom" / "op")
    ws.report.write_text(json.dumps({"first_failure": {"case_id": "L2_x", "failure_category": category}}))
    return ws


def test_wrong_numbers_are_sent_to_triage(tmp_path: Path) -> None:
    ws = _operator(tmp_path, "precision")
    for given in (ws.root, ws.report):
        answer = command("diagnose", given)
        assert answer.code == 3
        assert answer.stderr.count(f"`pypto-op triage {ws.root}`") == 1 and "case L2_x" in answer.stderr
    notes = command("diagnose", ws.root, "--json").report["notes"]
    assert len([note for note in notes if "pypto-op triage" in note]) == 1


def test_other_failures_and_plain_texts_are_not(tmp_path: Path) -> None:
    ws = _operator(tmp_path, "runtime")
    assert "triage" not in command("diagnose", ws.root).stderr
    assert "triage" not in command("diagnose", "nothing that anybody knows").stderr
