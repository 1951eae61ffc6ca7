"""A machine that runs out of memory is no fault of the kernel: once more, then an error of the machine, and never a PASS."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pypto_op.backends import memory, processes, session
from pypto_op.backends.conversation import Conversation

from .judging import CASES, place, verify
from .test_between_calls import edit

pytestmark = [pytest.mark.sim, pytest.mark.usefixtures("numeric")]


class OomKiller:
    """Stands for the kernel's: ends the worker that got a message of some kind, and counts it where /proc/vmstat would.

    Args:
        key: of the messages that it looks for; a candidate's have "buffer".
        times: how many of them.
        cases: only where the message is about one of these; all, where empty.
    """

    def __init__(self, key: str = "buffer", times: int = 1000, cases: tuple[str, ...] = ()) -> None:
        self.key, self.left, self.cases, self.killed = key, times, cases, 0

    def start(self, monkeypatch: pytest.MonkeyPatch) -> OomKiller:
        say = Conversation.say

        def heard(conversation: Conversation, message: dict[str, Any]) -> None:
            wanted = self.key in message and (not self.cases or message.get("case") in self.cases)
            if wanted and self.left:
                self.left, self.killed = self.left - 1, self.killed + 1
                worker = conversation._launched.worker()
                assert worker is not None
                processes.kill(worker)
            say(conversation, message)

        monkeypatch.setattr(Conversation, "say", heard)
        monkeypatch.setattr(processes, "kills_for_memory", lambda: self.killed)
        monkeypatch.setattr(memory, "PATIENCE", 0.0)
        return self


def test_a_case_that_the_machine_had_no_memory_for_is_run_once_more(
    clean_workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ws = place("sum_diff", clean_workspace, cases=CASES)
    killer = OomKiller(times=1).start(monkeypatch)
    report = verify(ws.root).report
    assert report["status"] == "PASS", report["first_failure"]
    assert killer.killed == 1


def test_again_is_an_error_of_the_machine_with_a_remedy(clean_workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ws = place("sum_diff", clean_workspace, cases=CASES)
    killer = OomKiller().start(monkeypatch)
    done = verify(ws.root)
    assert (done.code, done.report["status"], done.report["error"]["kind"]) == (3, "ERROR", "infra")
    said = done.report["error"]["message"]
    assert "the machine has too little memory" in said and "MiB are free" in said and "--jobs 1" in said
    assert done.report["first_failure"]["failure_category"] == "infra" and "candidate" not in said
    assert killer.killed == 2, "once more, not for ever"


def test_a_golden_that_the_machine_has_no_memory_for_is_not_called_wrong(
    clean_workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ws = place("sum_diff", clean_workspace, cases=CASES)
    OomKiller(key="function").start(monkeypatch)
    done = verify(ws.root)
    assert (done.code, done.report["status"], done.report["error"]["kind"]) == (3, "ERROR", "infra"), done.report["error"]


def test_a_wrong_kernel_gains_nothing(clean_workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ws = place("sum_diff", clean_workspace, cases=CASES)
    edit(ws.impl, "x_tile * 2.0", "x_tile * 3.0")
    OomKiller(times=1).start(monkeypatch)
    done = verify(ws.root)
    assert (done.code, done.report["status"]) == (1, "FAIL") and done.report["first_failure"]["reason"] == "mismatch"


def test_a_kernel_that_ends_itself_is_blamed_where_memory_did_not_run_out(
    clean_workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ws = place("sum_diff", clean_workspace, cases=CASES)
    OomKiller().start(monkeypatch)
    monkeypatch.setattr(processes, "kills_for_memory", lambda: 7)
    done = verify(ws.root)
    assert (done.code, done.report["status"]) == (1, "FAIL") and done.report["first_failure"]["reason"] == "crashed"


def test_a_kernel_that_was_near_its_own_limit_is_blamed(clean_workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ws = place("sum_diff", clean_workspace, cases=CASES)
    OomKiller().start(monkeypatch)
    monkeypatch.setattr(session, "NEAR_LIMIT", 0.0)
    done = verify(ws.root)
    assert (done.code, done.report["status"]) == (1, "FAIL") and done.report["first_failure"]["reason"] == "out_of_memory"


def test_a_drawn_shape_that_the_machine_cannot_hold_is_judged_smaller_and_not_left_out(
    clean_workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ws = place("sum_diff", clean_workspace, cases=CASES)
    OomKiller(times=2, cases=("fresh_N",)).start(monkeypatch)
    report = verify(ws.root).report
    assert report["status"] == "PASS" and report["fresh_shapes"]["cases"] == ["fresh_N"]
    assert list(report["fresh_shapes"]["left_out"].values()) == ["the simulator needs more memory than the machine has left"]
    edit(ws.impl, "(count + ROWS - 1) // ROWS", "pypto.min((count + ROWS - 1) // ROWS, 2)")
    OomKiller(times=2, cases=("fresh_N",)).start(monkeypatch)
    assert verify(ws.root).report["status"] == "FAIL", "right up to a size only"
    OomKiller(cases=("fresh_N",)).start(monkeypatch)
    done = verify(ws.root)
    assert (done.code, done.report["status"], done.report["error"]["kind"]) == (3, "ERROR", "infra")


def test_a_case_that_was_refused_stands_where_memory_runs_out_in_another(
    clean_workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ws = place("sum_diff", clean_workspace, cases=CASES)
    edit(ws.impl, "x_tile * 2.0", "x_tile * 3.0")
    OomKiller(cases=("ragged",)).start(monkeypatch)
    done = verify(ws.root)
    assert (done.code, done.report["status"]) == (1, "FAIL"), done.report["error"]
    first = done.report["first_failure"]
    assert first["reason"] == "mismatch" and first["case_id"] == "tile"
    [lost] = [check for check in done.report["checks"] if check["id"] == "ragged"]
    assert "too little memory" in str(lost["modes"]), "and what was not judged is told"
