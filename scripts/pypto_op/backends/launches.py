"""What pypto's cost model writes of one launch: its tasks, the cores that run them, and what each task waits for.

Times are microseconds of the model, from cycles by the divisor 1800 (1.8 GHz) that pypto hands to its own drawing script.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from pypto_op.errors import ContractError

CYCLES_PER_US = 1800.0
TASK_TIMES = "CostModelSimulationOutput/_simulate.swim.json"
TOPOLOGY = "dyn_topo.txt"
LARGEST_FILE = 512 * 1024 * 1024
Name = tuple[int, int]
_STEP_BITS = 20
"""pypto numbers the tasks of one step in so many lower bits."""


@dataclass(frozen=True)
class Task:
    """One task."""

    name: Name  # sequence number and id
    core: str  # such as "AIC 3"
    # start, end: microseconds since the launch's first task
    start: float
    end: float
    leaf: str = ""  # hash of the leaf function that it runs; "" where the topology does not say

    @property
    def step(self) -> tuple[int, int]:
        """Which instance of which loop's body it belongs to: sequence number, and the upper bits of its id."""
        return self.name[0], self.name[1] >> _STEP_BITS

    @property
    def seconds(self) -> float:
        """How long it runs, in microseconds."""
        return self.end - self.start


@dataclass
class Launch:
    """One launch as the cost model saw it: tasks on cores, and what each waits for."""

    tasks: list[Task]  # in order of start
    cores: list[str]  # every AI core of the model, busy or not
    successors: Mapping[Name, Sequence[Name]] = field(default_factory=dict)  # task -> the tasks that wait for it

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

    def waits(self) -> Iterator[tuple[Task, float, float]]:
        """Yield each task, from when its core is free for it, and from when the scheduler alone keeps it waiting."""
        for tasks in self.lanes.values():
            free = 0.0
            for task in tasks:
                needed = [self.by_name[name].end for name in self.predecessors.get(task.name, ()) if name in self.by_name]
                yield task, free, min(max([free, *needed]), task.start)
                free = task.end


def read_launch(folder: Path) -> Launch:
    """Read one launch.

    Raises:
        ContractError: the folder holds no task times, or they are damaged or too large.
    """
    successors, leaf_of = topology(folder / TOPOLOGY)
    try:
        path = folder / TASK_TIMES
        if path.is_symlink() or path.stat().st_size > LARGEST_FILE:
            raise OSError
        cores = [core for core in json.loads(path.read_text(encoding="utf-8")) if str(core["coreType"]).startswith("AI")]
        rows = [(_name_of(core), task) for core in cores if core["coreType"].startswith(("AIC", "AIV")) for task in core["tasks"]]
        first = min((task["execStart"] for _, task in rows), default=0)
        tasks = []
        for core, task in rows:
            if task["execEnd"] < task["execStart"]:
                continue
            name = (int(task.get("seqNo", 0)), int(task["taskId"]))
            start, end = ((task[key] - first) / CYCLES_PER_US for key in ("execStart", "execEnd"))
            tasks.append(Task(name, core, start, end, leaf_of.get(name, "")))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ContractError(
            f"holds no task times ({type(error).__name__})", file=folder, remedy="time the kernel again"
        ) from None
    return Launch(sorted(tasks, key=lambda task: task.start), list(dict.fromkeys(map(_name_of, cores))), successors)


def _name_of(core: Mapping[str, Any]) -> str:
    return f"{core['coreType'][:3]} {core['blockIdx']}"


def topology(path: Path) -> tuple[dict[Name, list[Name]], dict[Name, str]]:
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
