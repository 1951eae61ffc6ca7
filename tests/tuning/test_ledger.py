"""The ledger believes its own lines only: a search's figures and verdicts come from runs, not from a file."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pypto_op.errors import InfraError
from pypto_op.tuning.ledger import Candidate, Fate, Ledger, alone

pytestmark = pytest.mark.usefixtures("private_key")


def candidate(number: int, ratio: float | None = 0.5) -> Candidate:
    return Candidate(number, "model", {"rows T": "8"}, f"digest {number}", "+T = 8", Fate.SURVIVED, "", {"P0_0": 2.0}, ratio, 1.5)


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """A ledger of two candidates."""
    folder = tmp_path / "kernel"
    ledger = Ledger(folder)
    ledger.note(candidate(1))
    ledger.note(candidate(2, None))
    return folder


def numbers(folder: Path) -> list[int]:
    return [one.number for one in Ledger(folder).all()]


def test_what_was_kept_comes_back_as_it_was(kept: Path) -> None:
    assert Ledger(kept).all() == [candidate(1), candidate(2, None)]


@pytest.mark.parametrize(
    ("field", "value"), [("ratio", 0.01), ("times", {"P0_0": 0.1}), ("fate", "accepted"), ("number", "1"), ("ratio", "fast")]
)
def test_a_line_that_was_changed_is_none(kept: Path, field: str, value: object) -> None:
    file = kept / "candidates.jsonl"
    first, second = file.read_text(encoding="utf-8").splitlines()
    file.write_text(json.dumps({**json.loads(first), field: value}, sort_keys=True) + "\n" + second + "\n", encoding="utf-8")
    assert numbers(kept) == [2]


@pytest.mark.parametrize(
    "line", [b"\xff\xfe", b"[" * 100_000, b"[1]", b'{"seal": "\\ud800"}', b'{"ratio": NaN}', b"\0", b'{"number']
)
def test_a_broken_line_costs_its_candidate_only(kept: Path, line: bytes) -> None:
    file = kept / "candidates.jsonl"
    file.write_bytes(line + b"\n" + file.read_bytes() + line)
    assert numbers(kept) == [1, 2]
    Ledger(kept).note(candidate(3))
    assert numbers(kept) == [1, 2, 3], "what follows a line that was cut short is a line of its own"


def test_what_becomes_of_a_candidate_later_takes_the_place_of_its_line(kept: Path) -> None:
    ledger = Ledger(kept)
    judged = ledger.all()[0]
    judged.fate, judged.reason = Fate.REFUSED, "the suite refuses it"
    ledger.note(judged)
    lines = (kept / "candidates.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["number"] for line in lines] == [1, 2]
    assert Ledger(kept).all()[0].fate is Fate.REFUSED, "its seal holds"


def test_lines_of_another_search_are_none(kept: Path, tmp_path: Path) -> None:
    """Of another kernel, suite, policy or place: the name of the folder is the hash of them all."""
    shutil.copytree(kept, tmp_path / "other")
    assert numbers(tmp_path / "other") == []


@pytest.mark.slow
def test_a_second_search_is_told_of_the_first(tmp_path: Path) -> None:
    """The lock belongs to another process, which holds it as long as its input is open."""
    words = "import sys; from pathlib import Path; from pypto_op.tuning.ledger import alone\n"
    words += "with alone(Path(sys.argv[1])): print('held', flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", words, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as first:
        assert first.stdout is not None and first.stdout.readline() == "held\n"
        with pytest.raises(InfraError, match="another search of this operator is running"), alone(tmp_path):
            pass
        first.communicate()
    with alone(tmp_path):
        pass
