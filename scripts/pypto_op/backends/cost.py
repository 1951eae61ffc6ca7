"""Figures of pypto's cost model, computed from the task times that it writes.

Source: `CostModelSimulationOutput/_simulate.swim.json` (per core: tasks with their first and last cycle) and
`dyn_topo.txt` (successors of each task). Cycles become microseconds by the divisor 1800 (1.8 GHz) that pypto hands
to its own drawing script. The definitions follow that script, so the figures agree with what it prints:

- end to end = last end - first start, over the AI cores;
- utilisation = sum of task times / (number of AI cores * end to end);
- a task waits for the scheduler from the moment its core is free and its predecessors are done until it starts;
- a core waits for predecessors the rest of the time that it is idle between the first start and its own last end.
"""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

CYCLES_PER_US = 1800.0

TASK_TIMES = "CostModelSimulationOutput/_simulate.swim.json"
TOPOLOGY = "dyn_topo.txt"
PROGRAM = "program.json"
_LARGEST_FILE = 512 * 1024 * 1024


@dataclass(frozen=True)
class _Task:
    name: tuple[int, int]  # sequence number, task id
    start: float  # microseconds
    end: float


def read_cost(pypto_dir: Path, first: int | None = None) -> dict[str, float | int] | None:
    """Return the figures of the launches of one case, added up; None when the cost model left none.

    Args:
        pypto_dir: where pypto left a folder per launch; their names sort in the order of time.
        first: only so many launches: those of the call itself, not of the checks that call the wrapper once more.

    Keys: `launches`, `end_to_end_us` (sum), `utilisation` and `bubble_ratio` (0 to 1, weighted by time), `tasks`,
    `cores` (AI cores of the model), `cores_used` (most of any launch), `wait_schedule_us`, `wait_predecessor_us`.
    """
    launches = []
    for output in sorted(pypto_dir.glob("output_*")):
        figures = _read_launch(output)
        if figures is not None:
            launches.append(figures)
    launches = launches[:first]
    if not launches:
        return None
    total = sum(float(figures["end_to_end_us"]) for figures in launches)

    def added(key: str) -> float:
        return sum(float(figures[key]) for figures in launches)

    def weighted(key: str) -> float:
        return sum(figures[key] * figures["end_to_end_us"] for figures in launches) / total if total else 0.0

    return {
        "launches": len(launches),
        "end_to_end_us": round(total, 4),
        "utilisation": round(weighted("utilisation"), 6),
        "bubble_ratio": round(weighted("bubble_ratio"), 6),
        "tasks": int(added("tasks")),
        "cores": max(int(figures["cores"]) for figures in launches),
        "cores_used": max(int(figures["cores_used"]) for figures in launches),
        "wait_schedule_us": round(added("wait_schedule_us"), 4),
        "wait_predecessor_us": round(added("wait_predecessor_us"), 4),
    }


def keep_launches(pypto_dir: Path, folder: Path, first: int) -> None:
    """Copy what the cost model wrote of the launches of one case, for whoever draws it: `folder`/<call>/<launch>/.

    Args:
        pypto_dir: as for `read_cost`.
        folder: where to; each call gets the next number.
        first: only so many launches.
    """
    call = folder / f"{len(list(folder.glob('*'))):03}"
    outputs = [output for output in sorted(pypto_dir.glob("output_*")) if (output / TASK_TIMES).is_file()]
    for number, output in enumerate(outputs[:first]):
        target = call / f"{number:03}"
        for name in (TASK_TIMES, TOPOLOGY, PROGRAM):
            source = output / name
            if source.is_file() and not source.is_symlink() and source.stat().st_size <= _LARGEST_FILE:
                (target / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, target / name)


def _read_launch(output: Path) -> dict[str, float | int] | None:
    path = output / TASK_TIMES
    try:
        if path.is_symlink() or path.stat().st_size > _LARGEST_FILE:
            return None
        cores = json.loads(path.read_text(encoding="utf-8"))
        lanes = [_tasks(core) for core in cores if str(core.get("coreType", "")).startswith(("AIC", "AIV"))]
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None
    if not any(lanes):
        return None
    return _figures(lanes, _predecessors(output / TOPOLOGY))


def _tasks(core: dict[str, list[dict[str, int]]]) -> list[_Task]:
    return [
        _Task(
            (int(task.get("seqNo", 0)), int(task["taskId"])), task["execStart"] / CYCLES_PER_US, task["execEnd"] / CYCLES_PER_US
        )
        for task in core["tasks"]
        if task["execEnd"] >= task["execStart"]
    ]


def _predecessors(path: Path) -> dict[tuple[int, int], list[tuple[int, int]]]:
    """Return task to predecessors; the file names the successors of each task in its last columns."""
    found: dict[tuple[int, int], list[tuple[int, int]]] = {}
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = csv.reader(file)
            first = next(rows, []).index("successors")
            for row in rows:
                sequence, task = int(row[0]), int(row[1])
                for successor in row[first:]:
                    if successor:
                        found.setdefault((sequence, int(successor)), []).append((sequence, task))
    except (OSError, ValueError, IndexError):
        return {}
    return found


def _figures(lanes: list[list[_Task]], predecessors: dict[tuple[int, int], list[tuple[int, int]]]) -> dict[str, float | int]:
    tasks = [task for lane in lanes for task in lane]
    begin, end = min(task.start for task in tasks), max(task.end for task in tasks)
    duration = end - begin
    ends = {task.name: task.end for task in tasks}
    schedule = predecessor = 0.0
    for lane in lanes:
        scheduling, idle = _waits(lane, begin, ends, predecessors)
        schedule += scheduling
        predecessor += idle - scheduling
    busy = sum(task.end - task.start for task in tasks)
    used = sum(1 for lane in lanes if lane)
    return {
        "end_to_end_us": duration,
        "utilisation": busy / (len(lanes) * duration) if duration else 0.0,
        "bubble_ratio": 1.0 - busy / (used * duration) if duration else 0.0,
        "tasks": len(tasks),
        "cores": len(lanes),
        "cores_used": used,
        "wait_schedule_us": schedule,
        "wait_predecessor_us": predecessor,
    }


def _waits(
    lane: Iterable[_Task],
    begin: float,
    ends: dict[tuple[int, int], float],
    predecessors: dict[tuple[int, int], list[tuple[int, int]]],
) -> tuple[float, float]:
    """Return for one core: time that ready tasks waited to be scheduled, and all its idle time between tasks."""
    free, scheduling, idle = begin, 0.0, 0.0
    for task in lane:
        ready = max((ends.get(name, begin) for name in predecessors.get(task.name, ())), default=begin)
        scheduling += task.start - max(free, ready)
        idle += task.start - free
        free = task.end
    return scheduling, idle
