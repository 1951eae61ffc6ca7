"""Run the benchmarks: `python -m benchmarks [NAME ...] [--quick] [--keep] [--json FILE]`.

A benchmark is a module of this package with a function `run(quick: bool) -> list[Table]`. What follows the name `fresh` or
`public_operators` are the operators that it measures: `python -m benchmarks fresh add_rmsnorm_quant`, or, for `fresh`, some
kernels of theirs: `python -m benchmarks fresh swiglu:right,honest`.
"""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table as RichTable

import benchmarks
from benchmarks import page
from benchmarks.table import Table

_SUPPORT = {
    "faults_page", "fresh_kernels", "page", "planted", "process", "public", "spent", "table", "tune_bench", "tune_planted",
    "tune_spaces",
    "__main__",
}  # fmt: skip
_OWN_PAGE = {"faults", "framework", "fresh", "pool", "public_operators", "strength"}
_OF_A_CHECKOUT = {"framework", "public_operators"}
_OF_OPERATORS = {"fresh", "public_operators"}


def names() -> list[str]:
    """Return the names of all benchmarks."""
    return sorted(m.name for m in pkgutil.iter_modules(benchmarks.__path__) if m.name not in _SUPPORT)


def show(table: Table, console: Console) -> None:
    """Print one table."""
    columns = list(dict.fromkeys(name for row in table.rows for name in row.values))
    rich = RichTable(title=f"{table.title} [{table.unit}]", title_justify="left")
    rich.add_column("what", overflow="fold")
    for name in columns:
        rich.add_column(name, justify="right")
    rich.add_column("target", justify="right")
    for row in table.rows:
        figures = [f"{row.values[name]:.1f}" if name in row.values else "" for name in columns]
        sign = ">=" if row.at_least else "<="
        verdict = {None: "", True: "met", False: "MISSED"}[row.met]
        target = f"{row.judged} {sign} {row.target:g} {verdict}" if row.target is not None else ""
        rich.add_row(row.what, *figures, target)
    console.print(rich)
    for note in table.notes:
        console.print(f"  {note}")


@click.command()
@click.argument("chosen", nargs=-1, metavar="[NAME]...")
@click.option("--quick", is_flag=True, help="Fewer repetitions.")
@click.option("--keep", is_flag=True, help="Put the figures into docs/speed.md.")
@click.option("--source", type=click.Path(exists=True, path_type=Path), help="A checkout of the framework.")
@click.option("--json", "json_file", type=click.Path(path_type=Path), default=Path("bench-out/bench.json"))
def main(chosen: tuple[str, ...], quick: bool, keep: bool, source: Path | None, json_file: Path) -> None:
    """Run all benchmarks, or the named ones; after `fresh` or `public_operators`, the names are those of operators.

    `fresh OP:KERNELS` judges some kernels only: `right`, `honest`, `wrong` or names, with commas between.
    """
    further: dict[str, Any] = {}
    if set(chosen[:1]) & _OF_OPERATORS:
        chosen, further = chosen[:1], {"ops": chosen[1:]}
    unknown = set(chosen) - set(names())
    if unknown:
        raise click.UsageError(f"no benchmark {', '.join(sorted(unknown))}; there are {', '.join(names())}")
    console, results = Console(), {}
    for name in chosen or names():
        more = {**further, "source": source} if name in _OF_A_CHECKOUT else further
        tables = importlib.import_module(f"benchmarks.{name}").run(quick, **more)
        for table in tables:
            show(table, console)
        load = os.getloadavg()[0]
        console.print(f"load average {load:.1f} on {os.cpu_count()} cores after {name}")
        results[name] = {"load": load, "tables": [table.as_dict() for table in tables]}
        if keep and name not in _OWN_PAGE:
            page.keep({name: results[name]})
    json_file.parent.mkdir(parents=True, exist_ok=True)
    json_file.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
