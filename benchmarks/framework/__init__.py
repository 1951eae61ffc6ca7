"""The framework's own scripts and tests in `sim`: one row each, from a checkout of the public repository.

`python -m benchmarks framework --source CHECKOUT` runs what the checkout has under examples/, models/ and python/tests/st,
keeps the rows in benchmarks/results/framework.json, and writes docs/framework-scripts.md. `--quick` runs the examples alone
and writes nothing. Rows of an unchanged file are kept; `python -m benchmarks.framework --source CHECKOUT NAME...` runs some
again.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from benchmarks import keeping, process
from benchmarks.framework import page, running
from benchmarks.table import Row, Table

RESULTS = Path(__file__).parents[1] / "results" / "framework.json"


def run(quick: bool, source: Path | None = None) -> list[Table]:
    """Run what has no row yet, or whose file changed; see the module's text."""
    if source is None:
        click.echo("framework: left out, since it needs --source CHECKOUT of the framework's repository", err=True)
        return []
    rows = {} if quick else load()
    for name in names(source, quick):
        digest = process.digest_of(source / name)
        if rows.get(name, {}).get("digest") != digest:
            measure(source, [name], rows, keep=not quick)
    if not quick:
        page.write(rows)
    return [table(rows)]


def names(source: Path, quick: bool = False) -> list[str]:
    """Return the files of a checkout that are run: scripts first, then files of tests."""
    tops = ("examples",) if quick else ("examples", "models")
    scripts = [path for top in tops for path in sorted((source / top).rglob("*.py")) if _is_script(path)]
    tests = [] if quick else sorted((source / running.TESTS).rglob("test_*.py"))
    return [path.relative_to(source).as_posix() for path in [*scripts, *tests]]


def measure(source: Path, chosen: Iterable[str], rows: dict[str, Any], *, keep: bool) -> None:
    """Run files and put their rows into `rows`, into the file of results too where they are kept."""
    for name in chosen:
        row = running.tests(source, [name])[name] if name.startswith(running.TESTS) else running.script(source, name)
        rows[name] = {"digest": process.digest_of(source / name), **row}
        click.echo(f"{name}: {page.ending(rows[name])}", err=True)
        if keep:
            keeping.store(RESULTS, dict(sorted(rows.items())))


def load() -> dict[str, Any]:
    """Return the rows that are kept."""
    return keeping.load(RESULTS)


def table(rows: dict[str, Any]) -> Table:
    """Return how many of the scripts, and of the tests, ended right."""
    found = Table("the framework's own scripts and tests in sim", "count")
    scripts, tests = page.counts(rows)
    found.rows.append(Row("scripts", {"all": scripts.all, "right": scripts.right}, 37, "right", at_least=True))
    if tests.can_run:
        share = 100 * tests.right / tests.can_run
        found.rows.append(
            Row("tests that a CPU can run", {"all": tests.can_run, "right": tests.right, "percent": share}, 95, "percent", True)
        )
    return found


def _is_script(path: Path) -> bool:
    return "__main__" in path.read_text(encoding="utf-8") and path.name != "validate_examples.py"
