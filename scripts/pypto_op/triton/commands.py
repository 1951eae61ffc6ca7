"""The commands of `pypto-op triton` but `tune`, and the entry points of the skill's three scripts."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from pypto_op import own_python
from pypto_op.errors import PyptoOpError, with_kind
from pypto_op.options import MEGABYTES, Amount
from pypto_op.vocabulary import ExitCode
from pypto_op.workspace import typed

_TARGETS = click.Choice(["auto", "interpret", "cuda", "npu"])


@click.group()
def triton() -> None:
    """Verify and time a Triton implementation of a PyTorch task."""


@triton.command()
@click.argument("file_path", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@click.option("--policy", type=click.Path(path_type=Path), default=None, help="YAML file with the policy's keys that differ.")
def validate(file_path: Path, as_json: bool, policy: Path | None) -> int:
    """Say what ModelNew.forward would do, without running it; exit 0 when that is launching kernels, 1 otherwise."""
    from pypto_op.triton.static.policy import load_policy
    from pypto_op.triton.static.validate import validate_file

    result = validate_file(file_path, load_policy(policy))
    click.echo(json.dumps(result, indent=2, ensure_ascii=False) if as_json else _told(file_path, result))
    return 0 if result["valid"] else 1


def _told(path: Path, result: dict[str, Any]) -> str:
    if result["valid"]:
        return f"{path}: valid; forward launches {', '.join(result['checks']['kernel_called_from_forward']['called'])}"
    if "error" in result:  # nothing was looked at, so nothing is a regression
        return f"{path}: {result['error'].removeprefix(f'{path}: ')}; {result['suggestion']}"
    lines = [f"{path}: regression of type {result['regression_type']}: {result['suggestion']}"]
    for check in ("kernel_called_from_forward", "no_forbidden_torch_ops"):
        for found in result["checks"][check]["violations"]:
            place = f"{found.get('file', path.name)}:{found['line']}"
            lines.append(f"  {place}: {found['call']}: {found['reason']}")
    return "\n".join(lines)


@triton.command("import")
@click.argument("task", type=click.Path(path_type=Path))
@click.option("--op_name", default=None, help="Name of the operator; default: made of the file's name.")
@click.option("--dir", "folder", type=click.Path(path_type=Path), default=None, help="Where the task goes; default: ./OP_NAME.")
@click.option("--gpu", is_flag=True, help="Keep the public sizes, for a device.")
@click.option("--set", "fixed", multiple=True, metavar="NAME=N", help="Give a number of the task this value, and keep it.")
@click.option("--elements", type=click.IntRange(16), default=4096, help="Elements of the largest tensor, at most.")
@click.option("--timeout", type=Amount(1), default=120.0, help="Seconds for what the task's own code does.")
@click.option("--memory_mb", type=MEGABYTES, default=4096, help="Memory of the task's process.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def import_(task: Path, folder: Path | None, as_json: bool, fixed: tuple[str, ...], **wanted: Any) -> int:
    """Make a folder for `verify` of a public task's file (Model, get_inputs, get_init_inputs), small enough for the interpreter.

    Exit status: 0 done, 1 the task does not run (it raises, never ends, or wants too much memory), 2 the file is no task or the
    folder is taken, 3 Triton is missing.
    """
    from pypto_op.triton.run.setup.targets import warm

    warm("interpret")  # before the next line brings torch
    from pypto_op.triton.intake import page
    from pypto_op.triton.intake.importing import Request, import_task

    result = import_task(task, Request(folder=folder, fixed=_numbers(fixed), **wanted))
    click.echo(json.dumps(result, indent=2, ensure_ascii=False) if as_json else "\n".join(page.told(result)))
    return int(ExitCode.OK)


def _numbers(words: tuple[str, ...]) -> dict[str, int]:
    found = {}
    for word in words:
        name, _, value = word.partition("=")
        if not name or not value.isdigit() or int(value) < 1:
            raise click.BadParameter(f"{word!r} is no NAME=N", param_hint="--set")
        found[name.strip()] = int(value)
    return found


def _no_file(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """Return `value`; refuse the file that `validate --policy` takes."""
    if value is not None and Path(value).is_file():
        raise click.BadParameter(
            "it names a tolerance, and this is a file; `verify --static_policy` takes that of the static check"
        )
    return value


def _project_options(command: Any) -> Any:
    for option in (
        click.option("--op_name", required=True, help="Name of the operator: {op_name}_torch.py is the task."),
        click.option("--verify_dir", type=click.Path(path_type=Path), default=Path(), help="Folder of task and implementation."),
        click.option("--triton_impl_name", default="triton_ascend_impl", help="Name of the implementation, without {op_name}_."),
        click.option("--output", type=click.Path(path_type=Path), default=None, help="Where the result goes."),
        click.option("--target", type=_TARGETS, default="auto", help="Where to run; default: the device that is there."),
        click.option("--policy", default=None, callback=_no_file, help="Name of a tolerance; default: mere_mare, as contracted."),
        click.option("--json", "as_json", is_flag=True, help="Print the result as JSON, and nothing else on standard output."),
    ):
        command = option(command)
    return command


@triton.command()
@_project_options
@click.option("--timeout", type=Amount(1), default=900.0, help="Seconds for everything.")
@click.option("--case_timeout", type=Amount(0.1), default=None, help="Seconds for one case; default: what is left.")
@click.option("--seeds", type=click.IntRange(1, 16), default=2, help="Passes, each with other values; 1: the task's own alone.")
@click.option("--static_policy", type=click.Path(path_type=Path), default=None, help="What `validate --policy` was given.")
def verify(
    op_name: str,
    verify_dir: Path,
    triton_impl_name: str,
    output: Path | None,
    target: str,
    policy: str | None,
    as_json: bool,
    **limits: Any,
) -> int:
    """Run every case; exit 0 when all are right, 1 otherwise. The result is written in every case."""
    from pypto_op.triton.run.setup.project import Project
    from pypto_op.triton.run.setup.request import Request
    from pypto_op.triton.run.verify import verify_triton

    try:
        project = Project.at(verify_dir, op_name, triton_impl_name)
        request = Request(target=target, policy=policy, output=output, **limits)
        result = verify_triton(project, request, None if as_json else _tell_failure)
    except PyptoOpError as error:
        click.echo(f"verify: {error.told()}", err=True)
        return 1
    if as_json:
        click.echo(json.dumps(result, indent=2, ensure_ascii=False))
        return 0 if result["status"] == "PASS" else 1
    click.echo(f"{result['status']}: {result['passed_cases']}/{result['total_cases']} cases right on {result['backend']}")
    for line in (result["error"], *(f"not shown: {caveat}" for caveat in result["caveats"])):
        if line:
            click.echo(line)
    click.echo(f"result: {typed(output or project.verify_result)}")
    return 0 if result["status"] == "PASS" else 1


def _tell_failure(case: Any) -> None:
    if not case.judgement.ok:
        message = " ".join(case.judgement.message.split())[:300]
        click.echo(f"case {case.index + 1}: {with_kind(case.judgement.error_type, message)}")


@triton.command()
@_project_options
@click.option("--warmup", type=click.IntRange(min=0), default=5, help="Calls that are not counted.")
@click.option("--repeats", type=click.IntRange(min=1), default=50, help="Calls that are.")
@click.option("--skip_framework", is_flag=True, help="Do not time the reference; the result says so.")
@click.option(
    "--framework_latency_ms", type=Amount(0), default=None, help="The reference's time, from elsewhere; the result says so."
)
@click.option("--verify_not_required", is_flag=True, help="Time what was not verified; the result says so.")
@click.option("--do_bench", is_flag=True, help="Also measure with triton.testing.do_bench, for comparison.")
@click.option("--operators", is_flag=True, help="Also ask torch's profiler which kernels a call runs; on a GPU.")
@click.option("--case_timeout", type=Amount(1), default=300.0, help="Seconds for one step of a shape.")
def benchmark(op_name: str, verify_dir: Path, triton_impl_name: str, as_json: bool, **wanted: Any) -> int:
    """Time an implementation whose every case is right; exit 2 when there is no such verdict for exactly these bytes."""
    from pypto_op.triton.bench.benchmark import benchmark_triton
    from pypto_op.triton.bench.gate import GateClosed
    from pypto_op.triton.bench.request import Request
    from pypto_op.triton.run.setup.project import Project

    try:
        project = Project.at(verify_dir, op_name, triton_impl_name)
        result = benchmark_triton(project, Request(**wanted), None if as_json else _tell_row)
    except GateClosed as closed:
        click.echo(f"benchmark: {closed.told()}", err=True)
        for failure in getattr(closed, "failures", []):
            click.echo(failure, err=True)
        return int(ExitCode.CONTRACT)
    except PyptoOpError as error:
        click.echo(f"benchmark: {error.told()}", err=True)
        return 1
    if as_json:
        click.echo(json.dumps(result, indent=2, ensure_ascii=False))
        return 0
    speedup = result["speedup_vs_torch"]
    click.echo(
        f"{result['passed_cases']}/{result['total_cases']} shapes timed; speed-up over PyTorch: {speedup or 'none claimed'}"
    )
    for note in result["notes"]:
        click.echo(f"note: {note}")
    return 0


def _tell_row(row: dict[str, Any]) -> None:
    if row["status"] == "fail":
        click.echo(f"shape {row['case_idx']}: {row['error_type']}: {' '.join(row['error_msg'].split())[:300]}")
        return
    own, other = row["implementation"]["avg_latency_ms"], row["framework"]["avg_latency_ms"]
    click.echo(f"shape {row['case_idx']}: implementation {own:.4f} ms, reference {other:.4f} ms")


@triton.command()
@click.argument("baseline", type=click.Path(path_type=Path))
@click.argument("optimized", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def compare(baseline: Path, optimized: Path, as_json: bool) -> int:
    """Say whether OPTIMIZED is faster than BASELINE beyond the noise, from two results of the benchmark.

    Exit status: 0 keep it, 1 drop it, 2 the files cannot be compared.
    """
    from pypto_op.triton.bench.choice import choose

    found = choose(baseline, optimized)
    if as_json:
        click.echo(json.dumps(found, indent=2, ensure_ascii=False))
        return int(ExitCode.OK if found["keep"] else ExitCode.FAIL)
    for shape in found["shapes"]:
        bounds = f"[{shape['low']:.3f}, {shape['high']:.3f}]"
        click.echo(f"shape {shape['case_idx']}: {shape['verdict']}, {shape['gain']:.3f} {bounds} times as fast as the baseline")
    click.echo(f"{'keep' if found['keep'] else 'drop'}: {found['gain']:.3f} times as fast over all shapes")
    return int(ExitCode.OK if found["keep"] else ExitCode.FAIL)


def run_script(name: str) -> None:
    """Run one of the three commands as a script of the skill: bad usage is exit 1 there, except for the benchmark."""
    own_python.seldom_collect()
    try:
        code = triton.commands[name].main(args=sys.argv[1:], prog_name=name, standalone_mode=False)
    except ModuleNotFoundError as error:
        lacking = error.name or "a module"
        click.echo(f"{name}: {sys.executable} has no {lacking}; run this with the Python that `pypto-op doctor` names", err=True)
        code = int(ExitCode.INFRA)
    except click.ClickException as error:
        error.show()
        code = 1
    except PyptoOpError as error:
        click.echo(f"{name}: {error.told()}", err=True)
        code = 1
    except (click.Abort, KeyboardInterrupt):
        code = 130
    except Exception as error:
        click.echo(f"{name}: internal error: {type(error).__name__}: {' '.join(str(error).split())[:300]}", err=True)
        code = int(ExitCode.INFRA)
    sys.exit(code if isinstance(code, int) else 0)
