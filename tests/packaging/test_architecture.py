"""The floors of docs/architecture.md: contracts on imports, no circle, and a page that names the same floors."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import grimp
import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    tomllib = pytest.importorskip("tomllib")

ROOT = Path(__file__).resolve().parents[2]
LAYERS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"][0]["layers"]
FLOORS = [[name.removeprefix("pypto_op.") for name in re.split(r" [|:] ", layer)] for layer in LAYERS]

INTERPRETERS = ("pypto_op_lint.facts", "pypto_op_lint.guard")
"""Rooms whose files may call in a circle: an interpreter's expressions, calls and statements hold one another."""


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    return grimp.build_graph("pypto_op", "pypto_op_lint", "benchmarks", cache_dir=None)


def circles(graph: grimp.ImportGraph) -> list[list[str]]:
    """Return every set of modules each of which imports all the others, directly or through them."""
    found, left = [], set(graph.modules)
    while left:
        module = left.pop()
        circle = {module} | (graph.find_upstream_modules(module) & graph.find_downstream_modules(module))
        left -= circle
        if len(circle) > 1:
            found.append(sorted(circle))
    return found


def test_the_contracts_are_kept() -> None:
    command = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([command, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_no_circle_but_within_an_interpreter(graph: grimp.ImportGraph) -> None:
    rooms = [
        {next((room for room in INTERPRETERS if module.startswith(room)), "") for module in circle} for circle in circles(graph)
    ]
    assert all(len(room) == 1 and "" not in room for room in rooms), circles(graph)


def test_a_circle_is_seen() -> None:
    made = grimp.ImportGraph()
    for module in ("a", "b", "c"):
        made.add_module(module)
    made.add_import(importer="a", imported="b")
    made.add_import(importer="b", imported="c")
    assert circles(made) == []
    made.add_import(importer="c", imported="a")
    assert circles(made) == [["a", "b", "c"]]


def test_every_room_has_a_floor(graph: grimp.ImportGraph) -> None:
    rooms = {name.removeprefix("pypto_op.") for name in graph.find_children("pypto_op")} | {"pypto_op_lint"}
    assert rooms == {name for floor in FLOORS for name in floor}


def test_the_page_shows_the_floors() -> None:
    page = (ROOT / "docs/architecture.md").read_text()
    rows = re.findall(r"^\| \d+ \| (.*?) \| .*\|$", page.partition("## Floors")[2].partition("\n## ")[0], re.M)
    assert [re.findall(r"`([\w./]+?)(?:\.py|/)?`", row) for row in rows] == FLOORS
