"""What `pypto-op verify` does beside judging one boundary: `--sweep`, `--self-test`, `--compose`."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.markup import escape

from pypto_op.documents import targets
from pypto_op.documents.writing import write_atomically
from pypto_op.judge.cases.precheck import ALLOWED
from pypto_op.judge.reporting.display import show_report, styled
from pypto_op.vocabulary import ExitCode, Status
from pypto_op.workspace import OpWorkspace

_Answer = tuple[dict[str, Any], ExitCode]


def run(kind: str, ws: OpWorkspace, console: Console, options: Mapping[str, Any], *, as_json: bool) -> int:
    """Do one of the three and tell the result.

    Args:
        kind: "sweep", "self_test" or "compose".
        console: for people.
        options: what `verify` was called with.
        as_json: print the result as JSON on standard output.

    Returns:
        The exit code: 0 PASS, 1 a kernel (sweep) or the composition is wrong, 2 the operator's files, 3 the machine.

    Raises:
        ContractError: an option makes no sense here, or a file is missing or broken.
        InfraError: the machine cannot do it.
    """
    if options["report"] is not None:
        targets.check_target(Path(options["report"]), f"result of --{kind.replace('_', '-')}", _RESULTS[kind])
    result, code = _KINDS[kind](ws, console, options)
    text = json.dumps(result, indent=2, ensure_ascii=False) + "\n"
    if options["report"] is not None:
        write_atomically(Path(options["report"]), text)
    if as_json:
        click.echo(text, nl=False)
    return int(code)


def _sweep(ws: OpWorkspace, console: Console, options: Mapping[str, Any]) -> _Answer:
    from pypto_op.judge.cases.request import Request
    from pypto_op.judge.sweep import sweep

    kept = ALLOWED["sweep"] | {"modes", "jobs", "pool", "limits"}

    def told(k: int, report: Mapping[str, Any]) -> None:
        console.print(f"[bold]M{k}[/bold]")
        show_report(console, report, verdict_only=Status(report["status"]).passed)

    wanted = Request(**{name: value for name, value in options.items() if name in kept})
    result, code = sweep(ws, wanted, told=told, progress=options["progress"])
    first = result["smallest_failing_module"]
    where = f"the smallest boundary that fails is M{first}"
    if first is None:
        where = f"the staged files of M1 to M{result['up_to_module']} pass"
        where += f"; {ws.impl.name} was not judged" if ws.impl.is_file() else ""
    console.print(f"{styled(result['status'])}  {escape(ws.name)}: {where}")
    return result, code


def _self_test(ws: OpWorkspace, console: Console, options: Mapping[str, Any]) -> _Answer:
    from pypto_op.judge.self_test.selftest import self_test

    result, code = self_test(ws, suite=options["suite"], limits=options["limits"])
    for row in result["checks"]:
        console.print(f"{styled(row['status'])}  {row['name']}: {escape(row['detail'])}", soft_wrap=True)
    console.print(f"{styled(result['status'])}  {escape(ws.name)}: self-test of the harness, {result['seconds']:.1f} s")
    return result, code


def _compose(ws: OpWorkspace, console: Console, options: Mapping[str, Any]) -> _Answer:
    from pypto_op.judge.compose import compose

    result = compose(ws, limits=options["limits"])
    for row in result["triples"]:
        if not row["all_close"]:
            where = f"seed {row['seed']}, shape {escape(str(row['shape']))}, {row['dtype']}, {row['tensor']}"
            console.print(f"{where}: max diff {row['max_abs_diff']}")
    console.print(escape(result["sentence"]), soft_wrap=True)
    console.print(f"{styled(result['status'])}  {escape(ws.name)}: {len(result['triples'])} comparisons")
    return result, ExitCode.OK if result["status"] == Status.PASS else ExitCode.FAIL


_RESULTS: dict[str, Callable[[Path], bool]] = {
    "sweep": lambda path: {"op_name", "boundaries"} <= set(targets.json_object(path)),
    "self_test": lambda path: {"op_name", "checks", "seconds"} == set(targets.json_object(path)) - {"schema_version", "status"},
    "compose": lambda path: {"op_name", "triples"} <= set(targets.json_object(path)),
}
"""How an earlier result of each of them is known, so that `--report` may replace it."""

_KINDS: dict[str, Callable[[OpWorkspace, Console, Mapping[str, Any]], _Answer]] = {
    "sweep": _sweep,
    "self_test": _self_test,
    "compose": _compose,
}
