"""What the account remembers of the draws that an implementation failed on (`proof.draws`); no kernel runs here."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pypto_op.proof.draws import Draws, failed_cases, judged_on
from pypto_op.workspace import OpWorkspace

NO_FILES: dict[str, dict[str, str]] = {"candidate": {}, "golden": {}, "inputs": {}}
HASHES = {name: name for name in ("golden", "suite", "inputs", "interfaces", "spec", "policy")}


@pytest.fixture
def ws(tmp_path: Path) -> OpWorkspace:
    (tmp_path / "custom" / "demo").mkdir(parents=True)
    ws = OpWorkspace.at(tmp_path / "custom" / "demo")
    ws.impl.write_text('"""An implementation."""\n\n\ndef f(x):\n    return x\n')
    return ws


def known(ws: OpWorkspace, **other: str) -> Draws:
    return Draws(ws, 1, HASHES | other, ws.impl)


def report(status: str = "PASS", *, helper: str = "", **cases: str) -> dict[str, Any]:
    closure = NO_FILES | ({"candidate": {"helper.py": helper}} if helper else {})
    checks = [{"id": case, "per_mode_status": {"sim": said}} for case, said in (cases or {"tile": status}).items()]
    about = {"op_name": "demo", "up_to_module": 1, "hashes": HASHES, "impl_file": "demo_impl.py"}
    return {"status": status, "checks": checks, "closure": closure, **about}


def judge(answers: dict[int, dict[str, Any]], seen: list[int]) -> Callable[[int], dict[str, Any]]:
    def answer(seed: int) -> dict[str, Any]:
        seen.append(seed)
        return answers.get(seed, report())

    return answer


def seeds(ws: OpWorkspace, fresh: int, answers: dict[int, dict[str, Any]], asked: int | None = None, **other: str) -> list[int]:
    """Return on which seeds a verdict judges."""
    seen: list[int] = []
    judged_on(known(ws, **other), asked, fresh, judge(answers, seen))
    return seen


def test_the_failed_draw_comes_before_the_fresh_one(ws: OpWorkspace) -> None:
    wrong = {1: report("FAIL")}
    assert seeds(ws, 1, wrong) == [1]
    assert failed_cases(report(), ws) == ["tile"]
    assert seeds(ws, 2, wrong) == [1]
    assert seeds(ws, 3, {}) == [1, 2], "the fresh seed of the verdict before was never judged, so it is still to come"
    assert failed_cases(report(), ws) == [], "it was the machine"
    assert seeds(ws, 4, {}) == [4]


def test_a_part_of_the_suite_does_not_stand_for_the_case_that_failed(ws: OpWorkspace) -> None:
    seeds(ws, 1, {1: report("FAIL", tile="PASS", ragged="FAIL")})
    seeds(ws, 2, {1: report("PARTIAL", tile="PASS")})
    assert failed_cases(report(), ws) == ["ragged"]


def test_other_files_or_another_tolerance_know_nothing_of_it(ws: OpWorkspace) -> None:
    wrong = {1: report("FAIL")}
    seeds(ws, 1, wrong)
    for name in HASHES:
        assert seeds(ws, 7, wrong, **{name: "other"}) == [7]
    ws.impl.write_text('"""Other words."""\n\n# a comment\ndef f(x):\n    """More of them."""\n    return x\n')
    assert known(ws).failed
    ws.impl.write_text("def f(x):\n    return x + 1\n")
    assert not known(ws).failed


def test_helpers_belong_to_it_and_what_failed_with_others_is_not_forgotten(ws: OpWorkspace) -> None:
    from pypto_op.hashing import sha256_file

    helper = ws.root / "helper.py"
    helper.write_text("A = 1\n")
    seeds(ws, 1, {1: report("FAIL", helper=sha256_file(helper))})
    helper.write_text("A = 2\n")
    assert seeds(ws, 2, {}) == [2]
    helper.write_text("A = 1\n")
    assert seeds(ws, 3, {1: report("FAIL", helper=sha256_file(helper))}) == [1]


def test_what_ends_without_a_result_is_not_kept_and_a_named_seed_is(ws: OpWorkspace) -> None:
    seeds(ws, 1, {1: report("ERROR")})
    assert not known(ws).failed
    assert seeds(ws, 2, {9: report("FAIL")}, asked=9) == [9]
    assert seeds(ws, 3, {9: report("FAIL")}) == [9]


def test_a_verdict_that_never_ended_keeps_its_seed(ws: OpWorkspace) -> None:
    def broken_off(seed: int) -> dict[str, Any]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        judged_on(known(ws), None, 1, broken_off)
    assert seeds(ws, 2, {}) == [1]
    assert seeds(ws, 3, {}) == [3]


def test_a_broken_file_of_it_is_no_fault(ws: OpWorkspace) -> None:
    from pypto_op.proof.draws import folder

    seeds(ws, 1, {1: report("FAIL")})
    (file,) = folder().glob("*.json")
    file.write_text("[")
    assert seeds(ws, 2, {}) == [2]
