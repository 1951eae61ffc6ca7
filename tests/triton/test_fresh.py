"""Implementations that were written before anybody looked how they would be judged (fresh/).

An ordinary run judges one of those that shown.yaml names for each reason to refuse a file, a third of those that have no
reason of their own, a few cheats of all tables, and of half of the tables an honest file. All are drawn, so each change of
the Triton path tries others. PYPTO_OP_ALL_CASES=1 judges them all.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests import quickly
from tests.triton import lab

from pypto_op.triton.static.validate import validate_file

pytestmark = pytest.mark.slow

FOUND = {table: [*lab.fresh(table)] for table in lab.FRESH}
CHEATS = {name: (task, impl) for rows in FOUND.values() for kind, name, task, impl in rows if kind == "cheats"}
HONEST = {name: (task, impl) for rows in FOUND.values() for kind, name, task, impl in rows if kind == "honest"}
SHOWN: dict[str, list[str]] = quickly.read_table(lab.HERE / "shown.yaml")
"""What refuses a cheat, and up to two that it refuses; then those without a reason of their own."""
STATIC: set[str] = set(quickly.read_table(lab.HERE / "seen_statically.yaml"))
"""Cheats that the static check refuses."""


def _honest() -> Iterator[str]:
    for table in quickly.drawn(FOUND, (len(FOUND) + 1) // 2):
        yield from quickly.drawn((name for kind, name, *_ in FOUND[table] if kind == "honest"), 1)


def _cheats() -> Iterator[str]:
    for reason, names in SHOWN.items():
        yield from quickly.drawn(names, (len(names) + 2) // 3 if reason == "others" else 1)
    yield from quickly.drawn(CHEATS, 8)


@pytest.mark.parametrize("name", sorted({*_cheats()}))
def test_a_fresh_cheat_is_refused(name: str, place: Path) -> None:
    # A program for each bit takes minutes: this one is refused by the clock, however long it is.
    result = lab.verify(lab.folder(place, *CHEATS[name]), case_timeout=2.0 if name == "grid_of_bits" else 60.0)
    assert result["status"] == "FAIL", result


@pytest.mark.parametrize("name", sorted(_honest()))
def test_a_fresh_honest_file_passes(name: str, place: Path) -> None:
    result = lab.verify(lab.folder(place, *HONEST[name]))
    assert result["status"] == "PASS", result["failures"] or result["error"]


def test_the_static_check_refuses_what_it_is_known_to_refuse(place: Path) -> None:
    tried = quickly.drawn(STATIC, len(STATIC) // 3)
    assert [name for name in tried if validate_file(lab.folder(place, *CHEATS[name]).impl)["valid"]] == []


def test_the_page_counts_the_tables() -> None:
    page = (lab.HERE.parents[1] / "docs" / "triton-strength.md").read_text(encoding="utf-8")
    told = re.findall(r"^\| `(\w+)\.yaml` \|[^|]*\| (\d+) \| (\d+) \|$", page, re.M)
    kinds = {table: Counter(kind for kind, *_ in rows) for table, rows in FOUND.items()}
    assert told == [(table, str(count["cheats"]), str(count["honest"])) for table, count in kinds.items()]


_MADE_ANEW = {"arange", "zeros", "ones", "full", "eye", "linspace", "empty", "tensor", "rand", "randn"}


def _on_the_host(task: str) -> list[str]:
    """Return the tensors that the reference of a task makes on no device of its inputs."""
    forward = (node for node in ast.walk(ast.parse(task)) if isinstance(node, ast.FunctionDef) and node.name == "forward")
    calls = [node for function in forward for node in ast.walk(function) if isinstance(node, ast.Call)]
    made = [node for node in calls if isinstance(node.func, ast.Attribute) and ast.unparse(node.func.value) == "torch"]
    anew = [node for node in made if isinstance(node.func, ast.Attribute) and node.func.attr in _MADE_ANEW]
    return [ast.unparse(node) for node in anew if "device" not in {keyword.arg for keyword in node.keywords}]


def test_tasks_make_their_tensors_where_their_inputs_lie() -> None:
    """On a GPU a reference that mixes devices fails, and its cheat is refused for that."""
    found = {name: _on_the_host(task) for name, (task, _) in {**CHEATS, **HONEST}.items()}
    assert {name: calls for name, calls in found.items() if calls} == {}
