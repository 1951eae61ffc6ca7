"""Only operators are guarded: a folder that is called `custom` in somebody's project makes none."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.hooks.conftest import BAD_IMPL, GOOD_IMPL, STATE, Harness, make_operator

CODER, PLANNER = "pypto-op:pypto-op-coder", "pypto-op:pypto-op-planner"


@pytest.fixture
def web(tmp_path: Path) -> Iterator[Harness]:
    """A web project that keeps its themes in custom/theme/."""
    made = Harness(tmp_path / "web", tmp_path / "cache")
    files = {
        "package.json": "{}",
        "custom/theme/style.css": "a {}",
        "custom/theme/README.md": "# Theme\n",
        "custom/theme/DESIGN.md": "# Colours\n",
        "custom/theme/theme_impl.py": "import flask\n",
        "custom/theme/test_theme.py": "import flask\n",
        "lib/cache/cache_impl.py": "import redis\n",
        "lib/cache/test_cache.py": "import redis\n",
        "docs/SPEC.md": "# Spec\n",
    }
    for name, text in files.items():
        path = made.workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    made.cache.mkdir()
    yield made
    made.stop_servers()


@pytest.mark.slow
def test_nothing_is_refused_in_a_project_without_operators(web: Harness, tmp_path: Path) -> None:
    for name in (
        "custom/theme/style.css",
        "custom/other/new.css",
        "lib/cache/cache_impl.py",
        "docs/SPEC.md",
        str(tmp_path / "x"),
    ):
        assert web.before("Write", file_path=name).out == "", name
        assert web.after("Write", file_path=name).out == "", name
    commands = (
        "cp package.json /tmp/elsewhere/", "echo 'a {}' > custom/theme/style.css", "rm -rf custom/theme", "mv custom/theme old",
        "sed -i s/a/b/ custom/theme/*.css", "t=$(mktemp); cp custom/theme/style.css $t", "git checkout .", "ruff format .",
        "python3 -c \"open('custom/theme/style.css', 'w')\"", "touch lib/cache/cache_impl.py", "cp a.md docs/SPEC.md",
        "cd custom/theme && echo > style.css", "ln -s custom/theme/style.css x.css",
    )  # fmt: skip
    for command in commands:
        assert web.before("Bash", command=command).out == "", command
        assert web.after("Bash", command=command).out == "", command
    assert web.before("NotebookEdit", notebook_path="custom/theme/x.ipynb").out == ""
    assert web.before("mcp__fs__write_file", path="custom/theme/style.css", content="x").out == ""
    assert web.event("Stop").out == ""


@pytest.mark.parametrize("mark", ["SPEC.md", ".orchestrator_state.json", ".orchestrator_journal.jsonl", "soft_golden.py"])
def test_a_folder_becomes_an_operator_by_what_lies_in_it(web: Harness, mark: str) -> None:
    command = "echo x > custom/soft/soft_impl.py"
    (web.workspace / "custom/soft").mkdir()
    assert web.before("Bash", command=command).out == ""
    (web.workspace / "custom/soft" / mark).write_text("{}")
    assert "past the linter" in web.before("Bash", command=command).denied
    assert "past the linter" in web.before("Bash", command="rm -rf custom").denied
    assert "outside the workspace" in web.before("Write", file_path="/tmp/x").denied
    assert web.before("Bash", command="echo x > custom/theme/style.css").out == "", "its neighbour stays what it is"


def test_the_first_file_of_an_operator_is_guarded_before_it_is_there(web: Harness) -> None:
    for name in ("SPEC.md", ".orchestrator_state.json", "fresh_golden.py"):
        assert web.before("Bash", command=f"echo x > custom/fresh/{name}").denied, name
    assert web.before("Write", file_path="custom/fresh/.orchestrator_state.json").denied


def test_what_a_team_agent_makes_is_an_operator_from_then_on_for_everybody(web: Harness) -> None:
    plain = "echo x > custom/fresh/API_REPORT.md"
    assert web.before("Bash", command=plain).out == ""
    assert "past the linter" in web.before("Bash", PLANNER, command=plain).denied
    assert "does not own it" in web.before("Write", CODER, file_path="custom/fresh/API_REPORT.md").denied
    assert web.before("Write", PLANNER, file_path="custom/fresh/API_REPORT.md").out == ""
    (web.workspace / "custom/fresh").mkdir()
    (web.workspace / "custom/fresh/API_REPORT.md").write_text("x")
    assert "past the linter" in web.before("Bash", command=plain).denied
    web.stop_servers()
    assert "past the linter" in web.before("Bash", command=plain).denied, "a new server knows it too"


def test_an_operator_that_lost_its_marks_stays_one(web: Harness) -> None:
    op = web.workspace / "custom/soft"
    make_operator(op, STATE)
    assert web.before("Bash", command="rm custom/soft/SPEC.md").denied
    for path in op.rglob("*"):
        if path.is_file():
            path.unlink()
    assert "past the linter" in web.before("Bash", command="echo x > custom/soft/soft_impl.py").denied


def test_a_kernel_shows_by_its_text(web: Harness) -> None:
    assert "OL01" in web.write("custom/fresh/fresh_impl.py", BAD_IMPL.replace("soft", "fresh")).blocked
    assert web.write("custom/theme/theme_impl.py", "import flask\n\n\ndef f(:\n").out == ""
    (web.workspace / "ops/soft").mkdir(parents=True)
    (web.workspace / "ops/soft/soft_impl.py").write_text(GOOD_IMPL)
    (web.workspace / "ops/soft/test_soft.py").write_text("import torch\n")
    assert "past the linter" in web.before("Bash", command="rm ops/soft/soft_impl.py").denied


def test_a_notebook_among_an_operators_files_is_refused(harness: Harness) -> None:
    for fields in ({"notebook_path": "custom/soft/x.ipynb"}, {"notebook_path": "custom/soft/x.ipynb", "file_path": "src/a.py"}):
        assert "no notebooks" in harness.before("NotebookEdit", **fields).denied, json.dumps(fields)
    assert harness.before("NotebookEdit", notebook_path="custom/soft/_debug/x.ipynb").out == ""
    assert harness.before("NotebookEdit", notebook_path="src/x.ipynb").out == ""
