"""Public kernels, judged with suites that `harness new` makes: tests/fixtures/public has one small folder for each operator.

`python -m benchmarks public_operators --source CHECKOUT [NAME ...]` takes each kernel from the checkout (its file, with what it
needs) and joins it with our wrapper; nothing of the file is kept. `pypto-op harness new` writes a suite from our SPEC.md and
golden, `pypto-op verify` judges the public kernel with it as it is. Then at most `MUTANTS` of `pypto-op mutate`'s own mutants of
the kernel meet that suite and the file's own test. The rows are benchmarks/results/public_operators.json; the page is
docs/public-operators.md.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import yaml

from benchmarks import process
from benchmarks.fresh import SUITE_FILES, report_of, verdict
from benchmarks.public_operators import extraction, page
from benchmarks.table import Row, Table

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "tests" / "fixtures" / "public"
MUTANTS = 20
SEED = 20
"""Of the choice of mutants."""


def run(quick: bool, source: Path | None = None, ops: Sequence[str] = ()) -> list[Table]:
    """Measure the named operators, or those without a row of their present files; `quick`: no mutants, and nothing is kept.

    Raises:
        click.UsageError: an operator has no folder.
        click.ClickException: the checkout lacks a file or a kernel.
    """
    if source is None:
        click.echo("public_operators: left out, since it needs --source CHECKOUT of the framework's repository", err=True)
        return []
    if unknown := set(ops) - set(operators()):
        raise click.UsageError(f"no operator {', '.join(sorted(unknown))}; tests/fixtures/public has {', '.join(operators())}")
    rows = page.load()
    for op in ops or [op for op in operators() if rows.get(op, {}).get("digest") != digest(op, source)]:
        with tempfile.TemporaryDirectory() as folder:
            row = measure(op, source.resolve(), Path(folder), mutants=0 if quick else MUTANTS)
        rows = {**rows, op: row} if quick else {**page.load(), op: row}
        click.echo(page.told(op, row), err=True)
        if not quick:
            page.store(rows)
    return [_table(rows)]


def operators() -> list[str]:
    """Return the operators that have a folder."""
    return sorted(path.parent.name for path in FIXTURES.glob("*/operator.yaml"))


def described(op: str) -> dict[str, Any]:
    """Return operator.yaml: `file`, `kernels`, `tests`, `test_file`."""
    return {"test_file": "", "tests": [], **yaml.safe_load((FIXTURES / op / "operator.yaml").read_text(encoding="utf-8"))}


def digest(op: str, source: Path) -> str:
    """Return the sha256 of an operator's folder and of the public files that it names."""
    about = described(op)
    own = sorted(path for path in (FIXTURES / op).rglob("*") if path.is_file() and path.suffix != ".pyc")
    public = source / about["file"]
    named = [public, public.parent / about["test_file"]] if about["test_file"] else [public]
    return process.digest_of(*own, *(path for path in named if path.is_file()))


def workspace(op: str, source: Path, folder: Path) -> Path:
    """Put an operator's documents, golden and assembled kernel under `folder`; return the operator's directory.

    Raises:
        click.ClickException: the checkout lacks the file, or the file the kernel.
    """
    root, about = folder / "custom" / op, described(op)
    ignored = shutil.ignore_patterns("wrapper.py", "operator.yaml", "__pycache__")
    shutil.copytree(FIXTURES / op, root, ignore=ignored)
    (root / f"{op}_impl.py").write_text(extraction.assembled(_public(source, about), about["kernels"], _wrapper(op)))
    return root


def measure(op: str, source: Path, folder: Path, mutants: int = MUTANTS) -> dict[str, Any]:
    """Make a suite, judge the public kernel with it, and let suite and public test judge its mutants.

    Args:
        op: the operator.
        source: the checkout.
        folder: an empty directory.
        mutants: the most that are planted; 0: none.
    """
    root, about = workspace(op, source, folder), described(op)
    impl = root / f"{op}_impl.py"
    kernel = impl.read_text(encoding="utf-8")
    impl.unlink()  # the suite is made for the request, not for this kernel
    made = process.command(["harness", "new", str(root)], cwd=folder)
    impl.write_text(kernel, encoding="utf-8")
    row: dict[str, Any] = {"digest": digest(op, source), **about, "harness": {**made.spent(), "exit": made.code}}
    if made.code != 0:
        row["harness"]["said"] = made.last_lines(8).replace(f"{folder}/", "")
    if not (root / "eval" / SUITE_FILES[0]).is_file():
        return row | {"status": "ERROR", "cases": 0, "failed": [], "said": row["harness"]["said"]}
    done = process.command(["verify", "--modes", "sim", "--jobs", "2", "--quiet", str(root)], cwd=folder)
    row |= {**verdict(report_of(root, done)), "verify": done.spent()}
    if about["tests"]:
        row["own_test"] = own_tests_of(source, about, [_public(source, about)])[0]
    if mutants and row["status"] == "PASS":
        row["mutants"] = _mutants(op, root, source, mutants)
    return row


