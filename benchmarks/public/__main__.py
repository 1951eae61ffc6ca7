"""Run one of the public collections: `python -m benchmarks.public tasks --source kernelbench=FOLDER`."""

from __future__ import annotations

import json
import os
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

import click

from benchmarks import keeping

RESULTS = Path(__file__).parents[1] / "results"


def told(rows: Any) -> str:
    """Return results as JSON that names no folder of this machine."""
    text = keeping.text(rows) + "\n"
    for folder, name in ((sysconfig.get_paths()["purelib"], "site-packages"), (tempfile.gettempdir(), "tmp")):
        text = text.replace(folder, name)
    return text


@click.group()
def main() -> None:
    """Judge public tasks and kernels; nothing of theirs is kept."""
    folder = tempfile.mkdtemp(prefix="public-key-")
    os.environ.setdefault("PYPTO_OP_KEY_FILE", str(Path(folder) / "seal.key"))


def sources(words: tuple[str, ...]) -> dict[str, Path]:
    """Return the folders by name."""
    found = {}
    for word in words:
        name, _, folder = word.partition("=")
        if not folder or not Path(folder).is_dir():
            raise click.BadParameter(f"{word!r} is no NAME=FOLDER", param_hint="--source")
        found[name] = Path(folder)
    return found


_SOURCE = click.option("--source", "given", multiple=True, required=True, metavar="NAME=FOLDER", help="A checkout.")
_KEEP = click.option("--keep", is_flag=True, help="Write benchmarks/results too.")
_ONLY = click.option("--only", default="", help="Only what has this in its name.")


@main.command()
@_SOURCE
@_KEEP
@_ONLY
@click.option("--levels", default="level1,level2", help="Which levels of KernelBench.")
def tasks(given: tuple[str, ...], keep: bool, only: str, levels: str) -> None:
    """Import every task of KernelBench, and judge its own Model as a kernel."""
    from benchmarks.public import tasks as public

    rows: list[dict[str, Any]] = []
    for file in public.files(sources(given)["kernelbench"], levels.split(",")):
        if only in file.stem:
            rows.append(public.row(file))
            click.echo(json.dumps(rows[-1]))
            if keep:
                _write("triton_public_tasks.json", rows)
    click.echo(public.table(rows))


@main.command()
@_SOURCE
@_KEEP
@_ONLY
@click.option("--target", default="interpret", help="interpret or cuda.")
def kernels(given: tuple[str, ...], keep: bool, only: str, target: str) -> None:
    """Verify the kernels of kernels.yaml."""
    from benchmarks.public import kernels as public

    folders, rows = sources(given), []
    for entry in public.entries():
        if entry["source"] in folders and only in f"{entry['source']}/{entry['file']}":
            rows.append(public.row(entry, folders[entry["source"]], target))
            click.echo(json.dumps(rows[-1]))
            if keep:
                _write("triton_public_kernels.json", rows)
    click.echo(public.table(rows))


@main.command()
@_SOURCE
@click.option("--out", type=click.Path(path_type=Path), required=True, help="Folder that is made anew.")
@click.option("--most", default=6, help="Faults per kernel.")
def prepare(given: tuple[str, ...], out: Path, most: int) -> None:
    """Lay the league's kernels, faults and tests out in a folder."""
    from benchmarks.public import league

    click.echo(f"{league.prepare(sources(given), out, most)} mutants of {len(league.PLAYERS)} kernels in {out}")


@main.command()
@click.option("--from", "prepared", type=click.Path(path_type=Path), required=True, help="What `prepare` made.")
@click.option("--target", default="interpret", help="interpret or cuda.")
@click.option("--lanes", type=int, default=None, help="How many at once.")
@click.option("--seconds", default=1e9, help="Begin nothing after that.")
@click.option("--tests", default=6, help="Parametrisations of each test function of a package, the smallest.")
@click.option("--limit", default=90.0, help="Seconds for an own test, and for a verdict.")
@click.option("--out", type=click.Path(path_type=Path), default=RESULTS, help="Folder for triton_league_TARGET.json.")
@_ONLY
def league(
    prepared: Path, target: str, lanes: int | None, seconds: float, tests: int, limit: float, out: Path, only: str
) -> None:
    """Let own tests and `triton verify` look at every fault; print kill rates."""
    from benchmarks.public import league as public

    rows: list[dict[str, Any]] = []

    def played(row: dict[str, Any]) -> None:
        rows.append(row)
        sides = [f"{side}: {'accepts' if row[side]['ok'] else row[side]['why'][:60]}" for side in ("own", "judge")]
        click.echo(f"{row['kernel']} {row['number']} {row['kind']} {row['seconds']} {' | '.join(sides)}")
        (out / f"triton_league_{target}.json").write_text(told(rows), encoding="utf-8")

    public.play(prepared.resolve(), target, lanes or public.lanes_here(), seconds, tests, limit, played, only)
    click.echo(public.summary(rows))


def _write(name: str, rows: Any) -> None:
    (RESULTS / name).write_text(told(rows), encoding="utf-8")


if __name__ == "__main__":
    main()
