"""`pypto-op debug aicore-error-locator`: from a device's log to `.cce` file, leaf function and call in the kernel."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from pypto_op.debug.run_files import Graph, leaves, output_folder, tasks
from pypto_op.diagnose import credible
from pypto_op.diagnose.readable import telling_lines
from pypto_op.documents import schema
from pypto_op.errors import PyptoOpError, no_folder

_CCE = re.compile(r"[\w./+-]+\.cce\b")
_HASH = re.compile(r"(?<!\d)\d{15,20}(?!\d)")
_TASK = re.compile(r"\btask_?id\s*[=:]?\s*(\d+)", re.IGNORECASE)
_CODE = re.compile(r"\b(5070\d\d|107\d{3}|E[A-Z0-9]\d{4}|F\d{5})\b|errcode:?\s*\(?(0x[0-9a-f]+|\d+)", re.IGNORECASE)
_KERNEL = re.compile(
    r"aic(?:ore)?[ _]error|errorStr: |MTE instruction|(?:aicore|vector core|aivec\w*) (?:kernel )?(?:exception|execut\w+ fail)|"
    r"vec(?:tor)?[ _](?:core[ _])?(?:error|exception)|core exception|mte error|ub (?:address|addr)",
    re.I,
)
_SCHEDULER = re.compile(r"aicpu|stitch|task ?timeout|scheduler", re.IGNORECASE)
_MOST = 20
_LONGEST_LINE = 4000


def locate(log: Path, run: Path | None) -> dict[str, Any]:
    """Read a device's log, of a long one the telling lines, and name the leaf functions and kernel lines.

    Args:
        run: the run's output folder, with `program.json` and `dyn_topo.txt`; None: only what the log itself tells.

    Raises:
        ContractError: there is no such log, or no such folder.
    """
    if run is not None and not run.is_dir():
        raise no_folder(run, "name the run's output folder, or leave --run-dir out")
    seen = _read(log)
    missing, found = list(seen["notes"]), []
    if run is None:
        missing.append("no run folder was named: the kernel's lines stand in its program.json")
    else:
        try:
            folder = output_folder(run)
            found = _named(seen, leaves(folder), tasks(folder))
        except PyptoOpError as error:
            missing.append(error.one_line())
    side = "kernel" if seen["cce"] or seen["kernel"] else "scheduler" if seen["scheduler"] else "unknown"
    result = {
        "schema_version": 1,
        "side": side,
        "codes": sorted(seen["codes"]),
        "log_lines": seen["lines"][:_MOST],
        "cce_files": sorted(seen["cce"]),
        "functions": found,
        "missing": missing,
    }
    schema.check(result, "debug_aicore_error_locator")
    return result


def _read(log: Path) -> dict[str, Any]:
    lines, notes = telling_lines(log)
    seen: dict[str, Any] = {"codes": set(), "cce": set(), "hashes": set(), "tasks": set(), "lines": [], "notes": notes}
    seen |= {"kernel": False, "scheduler": False}
    for number, line in lines:
        _note(seen, number, line[:_LONGEST_LINE])
    return seen


def _note(seen: dict[str, Any], number: int, line: str) -> None:
    cce = _CCE.findall(line) if ".cce" in line else []
    kernel, scheduler = bool(_KERNEL.search(line)), bool(_SCHEDULER.search(line))
    loud = bool(credible.words_of("loud_level").search(line[:200]))
    codes = [found[1] or found[2] for found in _CODE.finditer(line) if loud or credible.counts(line, found)]
    if not (cce or kernel or codes or (scheduler and "error" in line.lower())):
        return
    seen["cce"].update(cce[:_MOST])
    seen["hashes"].update(_HASH.findall(line))
    seen["tasks"].update(int(one) for one in _TASK.findall(line))
    seen["codes"].update(codes)
    seen["kernel"] |= kernel
    seen["scheduler"] |= scheduler
    seen["lines"].append(number)


def _named(seen: dict[str, Any], functions: list[Graph], by_task: dict[int, str]) -> list[dict[str, Any]]:
    """Return the leaf functions whose hash stands in a file's name or in the log, or whose task does."""
    hashes = {*seen["hashes"], *(one for name in seen["cce"] for one in _HASH.findall(Path(name).name))}
    hashes |= {by_task[task] for task in seen["tasks"] if task in by_task}
    names = {Path(name).stem for name in seen["cce"]}
    found = [one for one in functions if one.hash in hashes or any(one.name in name or name == one.name for name in names)]
    return [_row(one) for one in found]


def _row(graph: Graph) -> dict[str, Any]:
    calls: dict[tuple[str, int], list[str]] = {}
    for one in graph.operations:
        if one.line:
            calls.setdefault((Path(one.file).name, one.line), []).append(one.opcode)
    rows = [{"file": file, "line": line, "opcodes": sorted(set(opcodes))} for (file, line), opcodes in sorted(calls.items())]
    return {"function": graph.name, "hash": graph.hash, "calls": rows}
