"""Commands about documents: `check`, `new`, `design-params`, `interfaces`, `memory`."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click

from pypto_op.documents.golden import Signature
from pypto_op.documents.schema import Finding
from pypto_op.errors import ContractError
from pypto_op.options import OperatorDir, op_dir_argument
from pypto_op.vocabulary import ExitCode
from pypto_op.workspace import OpWorkspace, typed

_AS_JSON = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
_OP_DIR = op_dir_argument()
_OP_DIR_OR_FILE = op_dir_argument(or_file="the document itself")


@click.command()
@_OP_DIR
@_AS_JSON
def check(op_dir: Path, as_json: bool) -> int:
    """Check the documents of OP_DIR: schemas, sections, contradictions, and what is left to do.

    A document that does not exist yet is not a finding. Exit 0: nothing found, 1: findings,
    2: no operator lies in OP_DIR.
    """
    from pypto_op.documents import api_report, design, golden, interfaces, memory, spec, suite

    ws = OpWorkspace.at(op_dir)
    checks: list[tuple[Path, Callable[[Path], list[Finding]]]] = [
        (ws.spec, partial(spec.check, is_copy=_is_copy(ws), signature=_signature(ws))),
        (ws.api_report, api_report.check),
        (ws.golden, golden.check),
        (ws.design, design.check),
        (ws.interfaces, interfaces.check),
        (ws.suite, suite.check),
        (ws.memory, memory.check),
    ]
    found = {path: run(path) for path, run in checks if path.exists()}
    if all(found.get(path) == [] for path in (ws.spec, ws.interfaces, ws.suite)):
        step = f"run `pypto-op harness new --force {typed(op_dir)}`, or add some"
        for told in _untried(ws):
            found[ws.suite].append(Finding("cases", f"SPEC.md supports {told}, and no case has it", remedy=step))
    from pypto_op.documents.way import next_step

    step = next_step(ws, found)
    if as_json:
        return _report(found, as_json, more={"next": step})
    code = _report(found, as_json, base=ws.root)
    click.echo(f"next: {step}")
    return code


def _is_copy(ws: OpWorkspace) -> bool:
    """Whether the golden only moves the elements of its floating inputs, as far as contract and golden can be read."""
    from pypto_op.documents import interfaces
    from pypto_op.documents.moves import only_moves

    try:
        ports = interfaces.load(ws.interfaces).primary_inputs
        floating = [port.name for port in ports if port.shape and "float" in port.dtype]
        return bool(floating) and only_moves(ws.golden, ws.golden_name(), floating)
    except ContractError:  # told where these documents themselves are checked
        return False


def _signature(ws: OpWorkspace) -> Signature | None:
    """Return the golden's signature; none where it cannot be read, which is told where the golden itself is checked."""
    from pypto_op.documents import golden

    try:
        return golden.read_signature(ws.golden)
    except ContractError:
        return None


def _untried(ws: OpWorkspace) -> list[str]:
    """Return what SPEC.md supports and no case of the suite has."""
    from pypto_op.documents import interfaces, p0_shapes, spec, suite

    document = spec.load(ws.spec)
    contract = interfaces.load(ws.interfaces).with_scalars(document.default_params)
    return p0_shapes.untried(suite.load(ws.suite), document, contract)


@click.command()
@click.argument("op")
@click.option("--dtype", "dtypes", multiple=True, help="A supported dtype; several with commas, or the option again.")
@click.option("--p0", "p0", multiple=True, metavar="T=128,H=4096", help="A shape that must work, by symbol.")
@click.option("--dynamic", "dynamic", multiple=True, help="A symbol whose size is known at run time only; several likewise.")
@click.option("--into", type=click.Path(path_type=Path), default=Path(), help="The workspace; default: here.")
@_AS_JSON
def new(op: str, dtypes: Sequence[str], p0: Sequence[str], dynamic: Sequence[str], into: Path, as_json: bool) -> int:
    """Make custom/OP/ with its documents; what a person must decide is marked TODO.

    Exit status: 0 made, 2 the name is taken or is none, 3 it cannot be written, or no kernel could run there.
    """
    from pypto_op.documents.scaffold import Request, new_operator
    from pypto_op.documents.way import next_step

    ws = new_operator(Request(op, _words(dtypes), [_sizes(text) for text in p0], _words(dynamic)), into)
    files = sorted(str(path.relative_to(ws.root)) for path in ws.root.rglob("*") if path.is_file())
    if as_json:
        click.echo(json.dumps({"op_dir": str(ws.root), "files": files}))
    else:
        click.echo(f"{typed(ws.root)}: {', '.join(files)}")
        click.echo(f"next: {next_step(ws)}")
    return ExitCode.OK


def _words(given: Sequence[str]) -> list[str]:
    """Return the words of an option that may be given several times, or once with commas."""
    return [word.strip() for text in given for word in text.split(",") if word.strip()]


