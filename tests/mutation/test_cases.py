"""What `pypto-op mutate` tells of each case, what it says when nothing was killed, and what it says meanwhile."""

from __future__ import annotations

import io
import time

import pytest
from rich.console import Console

from pypto_op import speaking
from pypto_op.backends.build_cache import CACHE_ENV
from pypto_op.mutation import cases, display
from pypto_op.mutation.hunt import Fate, Result
from pypto_op.workspace import OpWorkspace

SUITE = [{"id": "tile", "power": 3.5}, {"id": "ragged"}, {"id": "prime", "power": 1.0}]


def report(**fates: int) -> dict:
    counts = {str(fate): fates.get(str(fate), 0) for fate in Fate}
    mutants = [{"status": name} for name, count in counts.items() for _ in range(count)]
    return {"op_name": "op", "score": None, "seconds": 4.0, "limit": None, "made": 9, "mutants": mutants, **counts}


def test_a_row_per_case_says_power_first_kills_and_all_kills():
    results = [
        Result(Fate.KILLED, case="ragged", killers=("tile", "ragged"), asked=3),
        Result(Fate.KILLED, case="tile", killers=("tile",), asked=3),
        Result(Fate.SURVIVED),
    ]
    rows = {row.pop("id"): row for row in cases.table(SUITE, results)}
    assert rows == {
        "tile": {"power": 3.5, "first": 1, "kills": 2},
        "ragged": {"power": None, "first": 1, "kills": 1},
        "prime": {"power": 1.0, "first": 0, "kills": 0},
    }


def test_without_the_question_no_number_of_kills_is_claimed():
    rows = cases.table(SUITE, [Result(Fate.KILLED, case="tile")])
    assert [row["kills"] for row in rows] == [None, None, None]
    assert [row["first"] for row in rows] == [1, 0, 0]


@pytest.mark.parametrize(
    ("fates", "said", "unsaid"),
    [
        ({"equivalent": 1}, "1 of 1 mutants that ran gave the kernel's own bits", "no mutant ran"),
        ({"equivalent": 2, "invalid": 1}, "(1 more cannot run)", "time was over"),
        ({"invalid": 3}, "3 of 3 mutants are no kernels", "own bits"),
    ],
)
def test_the_last_sentence_is_true_when_nothing_was_killed(fates, said, unsaid):
    sentence = display.sentence(report(**fates))
    assert said in sentence
    assert unsaid not in sentence


def test_a_log_gets_a_line_before_the_first_mutant_and_between_mutants(monkeypatch, capsys):
    monkeypatch.setattr(speaking, "FIRST_SECONDS", 0.05)
    with speaking.aloud("mutate"):
        display.Progress(Console(file=io.StringIO())).note("the unchanged kernel runs trial 1 of 2")
        time.sleep(0.5)
    told = capsys.readouterr()
    assert "the unchanged kernel runs trial 1 of 2" in told.err
    assert told.out == ""


def test_what_was_learned_orders_the_next_campaign_and_damage_is_no_error(tmp_path, monkeypatch):
    monkeypatch.setenv(CACHE_ENV, str(tmp_path / "cache"))
    (tmp_path / "op").mkdir()
    ws = OpWorkspace(tmp_path / "op", "op")
    assert cases.earlier(ws) == {}
    cases.keep(ws, {"tile": (3, 4)})
    assert cases.earlier(ws) == {"tile": (3, 4)}
    (kept,) = (tmp_path / "cache").rglob("*.json")
    for damaged in ("", "[1]", '{"tile": [5, 1]}', '{"tile": "x"}', '{"tile": null}'):
        kept.write_text(damaged)
        assert cases.earlier(ws) == {}
