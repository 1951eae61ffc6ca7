"""`pypto-op debug memory-overlap-detector` and `machine-workspace`: what lies where, from the files that a run leaves."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from pypto_op.debug import dump_files
from pypto_op.debug.run_files import MEMORIES, Graph, Tensor, arguments_of, leaves, output_folder, tasks
from pypto_op.diagnose.kernel_loops import KernelLoops
from pypto_op.diagnose.readable import lines_of
from pypto_op.documents import schema
from pypto_op.errors import PyptoOpError
from pypto_op.hardware import CHIP

_SIZES = {"UB": CHIP.ub, "L1": CHIP.l1, "L0A": CHIP.l0a, "L0B": CHIP.l0b, "L0C": CHIP.l0c}
_WORKSPACE = re.compile(r"\[workspaceSize\]\s*(?P<text>.*)")
_PART = re.compile(r"(?P<name>[A-Za-z][\w ]*?)\s*[:=]\s*(?P<bytes>\d+)")
_LONGEST_LINE = 64 * 1024
_MOST = 50


def overlaps(path: Path) -> dict[str, Any]:
    """Return tensors that share memory while both are alive, and writes of two turns to the same cells.

    Reads `program.json` (on-chip) and, where `sim` dumped its tensors, `verify_*` (writes to a tensor in global memory);
    schemas/debug_memory_overlap_detector.schema.json.

    Raises:
        ContractError: no such folder.
        InfraError: neither of the two was left.
    """
    folder = output_folder(path)
    missing, chip, writes, looked = [], [], [], 0
    try:
        for graph in leaves(folder):
            looked += 1
            chip += list(_on_chip(graph))
    except PyptoOpError as error:
        missing.append(error.one_line())
    try:
        writes = _written_twice(folder.parent, arguments_of(folder))
    except PyptoOpError as error:
        missing.append(error.one_line())
        if len(missing) == 2:
            raise
    result = {
        "schema_version": 1,
        "folder": str(folder),
        "leaf_functions": looked,
        "on_chip": chip[:_MOST],
        "written_twice": writes[:_MOST],
        "missing": missing,
    }
    schema.check(result, "debug_memory_overlap_detector")
    return result


def workspace(path: Path, log: Path | None = None) -> dict[str, Any]:
    """Return the budget of a run, memory by memory, and what the framework said of its workspace.

    Args:
        log: a log with `[workspaceSize]` lines; optional.

    Raises:
        ContractError: no such folder or log.
        InfraError: the run left no `program.json`.
    """
    folder = output_folder(path)
    layers, over = [], []
    for name in MEMORIES:
        rows = [(_peak(graph, name), graph) for graph in leaves(folder)]
        peak, graph = max(rows, key=lambda row: row[0], default=(0, None))
        lines = _lines_of(graph, name) if graph is not None and peak else []
        if peak > _SIZES[name]:
            over.append(name)
        layers.append(
            {
                "memory": name,
                "peak_bytes": peak,
                "size_bytes": _SIZES[name],
                "share": round(peak / _SIZES[name], 4),
                "function": graph.name if graph is not None and peak else None,
                "lines": lines[:12],
            }
        )
    result = {
        "schema_version": 1,
        "folder": str(folder),
        "layers": layers,
        "over": over,
        "tasks": len(tasks(folder)),
        "workspace": [] if log is None else _said(log),
    }
    schema.check(result, "debug_machine_workspace")
    return result


def _on_chip(graph: Graph) -> Iterable[dict[str, Any]]:
    blocks: dict[tuple[str, int], list[Tensor]] = {}
    for tensor in graph.tensors.values():
        if tensor.memory in MEMORIES and tensor.end > tensor.start:
            blocks.setdefault((tensor.memory, tensor.block), []).append(tensor)
    alive = []
    for (memory, _), tensors in blocks.items():
        born = [one.born for one in tensors if one.born >= 0]
        if born:
            dead = max(one.dead for one in tensors)
            alive.append((memory, min(one.start for one in tensors), max(one.end for one in tensors), min(born), dead, tensors))
    alive.sort(key=lambda one: (one[0], one[1]))
    for position, one in enumerate(alive):
        for two in alive[position + 1 :]:
            if two[0] != one[0] or two[1] >= one[2]:
                break
            if max(one[3], two[3]) < min(one[4], two[4]):
                yield {
                    "memory": one[0],
                    "function": graph.name,
                    "bytes": [max(one[1], two[1]), min(one[2], two[2])],
                    "tensors": [one[5][0].magic, two[5][0].magic],
                    "lines": sorted({*_lines_with(graph, one[5]), *_lines_with(graph, two[5])}),
                }


def _written_twice(folder: Path, arguments: set[str]) -> list[dict[str, Any]]:
    """Return pairs of writes of different turns to the same cells of an argument of the kernel, from the dumps of `sim`.

    A state is written in each turn on purpose, and is no argument.
    """
    steps = dump_files.read_steps(folder)
    lines = dump_files.lines_of_graphs(folder)
    by_number = {step.number: step for step in steps}
    groups: dict[str, list[tuple[dump_files.Step, list[tuple[int, int]]]]] = {}
    for step in steps:
        parent = by_number.get(max(step.parents, default=0))
        if step.opcode != "ASSEMBLE" or step.symbol not in arguments or parent is None:
            continue
        if len(step.offset) == len(parent.valid) == len(step.valid) and parent.valid != step.valid:
            ranges = [(at, at + size) for at, size in zip(step.offset, parent.valid, strict=True)]
            groups.setdefault(step.symbol, []).append((step, ranges))
    found = []
    for name, writes in groups.items():
        indices = _moving(step for step, _ in writes)
        for position, (one, ranges) in enumerate(writes):
            for two, others in writes[position + 1 :]:
                if one.loops != two.loops and all(max(a, c) < min(b, d) for (a, b), (c, d) in zip(ranges, others, strict=True)):
                    found.append(
                        {
                            "tensor": name,
                            "turns": [_turn(one, indices), _turn(two, indices)],
                            "lines": _lines_behind((one, two), by_number, lines),
                            "ranges": [[list(pair) for pair in ranges], [list(pair) for pair in others]],
                        }
                    )
                    if len(found) >= _MOST:
                        return found
    return found


def _moving(writes: Iterable[dump_files.Step]) -> set[str]:
    """Return the indices of the loops that hold these writes: pypto tells the last turn of loops that have ended, too."""
    seen: dict[str, set[int]] = {}
    orders: list[tuple[str, ...]] = []
    for step in writes:
        orders.append(tuple(name for name, _ in step.loops))
        for name, value in step.loops:
            seen.setdefault(name, set()).add(value)
    return {name for name, values in seen.items() if len(values) > 1 or all(order[:1] == (name,) for order in orders)}


def _turn(step: dump_files.Step, indices: set[str]) -> str:
    shown = [f"{name}={value}" for name, value in reversed(step.loops) if name in indices and not name.startswith("loop_idx_")]
    return ", ".join(shown) or step.turn


def _lines_behind(
    writes: Iterable[dump_files.Step], by_number: dict[int, dump_files.Step], lines: dict[tuple[str, int], tuple[Path, int]]
) -> list[int]:
    """Return the lines of writes, which pypto records without a line: by the kernel's text, else the line of what is written."""
    found: set[int] = set()
    for write in writes:
        step: dump_files.Step | None = write
        while step is not None and (step.function, step.magic) not in lines:
            step = by_number.get(max(step.parents, default=0))
        if step is not None:
            file, line = lines[step.function, step.magic]
            found.update(_writes_in(file, write) or [line])
    return sorted(found)


