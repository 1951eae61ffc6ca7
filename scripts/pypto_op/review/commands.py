"""`pypto-op extract-pypto-calls` and `pypto-op fill-memory`."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

import click

from pypto_op.options import op_dir_argument
from pypto_op.vocabulary import ExitCode
from pypto_op.workspace import OpWorkspace


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


@click.command("fill-memory")
@op_dir_argument()
@click.option("--up-to-module", "phase", metavar="K", help="The staged file of M_1..M_K; default: the integrated kernel.")
@click.option("--audit", metavar="TEXT", help="Which tensors are ragged, and why no write reads their padding.")
@click.option("--preflight", metavar="TEXT", multiple=True, help="A known pitfall that was thought of; several times.")
@click.option("--log", metavar="TEXT", help="How the work went, for the development log.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def fill_memory(
    op_dir: Path, phase: str | None, audit: str | None, preflight: Sequence[str], log: str | None, as_json: bool
) -> int:
    """Write inventory, API map, tiles and self-review of OP_DIR/MEMORY.md from the kernel's file, with its lines.

    A line of the kernel says which steps of the golden's inventory it does: `# golden 2, 3`. Run it again after each change.

    Exit status: 0 all is filled in, 1 something is not shown by the file and stays open, 2 a file is missing or malformed.
    """
    from pypto_op.review.filling import fill
    from pypto_op.workspace import parse_phase, typed

    k = None if phase is None else parse_phase(phase)
    filled = fill(OpWorkspace.at(op_dir), k, audit=audit, preflight=preflight, log=log)
    if as_json:
        click.echo(json.dumps({"file": str(filled.path), "open": filled.open, "later": filled.later}, ensure_ascii=False))
    else:
        left = [f"left to later modules: {text}" for text in filled.later]
        click.echo("\n".join([f"{typed(filled.path)}: filled in", *(f"open: {text}" for text in filled.open), *left]))
    return int(ExitCode.FAIL if filled.open else ExitCode.OK)
