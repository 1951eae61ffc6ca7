"""One launch as the cost model saw it: tasks on cores, what each waits for, and which lines of the kernel they come from.

Read from what a `sim` run leaves (`backends.cost.keep_launches`). Times are microseconds of the model.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from pypto_op.backends.cost import CYCLES_PER_US, PROGRAM, TASK_TIMES, TOPOLOGY
from pypto_op.diagnose.log_text import of_a_package
from pypto_op.errors import ContractError

Name = tuple[int, int]
_STEP_BITS = 20
"""pypto numbers the tasks of one step in so many lower bits."""
_LOOP = re.compile(r"TENSOR_(?P<name>\w+?)_Unroll(?P<factor>\d+)")
_MOVES = frozenset({"COPY_IN", "COPY_OUT", "L1_TO_L0A", "L1_TO_L0B", "L1_COPY_IN", "L0C_COPY_OUT", "UB_COPY_IN", "UB_COPY_OUT"})


@dataclass(frozen=True)
class Task:
    """One task.

    Attributes:
        name: sequence number and id.
        core: such as "AIC 3".
        start, end: microseconds since the launch's first task.
        leaf: hash of the leaf function that it runs; "" where the topology does not say.
    """

    name: Name
    core: str
    start: float
    end: float
    leaf: str = ""

    @property
    def step(self) -> tuple[int, int]:
        """Which instance of which loop's body it belongs to: sequence number, and the upper bits of its id."""
        return self.name[0], self.name[1] >> _STEP_BITS

    @property
    def seconds(self) -> float:
        """How long it runs, in microseconds."""
        return self.end - self.start


@dataclass(frozen=True)
class Leaf:
    """A leaf function: what one task does.

    Attributes:
        hash: of the function.
        loop: the innermost `pypto.loop` around it, by its name; "" outside of any.
        file, line: of that loop in the kernel; "" and 0 where the graph does not say.
        unit: "cube" or "vector".
        operations: opcode -> how many, without moves of data.
        moves: how many of its operations move data.
        lines: of the kernel, where the graph names them.
    """

    hash: str
    loop: str
    file: str
    line: int
    unit: str
    operations: Mapping[str, int]
    moves: int
    lines: tuple[int, ...] = ()


@dataclass
class Launch:
    """One launch."""

    tasks: list[Task]  # in order of start
    cores: list[str]  # every AI core of the model, busy or not
    successors: Mapping[Name, Sequence[Name]] = field(default_factory=dict)  # task -> the tasks that wait for it
    leaves: Mapping[str, Leaf] = field(default_factory=dict)  # hash -> what is known of it

    @property
    def us(self) -> float:
        """From the first start to the last end."""
        return max((task.end for task in self.tasks), default=0.0)

    @cached_property
    def by_name(self) -> dict[Name, Task]:
        """Tasks by name."""
        return {task.name: task for task in self.tasks}

    @cached_property
    def predecessors(self) -> dict[Name, list[Name]]:
        """Task -> the tasks that it waits for."""
        found: dict[Name, list[Name]] = {}
        for name, later in self.successors.items():
            for one in later:
                found.setdefault(one, []).append(name)
        return found

    @cached_property
    def lanes(self) -> dict[str, list[Task]]:
        """Core -> its tasks in order of start; cores without any too."""
        found: dict[str, list[Task]] = {core: [] for core in self.cores}
        for task in self.tasks:
            found[task.core].append(task)
        return found


def read_launch(folder: Path) -> Launch:
    """Read one launch.

    Raises:
        ContractError: the folder holds no task times, or they are damaged.
    """
    try:
        cores = json.loads((folder / TASK_TIMES).read_text(encoding="utf-8"))
        rows = [
            (f"{core['coreType'][:3]} {core['blockIdx']}", task)
            for core in cores
            if str(core.get("coreType", "")).startswith(("AIC", "AIV"))
            for task in core["tasks"]
        ]
        names = [f"{core['coreType'][:3]} {core['blockIdx']}" for core in cores if str(core["coreType"]).startswith("AI")]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ContractError(
            f"holds no task times ({type(error).__name__})", file=folder, remedy="time the kernel again"
        ) from None
    successors, leaf_of = _topology(folder / TOPOLOGY)
    first = min((task["execStart"] for _, task in rows), default=0)
    tasks = []
    for core, task in rows:
        name = (int(task.get("seqNo", 0)), int(task["taskId"]))
        start, end = ((task[key] - first) / CYCLES_PER_US for key in ("execStart", "execEnd"))
        tasks.append(Task(name, core, start, end, leaf_of.get(name, "")))
    return Launch(sorted(tasks, key=lambda task: task.start), list(dict.fromkeys(names)), successors, _leaves(folder / PROGRAM))


def read_launches(folder: Path) -> list[Launch]:
    """Return the launches of one call, in order."""
    return [read_launch(one) for one in sorted(folder.iterdir()) if one.is_dir()]


def _topology(path: Path) -> tuple[dict[Name, list[Name]], dict[Name, str]]:
    """Return what waits for each task, and each task's leaf; the file names successors in its last columns."""
    successors: dict[Name, list[Name]] = {}
    leaves: dict[Name, str] = {}
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = csv.reader(file)
            heads = next(rows, [])
            first, leaf = heads.index("successors"), heads.index("leafHash")
            for row in rows:
                name = (int(row[0]), int(row[1]))
                leaves[name] = row[leaf]
                successors[name] = [(name[0], int(one)) for one in row[first:] if one]
    except (OSError, ValueError, IndexError):
        return {}, {}
    return successors, leaves


def _leaves(path: Path) -> dict[str, Leaf]:
    try:
        functions = json.loads(path.read_text(encoding="utf-8"))["functions"]
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    placed = {str(one.get("rawname")): one for one in functions if one.get("file") and one.get("line")}
    return {leaf.hash: leaf for leaf in _read_leaves(functions, placed)}


def _read_leaves(functions: Sequence[Mapping[str, Any]], placed: Mapping[str, Mapping[str, Any]]) -> Iterator[Leaf]:
    for function in functions:
        name = str(function.get("rawname", ""))
        if "_leaf" not in name:
            continue
        found = _LOOP.match(name)
        at = placed.get(found.group(0), {}) if found else {}
        counts: dict[str, int] = {}
        moves, cube, lines = 0, False, set()
        for operation in function.get("operations", ()):
            opcode = str(operation.get("opcode", ""))
            cube = cube or bool((operation.get("op_attr") or {}).get("IS_CUBE"))
            if operation.get("line") and not of_a_package(str(operation.get("file", ""))):
                lines.add(int(operation["line"]))
            if "COPY" in opcode or opcode in _MOVES or "_TO_" in opcode:
                moves += 1
            elif "SYNC" not in opcode and "BAR" not in opcode and "ALLOC" not in opcode:
                counts[opcode] = counts.get(opcode, 0) + 1
        yield Leaf(
            hash=str(function.get("hash", "")),
            loop=found["name"] if found else "",
            file=str(at.get("file", "")),
            line=int(at.get("line", 0)),
            unit="cube" if cube else "vector",
            operations=counts,
            moves=moves,
            lines=tuple(sorted(lines)),
        )
