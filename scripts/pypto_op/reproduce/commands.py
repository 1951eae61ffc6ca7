"""`pypto-op reproduce`: says whether a kernel or its case is to blame for a near miss."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from pypto_op.options import op_dir_argument
from pypto_op.vocabulary import Conclusion, ExitCode, Mode
from pypto_op.workspace import OpWorkspace


@click.command()
@op_dir_argument()
@click.option("--case", required=True, metavar="ID", help="The case that fails.")
@click.option("--impl", type=click.Path(path_type=Path), help="The file that failed, when it is not the operator's own.")
@click.option(
    "--up-to-module", metavar="K", help="The cumulative phase M_K that failed; default before integration: the active one."
)
@click.option("--mode", type=click.Choice([str(mode) for mode in Mode]), help="Where it failed; default: the first that did.")
@click.option("--again", is_flag=True, help="Run the kernel even if there is a report about these bytes.")
@click.option("--no-confirm", is_flag=True, help="Do not run the kernel on the milder case that is proposed.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def reproduce(
    op_dir: Path,
    case: str,
    impl: Path | None,
    up_to_module: str | None,
    mode: str | None,
    again: bool,
    no_confirm: bool,
    as_json: bool,
) -> int:
    """Say whether the kernel of OP_DIR or the case is to blame when a case fails by a little.

    Runs the golden on the case's inputs in several orders of summation, on the CPU, and compares their drift with the
    kernel's. Writes _debug/tolerance_analysis.py and .json, and proposes a milder case when the kernel is innocent;
    changes neither kernel nor suite.

    Exit status: 0 the kernel is innocent, 1 it is suspect, 2 there is nothing to reproduce or the files are wrong,
    3 the machine cannot run it.
    """
    from pypto_op.judge.cases.precheck import check_request

    ws = OpWorkspace.at(op_dir)
    check_request(ws, case=case, impl=impl, up_to_module=up_to_module)
    from pypto_op.reproduce.analysis import Request
    from pypto_op.reproduce.analysis import reproduce as run

    request = Request(
        case=case,
        impl=impl,
        up_to_module=up_to_module,
        mode=None if mode is None else Mode(mode),
        again=again,
        confirm=not no_confirm,
    )
    result = run(ws, request)
    click.echo(json.dumps(result, indent=2, allow_nan=False) if as_json else _text(result))
    return int(ExitCode.OK if result["conclusion"] == Conclusion.KERNEL_INNOCENT else ExitCode.FAIL)


def _text(result: dict[str, Any]) -> str:
    head = "KERNEL IS INNOCENT" if result["conclusion"] == Conclusion.KERNEL_INNOCENT else "KERNEL IS SUSPECT"
    lines = [f"{head}: {result['summary']}"]
    for output in result["outputs"]:
        kernel, cpu = output["kernel"], output["cpu"]
        lines.append(f"  {output['name']:16} kernel: {_pair(kernel)}   other orders: {_pair(cpu)}")
    patch = result["suite_patch"]
    if patch is not None:
        status = f", where the kernel is judged {patch['kernel_status']}" if "kernel_status" in patch else ""
        lines += [f"proposed for {patch['file']} (not applied){status}:", patch["diff"]]
    return "\n".join([*lines, f"next: {result['next_step']}", f"script: {result['script']}"])


def _pair(metrics: dict[str, Any]) -> str:
    words = ("max_abs_diff", "max_rel_diff")
    return " ".join(f"{word}={metrics[word]:.3e}" if metrics[word] is not None else f"{word}=?" for word in words)