def _mutants(op: str, root: Path, source: Path, most: int) -> list[dict[str, Any]]:
    """Return what suite and public test say of mutants whose fault lies in the public part of the file."""
    from pypto_op.mutation.mutants import in_turns, make_mutants
    from pypto_op.mutation.operators.registry import select
    from pypto_op.mutation.program import Program

    about, text = described(op), (root / f"{op}_impl.py").read_text(encoding="utf-8")
    public = _public(source, about)

    def back(changed: str) -> str:
        return extraction.put_back(public, changed, about["kernels"], _wrapper(op))

    same, made = back(text), make_mutants(Program(text, f"{op}_wrapper"), select(None))
    chosen = in_turns([one for one in made if back(one.source) != same], SEED)[:most]
    asked = ["--only", ",".join(one.id for one in chosen), "--jobs", "2", "--seconds", "0", "--json"]
    done = process.command(["mutate", *asked, str(root)], cwd=root.parents[1], apart=True)
    try:
        found = {one["id"]: one for one in json.loads(done.output)["mutants"]}
    except ValueError:
        raise click.ClickException(f"{op}: pypto-op mutate ended with {done.code}; run it in a workspace to see why") from None
    theirs: list[dict[str, Any]] = [{}] * len(chosen)
    if about["tests"]:
        theirs = own_tests_of(source, about, [back(one.source) for one in chosen])
    return [
        {
            "operator": one.operator,
            "ours": found[one.id]["status"],
            "by": found[one.id]["killed_by"],
            "theirs": "" if not answer else ("survived" if answer["ok"] else "killed"),
        }
        for one, answer in zip(chosen, theirs, strict=True)
    ]


def own_tests_of(source: Path, about: dict[str, Any], texts: Sequence[str]) -> list[dict[str, Any]]:
    """Run the public tests on each of these texts of the kernel's file, in a copy of its folder, where tests may write."""
    path = Path(about["file"])
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / path.parent.name
        shutil.copytree(source / path.parent, place, ignore=shutil.ignore_patterns("__pycache__"))
        asked = {"folder": str(place), "module": path.stem, "test_file": about["test_file"], "tests": about["tests"]}
        lines = "".join(json.dumps({**asked, "text": text}) + "\n" for text in texts)
        server = Path(__file__).with_name("own_tests.py")
        command = [sys.executable, "-m", "pypto_op.backends.hostshim", str(server)]
        done = subprocess.run(command, input=lines, capture_output=True, text=True, cwd=folder)
    answers = [dict(json.loads(line)) for line in done.stdout.splitlines() if line.startswith("{")]
    if len(answers) != len(texts):
        raise click.ClickException(f"{about['file']}: its tests ended early: {done.stderr.strip()[-300:]}")
    return answers


def _public(source: Path, about: dict[str, Any]) -> str:
    path = source / about["file"]
    if not path.is_file():
        raise click.ClickException(f"the checkout has no {about['file']}; check out tag r0.2.0 of the framework")
    return path.read_text(encoding="utf-8")


def _wrapper(op: str) -> str:
    return (FIXTURES / op / "wrapper.py").read_text(encoding="utf-8")


def _table(rows: dict[str, Any]) -> Table:
    found = Table("public kernels, each judged with a suite as harness new wrote it", "count")
    for op, row in sorted(rows.items()):
        rates = page.rates(row)
        figures = {"cases": float(row["cases"]), "failed": float(len(row["failed"])), **{k: float(v) for k, v in rates.items()}}
        found.rows.append(Row(op, figures))
    return found
