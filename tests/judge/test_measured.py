"""Honest orders of a golden are measured once on given inputs; for another golden, input or policy, or a forged record, again."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests import quickly
from tests.calling import command
from tests.generators import few_cases

from pypto_op.backends.reference import ReferenceSession
from pypto_op.judge.answers import measured
from pypto_op.judge.cases.inputs import digest
from pypto_op.proof import records
from pypto_op.twins.reordering import OTHER_TIES
from pypto_op.workspace import OpWorkspace

from .judging import place, verify

quickly.skip_without("torch")

SUITE = [
    {"id": f"{level}_{n}", "level": level, "shape": {"N": n, "D": 32}, "precision": level == "L3", "atol": 1e-6, "rtol": 1e-5}
    for level in ("L1", "L2", "L3", "L4", "L5")
    for n in (3, 17)
]
Asked = list[tuple[str, str]]


@pytest.fixture
def ws(clean_workspace: Path) -> OpWorkspace:
    return place("sum_diff", clean_workspace, cases=SUITE)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[Asked]:
    """Every honest order that a golden is run in, with the inputs: what a natural error is measured by."""
    seen: Asked = []

    def watched(method: Callable[..., Any], ways_of: Callable[[Sequence[Any], dict[str, Any]], list[dict[str, Any]]]) -> Any:
        def watch(self: ReferenceSession, inputs: Sequence[Any], *more: Any, **how: Any) -> Any:
            for way in ways_of(more, how):
                if way.get("twin"):
                    seen.append((digest(inputs), str(way.get("twin"))))
            return method(self, inputs, *more, **how)

        return watch

    monkeypatch.setattr(ReferenceSession, "golden", watched(ReferenceSession.golden, lambda more, how: [how]))
    monkeypatch.setattr(ReferenceSession, "goldens", watched(ReferenceSession.goldens, lambda more, how: list(more[0])))
    yield seen


def self_test(ws: OpWorkspace, asked: Asked) -> set[tuple[str, str]]:
    """Run the self-test; return what it asked, each of it once."""
    asked.clear()
    done = verify(ws.root, "--self-test")
    rows = {row["name"]: row for row in json.loads(done.stdout)["checks"]}
    assert rows["honest_orders"]["status"] == rows["natural_error"]["status"] == "PASS", rows
    assert len(set(asked)) == len(asked) > 0, "nothing is run twice"
    return set(asked)


def record(ws: OpWorkspace) -> Path:
    (found,) = (ws.debug_dir / records.FOLDER).glob(f"{measured.KIND}-*.json")
    return found


def _golden(ws: OpWorkspace) -> None:
    ws.golden.write_text(ws.golden.read_text() + "\n# the same formula in other bytes\n")


def _policy(ws: OpWorkspace) -> None:
    text = ws.suite.read_text()
    ws.suite.write_text(text.replace('"rtol": 1e-05', '"rtol": 2e-05'))
    assert ws.suite.read_text() != text


def _forged(ws: OpWorkspace) -> None:
    kept = json.loads(record(ws).read_text())
    kept["result"]["figures"] = dict.fromkeys(kept["result"]["figures"], 0.0)
    record(ws).write_text(json.dumps(kept))


def _seed(ws: OpWorkspace) -> None:
    text = ws.suite.read_text()
    ws.suite.write_text(text.replace('"seed": 42', '"seed": 43'))
    assert ws.suite.read_text() != text


@pytest.mark.slow
def test_the_second_self_test_measures_its_fresh_draws_only_and_what_is_not_the_same_again(ws: OpWorkspace, asked: Asked) -> None:
    """One first self-test for all: each change is asked of the record that the step before it left."""
    first = self_test(ws, asked)
    text = record(ws).read_text()
    second = self_test(ws, asked)
    assert not first & second and len(second) < len(first)
    assert record(ws).read_text() == text, "a draw that nobody sees again is not kept"
    for change in (_forged, _golden, _policy):
        change(ws)
        again = self_test(ws, asked)
        assert len(again) == len(first) and first & again, f"{change.__name__}: the same inputs, asked of the golden again"
    _seed(ws)
    again = self_test(ws, asked)
    assert len(again) == len(first) and not first & again, "other inputs"


@pytest.mark.slow
def test_the_self_test_takes_what_the_harness_measured(ws: OpWorkspace, asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    few_cases.keep(monkeypatch)
    done = command("harness", "new", str(ws.root), "--force")
    assert done.code == 0, done.stderr
    harness = set(asked)
    again = self_test(ws, asked) & harness
    cases = json.loads(ws.suite.read_text())["cases"]
    assert not [case["id"] for case in cases if case.get("policy")], "none needs orders"
    assert len(harness) > 10 * len(again), "only a planted fault that looks like rounding is held to the orders' outputs again"
    asked.clear()
    assert command("harness", "new", str(ws.root), "--force").code == 0
    again = set(asked)
    assert again < harness and 4 * len(again) < 3 * len(harness), (
        "another harness for the same golden runs what planted faults need"
    )
    assert not [name for _, name in again if name == OTHER_TIES]