def _writes_in(file: Path, write: dump_files.Step) -> list[int]:
    with suppress(OSError, ValueError, SyntaxError):  # the file may have moved on since the run
        return KernelLoops(file.read_text(encoding="utf-8")).writes_of_graph(write.function, write.symbol)
    return []


def _peak(graph: Graph, memory: str) -> int:
    return max((tensor.end for tensor in graph.tensors.values() if tensor.memory == memory), default=0)


def _lines_of(graph: Graph, memory: str) -> list[int]:
    return _lines_with(graph, [tensor for tensor in graph.tensors.values() if tensor.memory == memory])


def _lines_with(graph: Graph, tensors: list[Tensor]) -> list[int]:
    wanted = {tensor.magic for tensor in tensors}
    return sorted({one.line for one in graph.operations if one.line and wanted & {*one.inputs, *one.outputs}})


def _said(log: Path) -> list[dict[str, Any]]:
    """Return the parts that `[workspaceSize]` lines name, in bytes; streams, since a device's log can be a gigabyte."""
    found: list[dict[str, Any]] = []
    for number, line in enumerate(lines_of(log, _LONGEST_LINE), 1):
        match = _WORKSPACE.search(line)
        if match and len(found) < _MOST:
            parts = {part["name"].strip(): int(part["bytes"]) for part in _PART.finditer(match["text"])}
            found.append({"log_line": number, "parts": parts, "text": match["text"].strip()[:300]})
    return found
