"""Reads what a run of pypto leaves in its output folder: graphs (`program.json`, `Pass_*`), tasks (`dyn_topo.txt`).

`pypto-op debug dump` makes such a folder in `sim`; on a device TILE_FWK_OUTPUT_DIR names it. Memory codes are the order of
`MemoryType` in libtile_fwk_interface.so of pypto 0.2.0.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any

from pypto_op.backends.launches import TOPOLOGY, topology
from pypto_op.diagnose.log_text import of_a_package
from pypto_op.errors import ContractError, InfraError, no_folder

_AGAIN = "make one by `pypto-op debug dump OP_DIR --case ID`"

MEMORIES = ("UB", "L1", "L0A", "L0B", "L0C")
"""Names of the on-chip memories, by their code."""

LEAF_GRAPH = 3
"""`graphtype` of a function that runs on one core, as one task."""

_DUMP = re.compile(r"(?P<when>Before|After)_(?P<number>\d+)_(?P<name>[A-Za-z0-9]+)_(?P<graph>.+)\.json\Z")


@dataclass(frozen=True)
class Operation:
    """One operation of a graph."""

    magic: int  # its number in the graph
    opcode: str  # for instance "EXP"
    # inputs, outputs: numbers of tensors
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    # file, line: of the kernel, "" and None where pypto inserted it
    file: str
    line: int | None


@dataclass(frozen=True)
class Tensor:
    """One tensor of a graph."""

    magic: int  # its number
    shape: tuple[int, ...]  # its sizes, padded as in memory
    memory: str  # name of the on-chip memory, "DDR", or "" for another
    # start, end: bytes in that memory
    start: int
    end: int
    # born, dead: cycles of the schedule between which it is alive; -1 where none was told
    born: int
    dead: int
    block: int  # number of the memory block; tensors of one block share it on purpose
    symbol: str  # its name, "" for none


class Graph:
    """One function of a graph file."""

    def __init__(self, data: dict[str, Any]) -> None:
        self.name = str(data.get("func_magicname", "?"))
        self.hash = str(data.get("hash", ""))
        self.kind = int(data.get("graphtype", -1))
        self.number = int(data.get("funcmagic", -1))
        self._data = data

    @cached_property
    def operations(self) -> list[Operation]:
        """Its operations, in order."""
        return [
            Operation(
                int(one["opmagic"]),
                str(one["opcode"]),
                tuple(map(int, one.get("ioperands", ()))),
                tuple(map(int, one.get("ooperands", ()))),
                str(one.get("file", "")),
                int(one["line"]) if one.get("line") and not of_a_package(str(one.get("file", ""))) else None,
            )
            for one in self._data.get("operations", ())
        ]

    @cached_property
    def tensors(self) -> dict[int, Tensor]:
        """Its tensors, by number."""
        symbols = {raw["rawmagic"]: str(raw.get("symbol", "")) for raw in self._data.get("rawtensors", ())}
        return {int(one["magic"]): _tensor(one, symbols) for one in self._data.get("tensors", ())}

    def cycle(self) -> list[int]:
        """Return the operations (numbers) of a circle of dependencies, [] where there is none."""
        makers: dict[int, list[int]] = {}
        for one in self.operations:
            for tensor in one.outputs:
                makers.setdefault(tensor, []).append(one.magic)
        before = {one.magic: [m for t in one.inputs for m in makers.get(t, ()) if m != one.magic] for one in self.operations}
        try:
            TopologicalSorter(before).prepare()
        except CycleError as error:
            return list(dict.fromkeys(error.args[1]))
        return []


@dataclass(frozen=True)
class PassDump:
    """One graph file of a pass."""

    # number, name: of the pass
    number: int
    name: str
    graph: str  # the graph's name in the file's name
    when: str  # "Before" or "After"
    path: Path  # the file


def output_folder(path: Path) -> Path:
    """Return the output folder that `path` is, or the newest below it.

    Raises:
        ContractError: there is no such folder, or nothing of pypto's in it.
    """
    if not path.is_dir():
        raise no_folder(path, _AGAIN)
    if (path / TOPOLOGY).is_file() or (path / "program.json").is_file() or any(path.glob("Pass_*")):
        return path
    found = sorted((one for one in path.rglob("output_*") if one.is_dir()), key=lambda one: one.stat().st_mtime)
    if not found:
        raise ContractError("holds nothing that a run of pypto leaves (no output_* folder)", file=path, remedy=_AGAIN)
    return found[-1]


def graphs(path: Path) -> list[Graph]:
    """Return the functions of a graph file.

    Raises:
        InfraError: it is missing or damaged.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        return [Graph(one) for one in data["functions"]]
    except OSError as error:
        raise InfraError(f"cannot be read: {error.strerror}", file=path, remedy=_AGAIN) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InfraError("is no graph of pypto, or is cut short", file=path, remedy=_AGAIN) from error


def leaves(folder: Path) -> list[Graph]:
    """Return the functions that run on cores, from `program.json`.

    Raises:
        InfraError: it is missing or damaged.
    """
    path = folder / "program.json"
    if not path.is_file():
        remedy = "make it by `pypto-op debug dump OP_DIR --case ID`, or by debug_options={'compile_debug_mode': 1} on a device"
        raise InfraError("the run left no program.json", file=folder, remedy=remedy)
    return [graph for graph in graphs(path) if graph.kind == LEAF_GRAPH]


def pass_dumps(folder: Path) -> list[PassDump]:
    """Return the graph files of the passes, in the order of the passes."""
    found = []
    for path in folder.glob("Pass_*/*.json"):
        match = _DUMP.match(path.name)
        if match:
            found.append(PassDump(int(match["number"]), match["name"], match["graph"], match["when"], path))
    first = {one.name: (one.number, min(x.path.stat().st_mtime_ns for x in found if x.name == one.name)) for one in found}
    return sorted(found, key=lambda one: (first[one.name], one.graph, one.when != "Before"))


def tasks(folder: Path) -> dict[int, str]:
    """Return the leaf's hash of each task id, from `dyn_topo.txt`; {} where there is none."""
    return {task: leaf for (_, task), leaf in topology(folder / TOPOLOGY)[1].items()}


def arguments_of(folder: Path) -> set[str]:
    """Return the names of the kernel's arguments with a dynamic axis, as the graphs name them.

    Raises:
        InfraError: the run left no `program.json`.
    """
    try:
        return set(re.findall(r'"ARG_(\w+)"', (folder / "program.json").read_text(encoding="utf-8", errors="replace")))
    except OSError as error:
        raise InfraError(
            "the run left no program.json, which names the kernel's arguments", file=folder, remedy=_AGAIN
        ) from error


def _tensor(one: dict[str, Any], symbols: dict[int, str]) -> Tensor:
    code = int(one.get("mem_type", {}).get("asis", -1))
    memory = MEMORIES[code] if 0 <= code < len(MEMORIES) else "DDR" if code == 15 else ""
    start, end = one.get("mem_range", (0, 0))
    born, dead = one.get("life_range", (-1, -1))
    symbol = symbols.get(one.get("rawtensor", -1), "")
    shape = tuple(map(int, one.get("shape", ())))
    return Tensor(
        int(one["magic"]), shape, memory, int(start), int(end), int(born), int(dead), int(one.get("mem_id", -1)), symbol
    )