@click.command(name="design-params")
@click.argument("golden", type=click.Path(path_type=Path))
@click.option("--state-groups", type=click.IntRange(0, 100), help="Count of a person, instead of the found one.")
@click.option("--cross-tile-reduce", type=click.IntRange(0, 1000), help="Count of a person, instead of the found one.")
@click.option("--dtype", default="float32", show_default=True, help="Dtype of the vector work.")
@_AS_JSON
def design_params(golden: Path, state_groups: int | None, cross_tile_reduce: int | None, dtype: str, as_json: bool) -> int:
    """Compute signals, total, module_count and first tiles from GOLDEN: a golden's file, or the folder of its operator.

    What SPEC.md (6, 8) and DESIGN.md (0.1 to 0.3) beside it leave open of that is written there.
    """
    from pypto_op.documents import complexity, derived
    from pypto_op.documents.golden import need_written
    from pypto_op.documents.way import need

    if golden.is_dir():
        ws = OpWorkspace.at(OperatorDir().convert(golden, None, None))
        need(ws, ws.golden)
        golden = ws.golden
    found = complexity.analyse(golden, state_groups=state_groups, cross_tile_reduces=cross_tile_reduce, dtype=dtype)
    need_written(golden)
    params, written = found.as_dict(), derived.fill(golden, found)
    if as_json:
        click.echo(json.dumps({**params, "written": written}, indent=2))
        return ExitCode.OK
    signals = params["signals"]
    click.echo(f"function                   {signals['function']}")
    for key in ("effective_lines", "loop_carried_state_groups", "matmul_count", "cross_tile_reduce_count"):
        click.echo(f"{key:<26} {signals[key]}")
    click.echo(f"L, S, O                    {params['L']}, {params['S']}, {params['O']}")
    click.echo(f"total_complexity           {params['total_complexity']}")
    level = f"{params['decomposition']} ({params['decomposition_level']})"
    click.echo(f"Decision: module_count = {params['module_count']}, {level}")
    tiles = params["tile_baseline"]
    click.echo(f"tiles                      vector {tiles['vector']}, cube {tiles['cube']}")
    click.echo("                           to begin with; a last axis of 512 bytes or more is faster where it fits")
    click.echo(f"tail alignment             {tiles['tail_alignment']} elements of {tiles['tail_dtype']}")
    if written:
        click.echo(f"written                    {', '.join(written)}")
    return ExitCode.OK


@click.group()
def interfaces() -> None:
    """Make and check eval/module_interfaces.yaml."""


@interfaces.command(name="new")
@_OP_DIR
@click.option("--modules", type=click.IntRange(1, 32), help="N; default: what DESIGN.md decides, else 1.")
@click.option("--stdout", "to_stdout", is_flag=True, help="Print it instead of writing it.")
@_AS_JSON
def interfaces_new(op_dir: Path, modules: int | None, to_stdout: bool, as_json: bool) -> int:
    """Write a first contract from the golden's signature, SPEC.md and DESIGN.md; TODO where it must be decided.

    Exit status: 0 written, 2 a document is missing or malformed, or there is a contract.
    """
    from pypto_op.documents import schema, spec
    from pypto_op.documents.scaffold import new_interfaces
    from pypto_op.documents.way import need
    from pypto_op.documents.writing import write_atomically

    ws = OpWorkspace.at(op_dir)
    need(ws, ws.golden)
    text = new_interfaces(ws, modules)
    if ws.spec.is_file():  # else the contract would repeat what is wrong there, and be blamed for it
        schema.raise_first(spec.misfits(ws.spec, _signature(ws)), file=ws.spec)
    if to_stdout:
        click.echo(text, nl=False)
        return ExitCode.OK
    if ws.interfaces.exists():
        raise ContractError("already exists", file=ws.interfaces, remedy="edit it, or use --stdout")
    ws.eval_dir.mkdir(exist_ok=True)
    write_atomically(ws.interfaces, text)
    first = "fill in the TODOs, then run" if "TODO" in text else "run"
    told = f"{typed(ws.interfaces)}: {first} `pypto-op interfaces check {typed(op_dir)}`"
    click.echo(json.dumps({"written": str(ws.interfaces)}) if as_json else told)
    return ExitCode.OK


@interfaces.command(name="check")
@_OP_DIR_OR_FILE
@_AS_JSON
def interfaces_check(op_dir: Path, as_json: bool) -> int:
    """Check schema, wiring rules and the golden's signature. OP_DIR may also be the YAML file. Exit 1: findings."""
    from pypto_op.documents import interfaces as document

    if op_dir.is_file():
        return _report({op_dir: document.check(op_dir)}, as_json)
    ws = OpWorkspace.at(op_dir)
    if not os.path.lexists(ws.interfaces):
        raise ContractError("no such file", file=ws.interfaces, remedy=f"run `pypto-op interfaces new {typed(op_dir)}`")
    found = document.check(ws.interfaces)
    if not found:
        found = document.check_signature(document.load(ws.interfaces), ws)
    return _report({ws.interfaces: found}, as_json, base=ws.root)


