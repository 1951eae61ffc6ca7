"""Whose file is it? A generator writes its own again, and never over somebody's work."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pypto_op.documents.stamps import is_untouched, stamped_python, stamped_suite
from pypto_op.errors import ContractError
from pypto_op.generators.writing.generated import Fate, write

SUITE = {"schema_version": 1, "op": "relu", "total_modules": 1, "cases": [{"id": "a", "level": "L1", "shape": {"N": 1}}]}
TEXTS = [stamped_python("x = 1\n"), stamped_suite(SUITE)]


@pytest.mark.parametrize("text", TEXTS, ids=["python", "suite"])
def test_a_stamped_text_is_untouched_until_a_byte_changes(text: str) -> None:
    assert is_untouched(text)
    for place in range(0, len(text), 7):
        changed = text[:place] + ("x" if text[place] != "x" else "y") + text[place + 1 :]
        assert not is_untouched(changed), changed[place - 5 : place + 5]
    assert not is_untouched(text + "z = 1\n")


def test_a_suite_may_be_laid_out_anew_and_is_still_ours() -> None:
    assert is_untouched(json.dumps(json.loads(stamped_suite(SUITE)), indent=4))


@given(st.text(max_size=200))
def test_no_text_without_a_stamp_is_ours(text: str) -> None:
    assert not is_untouched(text)


@given(st.text(alphabet=st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), max_size=200))
def test_every_stamped_text_is_ours(text: str) -> None:
    assert is_untouched(stamped_python(text))


def test_what_becomes_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "a.py"
    first, second = stamped_python("x = 1\n"), stamped_python("x = 2\n")
    assert [o.fate for o in write([(path, first)])] == [Fate.WRITTEN]
    assert [o.fate for o in write([(path, first)])] == [Fate.UNCHANGED]
    assert [o.fate for o in write([(path, second)])] == [Fate.REPLACED]
    path.write_text(second + "y = 3\n")
    assert [o.fate for o in write([(path, first)])] == [Fate.KEPT]
    assert path.read_text() == second + "y = 3\n"
    assert [o.fate for o in write([(path, first)], force=True)] == [Fate.REPLACED]
    assert path.read_text() == first


def test_a_link_or_a_folder_in_the_way_is_refused(tmp_path: Path) -> None:
    target = tmp_path / "elsewhere.py"
    target.write_text("mine = 1\n")
    link = tmp_path / "link.py"
    link.symlink_to(target)
    for path in (link, tmp_path):
        with pytest.raises(ContractError, match="no regular file"):
            write([(path, "x = 1\n")], force=True)
    assert target.read_text() == "mine = 1\n"
