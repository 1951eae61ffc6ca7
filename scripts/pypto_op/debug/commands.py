"""`pypto-op debug`: one command for each skill of the debugger."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from pypto_op import speaking
from pypto_op.errors import ContractError
from pypto_op.hashing import check_readable
from pypto_op.options import op_dir_argument
from pypto_op.vocabulary import ExitCode, Mode, Status
from pypto_op.workspace import OpWorkspace

_PATH = click.Path(path_type=Path)
_AS_JSON = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
_CASE = click.option("--case", metavar="ID", help="A case of the suite; default: the first failure of the last verdict.")
_IMPL = click.option("--impl", type=_PATH, help="The kernel's file, when it is not the operator's own.")
_UP_TO = click.option("--up-to-module", metavar="K", help="The cumulative phase M_K.")
_RUN = click.argument("run_dir", type=_PATH)


@click.group("debug")
def debug() -> None:
    """Find what caused a failure: one command for each skill of the debugger.

    Exit status of each: 0 something was found, 1 everything was read and nothing found, 2 the request or a file is wrong,
    3 the machine lacks what is needed.
    """
    speaking.now(f"debug {click.get_current_context().invoked_subcommand}")


@debug.command("precision-compare")
@op_dir_argument()
@_CASE
@_IMPL
@_UP_TO
@click.option("--no-blame", is_flag=True, help="Do not run what shows who is to blame.")
@_AS_JSON
def precision_compare(
    op_dir: Path, case: str | None, impl: Path | None, up_to_module: str | None, no_blame: bool, as_json: bool
) -> int:
    """Name the first operation of the kernel of OP_DIR that leaves the golden, its line, and who is to blame.

    Runs the kernel in `sim` with pypto's dump of every result, and the golden under a trace. Prints no value of either.

    Exit status: 0 a place or somebody to blame was found, 1 none was, also where the kernel agrees, 2 kernel or golden do
    not run, 3 no simulator.
    """
    ws, case = _checked(op_dir, case, impl, up_to_module)
    from pypto_op.debug.precision_compare import Request, refused_otherwise
    from pypto_op.debug.precision_compare import precision_compare as run

    result = run(ws, Request(case, impl, up_to_module, not no_blame))
    lines = [
        f"{result['kernel']}:{row['line'] or '?'}: {'' if row['sure'] else 'a guess: '}"
        f"{row['opcode']} ({row['turn'] or 'once'}): {row['why']}{_called(row)}"
        for row in result["divergences"]
    ]
    blame = result["blame"]
    if blame is not None:
        lines.append(f"to blame: {blame['who']}: {blame['why']}")
        lines += [f"  tried: {one}" for one in blame["tried"]]
    agrees = f"called once on case {case}, the kernel agrees with the golden{refused_otherwise(ws, case)}"
    nothing = agrees if result["agrees"] else "outputs are wrong, but no operation stands out"
    return _tell(result, lines, as_json, nothing, found=bool(result["divergences"] or blame))


@debug.command("precision-debug")
@op_dir_argument()
@_CASE
@_IMPL
@_UP_TO
@click.option("--only", multiple=True, metavar="NAME", help="Only this work-around; may be given again.")
@_AS_JSON
def precision_debug(
    op_dir: Path, case: str | None, impl: Path | None, up_to_module: str | None, only: Sequence[str], as_json: bool
) -> int:
    """Try the check-list of work-arounds on copies of the kernel, each judged again in `sim`; say what each does to the error.

    Exit status: 0 one of them mends or moves the error, 1 none does, 2 the case passes or cannot be judged, 3 no simulator.
    """
    ws, case = _checked(op_dir, case, impl, up_to_module)
    from pypto_op.debug.workarounds import precision_debug as run

    result = run(ws, case, impl=impl, up_to_module=up_to_module, only=only)
    lines = [f"before: {result['before']['status']}: {result['before']['reason']}"]
    lines += [f"{row['name']:22} {row['effect']:15} suspects: {row['means']}" for row in result["tried"]]
    found = bool(result["mended_by"] or result["moved_by"])
    if not found:
        lines.append("none moves the error: go on with `pypto-op debug precision-compare`")
    return _tell(result, lines, as_json, "", found=found)


@debug.command("dump")
@op_dir_argument()
@_CASE
@_IMPL
@_UP_TO
@_AS_JSON
def dump(op_dir: Path, case: str | None, impl: Path | None, up_to_module: str | None, as_json: bool) -> int:
    """Run the kernel of OP_DIR once in `sim` and keep its graphs and tensors in _debug/dumps/, for the commands that read them.

    Exit status: 0 something was dumped, also by a kernel that fails, 2 nothing was, or the request is wrong, 3 no simulator.
    """
    ws, case = _checked(op_dir, case, impl, up_to_module)
    from pypto_op.debug.dumping import dump as run

    result, ended = run(ws, case, impl=impl, up_to_module=up_to_module)
    return _tell(result, [*result["files"], *([f"the kernel failed: {ended}"] if ended else [])], as_json, "", found=True)


@debug.command("pass-error-locator")
@_RUN
@_AS_JSON
def pass_error_locator(run_dir: Path, as_json: bool) -> int:
    """Say what each pass did to the graphs of a run, and which pass failed, made a circle or lost a line.

    RUN_DIR is an output folder of pypto, or one above it, with Pass_* folders (`pypto-op debug dump` makes one).

    Exit status: 0 there is a suspect, 1 there is none, 2 no such folder, 3 the run left no dump of a pass.
    """
    from pypto_op.debug.passes import locate

    result = locate(run_dir)
    lines = [f"{one['pass']} (pass {one['number']}) in {one['graph']}: {one['why']}{_at(one)}" for one in result["suspects"]]
    lines += [f"not read: {one}" for one in result["unread"]]
    shown = result["changes"] if result["suspects"] else result["changes"][:12]
    lines += [f"  {one['pass']:28} {_counts(one['operations'])}   {one['graph']}" for one in shown]
    return _tell(result, lines, as_json, f"{result['passes']} passes, no suspect", found=bool(result["suspects"]))


@debug.command("memory-overlap-detector")
@_RUN
@_AS_JSON
def memory_overlap_detector(run_dir: Path, as_json: bool) -> int:
    """Name tensors of a run that share on-chip memory while both are alive, and cells that two turns of the loops write.

    RUN_DIR is an output folder of pypto, or one above it (`pypto-op debug dump` makes one).

    Exit status: 0 an overlap was found, 1 there is none, 2 no such folder, 3 the run left nothing to read.
    """
    from pypto_op.debug.memory import overlaps

    result = overlaps(run_dir)
    lines = [
        f"{one['memory']} {one['bytes']} in {one['function']}: tensors {one['tensors']}{_at(one)}" for one in result["on_chip"]
    ]
    lines += [
        f"{one['tensor']}: turns ({one['turns'][0]}) and ({one['turns'][1]}) both write "
        f"{one['ranges'][0]} and {one['ranges'][1]}{_at(one)}"
        for one in result["written_twice"]
    ]
    lines += [f"missing: {one}" for one in result["missing"]]
    found = bool(result["on_chip"] or result["written_twice"])
    return _tell(result, lines, as_json, f"{result['leaf_functions']} functions, no overlap", found=found)


@debug.command("machine-workspace")
@_RUN
@click.option("--log", type=_PATH, help="A log with [workspaceSize] lines.")
@_AS_JSON
def machine_workspace(run_dir: Path, log: Path | None, as_json: bool) -> int:
    """Show the memory budget of a run, layer by layer, with the function and lines that need most.

    Exit status: 0 a memory is over its size, 1 none is, 2 no such folder or log, 3 the run left no program.json.
    """
    from pypto_op.debug.memory import workspace

    result = workspace(run_dir, log)
    lines = [
        f"{one['memory']:4} {one['peak_bytes']:>9} of {one['size_bytes']:>7} bytes ({one['share']:.0%})"
        f"  {one['function'] or ''}{_at(one)}"
        for one in result["layers"]
    ]
    lines.append(f"{result['tasks']} tasks")
    lines += [f"log line {one['log_line']}: {one['text']}" for one in result["workspace"]]
    return _tell(result, lines, as_json, "", found=bool(result["over"]))


@debug.command("aicore-error-locator")
@click.option("--log", type=_PATH, required=True, help="The device's log.")
@click.option("--run-dir", type=_PATH, help="The run's output folder, with program.json and dyn_topo.txt.")
@_AS_JSON
def aicore_error_locator(log: Path, run_dir: Path | None, as_json: bool) -> int:
    """Lead from a device's log to the .cce file, the leaf function and the calls in the kernel.

    Exit status: 0 a function of the kernel was found, 1 none was, 2 no such log.
    """
    from pypto_op.debug.aicore import locate

    result = locate(log, run_dir)
    lines = [f"side: {result['side']}; codes: {', '.join(result['codes']) or 'none'}; log lines: {result['log_lines'][:8]}"]
    lines += [f"cce: {one}" for one in result["cce_files"]]
    for one in result["functions"]:
        lines += [f"{call['file']}:{call['line']}: {', '.join(call['opcodes'])}   {one['function']}" for call in one["calls"]]
    lines += [f"missing: {one}" for one in result["missing"]]
    return _tell(result, lines, as_json, "", found=bool(result["functions"]))


@debug.command("host-stacktrace-analyzer")
@click.option("--log", type=_PATH, required=True, help="What the crash printed.")
@click.option("--kernel", type=_PATH, help="The kernel's file; default: any *_impl.py.")
@click.option("--binary", type=_PATH, help="The program, for addresses that name none.")
@_AS_JSON
def host_stacktrace_analyzer(log: Path, kernel: Path | None, binary: Path | None, as_json: bool) -> int:
    """Read the frames of a crash: signal, kernel line, demangled names, source lines where there is debug information.

    Exit status: 0 a frame was found, 1 the log has none, 2 no such log.
    """
    from pypto_op.debug.host_stack import analyse

    _named(kernel, "name the kernel's file, or leave --kernel out")
    _named(binary, "name the program's file, or leave --binary out")
    result = analyse(log, kernel=kernel, binary=binary)
    own = result["kernel_frame"]
    lines = [f"signal: {result['signal'] or 'none named'}; first native function: {result['first_named'] or 'none'}"]
    if own is not None:
        lines.append(f"{own['file']}:{own['line']}: in {own['function']}")
    lines += [f"  {one['function'] or '?'}  {_source(one)}" for one in result["native_frames"]]
    lines += [f"missing: {one}" for one in result["missing"]]
    return _tell(result, lines, as_json, "", found=bool(result["python_frames"] or result["native_frames"]))


@debug.command("environment-setup", context_settings={"ignore_unknown_options": True})
@click.option("--log", type=_PATH, help="What the failing command printed; default: the command's own output.")
@click.option("--idle", is_flag=True, help="Only print the ids of the idle chips.")
@click.option("--memory", type=_PATH, help="OP_DIR whose MEMORY.md gets the one log line of a re-run.")
@_AS_JSON
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def environment_setup(log: Path | None, idle: bool, memory: Path | None, as_json: bool, command: Sequence[str]) -> int:
    """Name the symptoms of the machine in a log, with recipe and check; run COMMAND once more with what mends them.

    Exit status: 0 a symptom was found and, where COMMAND was given, its re-run ended with 0; 1 no symptom was found; 3 it needs
    a person, the re-run failed too, or npu-smi is missing.
    """
    from pypto_op.debug import environment

    if idle:
        chips = environment.idle_chips()
        click.echo(json.dumps(chips) if as_json else " ".join(map(str, chips)))
        return int(ExitCode.OK if chips else ExitCode.FAIL)
    _named(memory and OpWorkspace.at(memory).memory, "give the folder of an operator to --memory, or leave it out")
    result = environment.examine(log, command)
    lines = []
    for one in result["symptoms"]:
        at = f" (line {one['log_line']})" if one["log_line"] else ""
        lines += [f"{one['id']}{at}: {one['recipe']}", f"  check: {one['check']}"]
        lines += [f"  blocked: {one['blocked']}"] if one["blocked"] else []
    rerun = result["rerun"]
    if rerun is not None:
        lines.append(rerun["log_line"])
        if memory is not None:
            _note(memory, rerun)
    lines += [f"note: {note}" for note in result["notes"]]
    code = _tell(result, lines, as_json, "no symptom of the machine in it", found=bool(result["symptoms"]))
    blocked = any(one["blocked"] for one in result["symptoms"])
    left = blocked if rerun is None else rerun["exit"] != 0
    return int(ExitCode.INFRA) if result["symptoms"] and left else code


@debug.command("snapshot-generate")
@click.argument("manifest", type=_PATH)
@click.option("--dry-run", is_flag=True, help="Check everything and write nothing.")
@_AS_JSON
def snapshot_generate(manifest: Path, dry_run: bool, as_json: bool) -> int:
    """Write the probed kernel and run_snapshot_bisect.sh that MANIFEST asks for into _debug/; check that the golden can record.

    Exit status: 0 written, 2 the manifest, a marker pair or the golden does not fit.
    """
    from pypto_op.debug.snapshots import generate

    result = generate(_there(manifest), dry_run=dry_run)
    _checked_result(result, "debug_files")
    return _tell(result, result["files"], as_json, "", found=True)


@debug.command("snapshot-bisect")
@click.option("--manifest", type=_PATH, required=True, help="_debug/snapshot_manifest.yaml.")
@click.option("--modes", help="Where to run, such as sim,npu; default: the manifest's.")
@_AS_JSON
def snapshot_bisect(manifest: Path, modes: str | None, as_json: bool) -> int:
    """Compare each intermediate of MANIFEST iteration by iteration; write _debug/snapshot_report.json.

    Exit status: 0 none drifts, 1 one drifts, 2 kernel or golden do not run, or nothing was compared, 3 no mode can run here.
    """
    from pypto_op.debug.snapshots import bisect

    report = bisect(_there(manifest), _modes(modes))
    lines = []
    for name, row in report["intermediates"].items():
        for mode, told in row["per_mode"].items():
            onset = "" if told["drift_onset_iter"] is None else f"drifts from iteration {told['drift_onset_iter']} on"
            lines.append(f"{name:20} {mode:4} {told['status']:8} {onset}{told['reason']}   kernel line {row['line'] or '?'}")
    if report["first_drift"] is not None:
        lines.append(f"first drift: {report['first_drift']['name']} at iteration {report['first_drift']['iter']}")
    _tell(report, lines, as_json, "", found=True)
    statuses = [told["status"] for row in report["intermediates"].values() for told in row["per_mode"].values()]
    if Status.FAIL in statuses:
        return int(ExitCode.FAIL)
    if Status.ERROR in statuses:
        return int(ExitCode.CONTRACT)
    if Status.PASS in statuses:
        return int(ExitCode.OK)
    return int(ExitCode.INFRA if Status.SKIPPED in statuses else ExitCode.CONTRACT)


def _checked(op_dir: Path, case: str | None, impl: Path | None, up_to_module: str | None) -> tuple[OpWorkspace, str]:
    """Return the operator and the case; refuse what the documents alone show to be wrong, before torch is imported."""
    from pypto_op.judge.cases.precheck import check_request

    ws = OpWorkspace.at(op_dir)
    called = OpWorkspace.of_files(op_dir).name
    if called != ws.name:
        raise ContractError(f"the files are those of {called}", file=op_dir, remedy=f"rename the folder to {called}")
    kernel = impl or (None if up_to_module else ws.impl)
    if kernel is not None and not kernel.is_file():
        raise ContractError("there is no kernel", file=kernel, remedy="name the kernel's file by --impl")
    chosen = case or _first_failure(ws)
    check_request(ws, case=chosen, impl=impl, up_to_module=up_to_module)
    return ws, chosen


def _first_failure(ws: OpWorkspace) -> str:
    from pypto_op.diagnose.sources import first_failure
    from pypto_op.documents.reading import read_json

    case = first_failure(read_json(ws.report) if ws.report.is_file() else None).get("case_id")
    if not case:
        raise ContractError("no case has failed here", file=ws.report, remedy="name one by --case, or verify first")
    return str(case)


def _named(path: Path | None, remedy: str) -> None:
    """Refuse a file that an option names and nobody can read: without it the answer would look like one that looked there."""
    if path is not None:
        check_readable(path, remedy)


def _there(path: Path) -> Path:
    if not path.is_file():
        raise ContractError(
            "no such file", file=path, remedy="see references/intermediate-snapshot-automation.md of pypto-op-verify"
        )
    return path.resolve()


def _modes(text: str | None) -> list[Mode] | None:
    if text is None:
        return None
    try:
        return [Mode(word.strip()) for word in text.split(",")]
    except ValueError as error:
        raise ContractError(f"{error}", remedy="use sim, npu or both") from None


def _note(op_dir: Path, rerun: dict[str, Any]) -> None:
    from pypto_op.documents import memory

    memory.append_row(OpWorkspace.at(op_dir).memory, "Development & debug log", [rerun["log_line"], f"exit {rerun['exit']}", "-"])


def _checked_result(result: dict[str, Any], name: str) -> None:
    from pypto_op.documents import schema

    schema.check(result, name)


def _tell(result: dict[str, Any], lines: Sequence[str], as_json: bool, nothing: str, *, found: bool) -> int:
    """Print the result; return 0 where something was found, else 1."""
    if as_json:
        click.echo(json.dumps(result, indent=2, allow_nan=False, ensure_ascii=False))
    else:
        for line in [*([nothing] if nothing and not found else []), *lines]:
            click.echo(line)
    return int(ExitCode.OK if found else ExitCode.FAIL)


def _called(row: dict[str, Any]) -> str:
    return f"; called from line {', '.join(map(str, row['called_from']))}" if row["called_from"] else ""


def _at(row: dict[str, Any]) -> str:
    return f"; kernel lines {', '.join(map(str, row['lines']))}" if row["lines"] else ""


def _counts(changes: dict[str, int]) -> str:
    return ", ".join(f"{opcode} {count:+d}" for opcode, count in changes.items())


def _source(frame: dict[str, Any]) -> str:
    if frame["file"]:
        return f"{frame['file']}:{frame['line']}"
    return " ".join(str(one) for one in (frame["library"], frame["offset"] or frame["address"]) if one)