@click.group()
def memory() -> None:
    """Check MEMORY.md and append to it."""


@memory.command(name="check")
@_OP_DIR_OR_FILE
@click.option("--against", type=click.Path(path_type=Path), help="An older MEMORY.md: what was taken away or changed?")
@_AS_JSON
def memory_check(op_dir: Path, against: Path | None, as_json: bool) -> int:
    """Check OP_DIR/MEMORY.md: status block, sections, append-only. Exit 1: findings."""
    from pypto_op.documents import append_only
    from pypto_op.documents import memory as document
    from pypto_op.documents.reading import read_text

    path = OpWorkspace.at(op_dir).memory if op_dir.is_dir() else op_dir
    if not os.path.lexists(path):
        raise ContractError("no such file", file=path, remedy="name an operator that was made by `pypto-op new`")
    found = document.check(path)
    if against is not None:
        hunks = append_only.violations(read_text(against), read_text(path))
        found = [Finding("append-only", hunk.text(), hunk.line) for hunk in hunks] + found
    return _report({path: found}, as_json)


@memory.command(name="append")
@_OP_DIR
@click.option("--section", help="A part of the heading to append to.")
@click.option("--new-section", help="Title of a section to add at the end; the time is added.")
@click.option("--cell", "cells", multiple=True, help="A cell of a table row, in order of the columns.")
@click.option("--text", help="Text to append; - reads it from standard input.")
@_AS_JSON
def memory_append(
    op_dir: Path, section: str | None, new_section: str | None, cells: Sequence[str], text: str | None, as_json: bool
) -> int:
    """Append a table row or a text to OP_DIR/MEMORY.md. A first column `When` is filled in.

    Exit status: 0 appended, 2 there is no such section, or the row does not fit it.
    """
    from pypto_op.documents import memory as document

    path = OpWorkspace.at(op_dir).memory
    if (section is None) == (new_section is None) or bool(cells) == (text is not None):
        raise ContractError(
            "what to append where is not clear",
            remedy="give --section or --new-section, and --cell ... or --text",
        )
    if text == "-":
        text = sys.stdin.read()
    if new_section is not None:
        if text is None:
            raise ContractError("a new section takes --text")
        told = document.append_section(path, new_section, text)
    elif text is not None:
        document.append_text(path, section or "", text)
        told = f"{path}: appended"
    else:
        told = document.append_row(path, section or "", cells)
    click.echo(json.dumps({"appended": told, "file": str(path)}, ensure_ascii=False) if as_json else told)
    return ExitCode.OK


@memory.command(name="recovery")
@_OP_DIR
@click.option("--symptom", required=True, help="What the machine said.")
@click.option("--recipe", required=True, help="What was done about it.")
@click.option("--again", type=click.Choice(["ok", "failed"]), required=True, help="How the second run ended.")
@_AS_JSON
def memory_recovery(op_dir: Path, symptom: str, recipe: str, again: str, as_json: bool) -> int:
    """Note in OP_DIR/MEMORY.md, verification log, how an environment failure was dealt with.

    Exit status: 0 noted, 2 there is no such log.
    """
    from pypto_op.documents import memory as document

    path = OpWorkspace.at(op_dir).memory
    note = f"Env recovery: {symptom} -> {recipe}; run again: {again}"
    row = [note if column == "Key stats" else "-" for column in document.LOG_COLUMNS[1:]]
    told = document.append_row(path, document.LOG, row)
    click.echo(json.dumps({"appended": told, "file": str(path)}, ensure_ascii=False) if as_json else told)
    return ExitCode.OK


def _report(
    found: dict[Path, list[Finding]], as_json: bool, base: Path | None = None, more: Mapping[str, Any] | None = None
) -> int:
    """Print findings per file; return 1 if there are any."""
    total = sum(map(len, found.values()))
    if as_json:
        files = {str(path): [finding.as_dict() for finding in items] for path, items in found.items()}
        click.echo(json.dumps({"ok": not total, "findings": files, **(more or {})}, indent=2, ensure_ascii=False))
        return ExitCode.FAIL if total else ExitCode.OK
    for path, items in found.items():
        shown = path.relative_to(base) if base and path.is_relative_to(base) else path
        for finding in items:
            click.echo(f"{shown}: {finding.one_line()}")
    names = ", ".join(path.name for path in found) or "no document"
    click.echo(f"{names}: {total} finding(s)" if total else f"{names}: nothing found")
    return ExitCode.FAIL if total else ExitCode.OK


def _sizes(text: str) -> dict[str, int]:
    """Return {"T": 128} for `T=128`."""
    sizes = {}
    for part in text.split(","):
        symbol, separator, number = part.strip().partition("=")
        if not separator or not number.strip().isascii() or not number.strip().isdigit() or len(number) > 15:
            raise ContractError(f"{text[:60]!r} is no shape", remedy="write T=128,H=4096")
        sizes[symbol.strip()] = int(number)
    return sizes
