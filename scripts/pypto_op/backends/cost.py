"""Figures of pypto's cost model, computed from the task times that it writes.

Source: `CostModelSimulationOutput/_simulate.swim.json` (per core: tasks with their first and last cycle) and
`dyn_topo.txt` (successors of each task). The definitions follow pypto's own drawing script, so the figures agree with
what it prints:

- end to end = last end - first start, over the AI cores;
- utilisation = sum of task times / (number of AI cores * end to end);
- a task waits for the scheduler from the moment its core is free and its predecessors are done until it starts;
- a core waits for predecessors the rest of the time that it is idle between the first start and its own last end.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from pypto_op.backends.launches import LARGEST_FILE, TASK_TIMES, TOPOLOGY, read_launch
from pypto_op.errors import ContractError

PROGRAM = "program.json"


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
            if source.is_file() and not source.is_symlink() and source.stat().st_size <= LARGEST_FILE:
                (target / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, target / name)


def _read_launch(output: Path) -> dict[str, float | int] | None:
    try:
        launch = read_launch(output)
    except ContractError:
        return None
    if not launch.tasks:
        return None
    busy, used = sum(task.seconds for task in launch.tasks), sum(1 for tasks in launch.lanes.values() if tasks)
    waits = [(task.start, free, ready) for task, free, ready in launch.waits()]
    return {
        "end_to_end_us": launch.us,
        "utilisation": busy / (len(launch.cores) * launch.us) if launch.us else 0.0,
        "bubble_ratio": 1.0 - busy / (used * launch.us) if launch.us else 0.0,
        "tasks": len(launch.tasks),
        "cores": len(launch.cores),
        "cores_used": used,
        "wait_schedule_us": sum(start - ready for start, _, ready in waits),
        "wait_predecessor_us": sum(ready - free for _, free, ready in waits),
    }
