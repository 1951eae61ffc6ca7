"""What one sitting finds another takes over, as long as it is about the same bytes and the same question."""

from __future__ import annotations

from pathlib import Path

import pytest

from pypto_op.backends.build_cache import CACHE_ENV
from pypto_op.mutation.hunt import Fate, Result
from pypto_op.mutation.likeness import Likeness
from pypto_op.mutation.mutants import Mutant
from pypto_op.mutation.sittings import Sittings, Spent, digest

HASHES, ASKED = {"impl": "1", "suite": "2"}, {"seed": 7}
ONE, TWO = (Mutant(f"m{n}", "constant", 3, "+x", f"x = {n}\n") for n in (1, 2))
KILLED = (Result(Fate.KILLED, "mismatch", "words", "tile", 42, 2, killers=("tile",), asked=3), None, 1.5)
ALIKE = (Result(Fate.EQUIVALENT, trials=4), Likeness(60), 9.0)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(CACHE_ENV, str(tmp_path))
    return tmp_path


def test_what_was_found_is_known_in_the_next_sitting_with_what_it_cost() -> None:
    sitting = Sittings(HASHES, ASKED)
    sitting.keep(ONE, KILLED)
    sitting.keep(TWO, ALIKE)
    sitting.end(20.0, 12.5)
    sitting.end(1.0, 0.5)
    later = Sittings(HASHES, ASKED)
    assert later.fates() == {digest(ONE): KILLED, digest(TWO): ALIKE}
    assert later.spent() == Spent(2, 21.0, 13.0)


@pytest.mark.parametrize("other", [({**HASHES, "suite": "3"}, ASKED), (HASHES, {"seed": 8})])
def test_another_suite_or_question_knows_nothing(other: tuple[dict, dict]) -> None:
    Sittings(HASHES, ASKED).keep(ONE, KILLED)
    assert Sittings(*other).fates() == {}


def test_a_damaged_line_costs_its_own_mutant_only(cache: Path) -> None:
    sitting = Sittings(HASHES, ASKED)
    sitting.keep(ONE, KILLED)
    (file,) = (cache / "mutants").iterdir()
    file.write_text('{"mutant": "x"}\n[1]\n{"cut of' + "\n" + file.read_text())
    sitting.keep(TWO, ALIKE)
    assert set(Sittings(HASHES, ASKED).fates()) == {digest(ONE), digest(TWO)}
