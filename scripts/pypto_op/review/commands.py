"""`pypto-op extract-pypto-calls`: list the pypto calls of a file."""

from __future__ import annotations

import json
import os
from pathlib import Path

import click


@click.command("extract-pypto-calls")
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print a JSON array of {line, col, call, kind}.")
def extract_pypto_calls(path: Path, as_json: bool) -> int:
    """List every pypto call in PATH in the order of the text, aliases resolved.

    Exit status: 0 done, 1 PATH is not a file, 2 PATH does not parse. Lines count from 1, columns from 0.
    """
    from pypto_op.review.call_sites import extract_calls
    from pypto_op_lint.source import UnreadableSource

    try:
        sites = extract_calls(path)
    except UnreadableSource as error:
        if not os.access(path, os.R_OK) or not path.is_file():
            click.echo(f"pypto-op: {path}: not a readable file; give the path of a Python file", err=True)
            return 1
        click.echo(f"pypto-op: {path}: {error.told}; mend the syntax first", err=True)
        return 2
    if as_json:
        click.echo(json.dumps([site.as_dict() for site in sites], indent=2))
    else:
        for site in sites:
            click.echo(f"{site.line:>5}:{site.col:<4} {site.kind:<13} {site.call}")
    return 0
