"""`python -m benchmarks.framework --source CHECKOUT NAME...`: run these files again; without names, write the page anew."""

from __future__ import annotations

from pathlib import Path

import click

from benchmarks import framework
from benchmarks.framework import page


@click.command()
@click.option("--source", type=click.Path(exists=True, file_okay=False, path_type=Path), required=True)
@click.argument("chosen", nargs=-1, metavar="[NAME]...")
def main(source: Path, chosen: tuple[str, ...]) -> None:
    """NAME: a part of a file's path; `test` runs all tests."""
    rows = framework.load()
    wanted = [name for name in framework.names(source) if any(word in name for word in chosen)]
    framework.measure(source, wanted, rows, keep=True)
    page.write(rows)


main()
