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

INTERPRETERS = ("pypto_op_lint.facts", "pypto_op_lint.guard", "pypto_op.triton.static")
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


NAMES_WHAT_IS_ABOVE = {
    "pypto_op.cli": "the table of commands",
    "pypto_op.judge.resident": "loads before a fork what the forked command will import",
    "pypto_op.modes": "the table of back ends",
    "pypto_op.resident": "starts the resident judge, a process of its own",
}
"""Modules that may name a module of a floor above their own in a string."""


def test_no_string_names_a_module_of_a_floor_above(graph: grimp.ImportGraph) -> None:
    """import-linter sees statements only; `importlib.import_module` takes a string."""
    floor = {name: height for height, rooms in enumerate(reversed(FLOORS)) for name in rooms}
    upwards = set()
    for module in graph.modules:
        file = ROOT / "scripts" / f"{module.replace('.', '/')}.py"
        if not module.startswith("pypto_op.") or not file.is_file():
            continue
        named = {text.partition(":")[0] for text in re.findall(r'"(pypto_op(?:\.\w+)+(?::\w+)?)"', file.read_text())}
        if any(floor[name.split(".")[1]] > floor[module.split(".")[1]] for name in named & graph.modules):
            upwards.add(module)
    assert upwards == set(NAMES_WHAT_IS_ABOVE)


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
