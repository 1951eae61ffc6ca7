"""Where a launch's time goes: usage of each core, gaps and what they wait for, the critical path, leaves, vector chains."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from pypto_op.backends.launches import Name, Task
from pypto_op.perf.launches import Launch, Leaf

_ALMOST = 1e-9


@dataclass(frozen=True)
class Usage:
    """How one kind of core is used."""

    kind: str  # "AIC" or "AIV"
    cores: int  # of the model
    used: int  # with at least one task
    busy: float  # share of used cores' time in which they run tasks
    utilisation: float  # share of all cores' time
    balance: float  # mean busy time of the used cores over the longest
    tasks: int  # how many
    longest_us: float  # busy time of the busiest core


@dataclass(frozen=True)
class Gap:
    """Why a core does nothing before a task."""

    core: str  # it
    # start, end: microseconds
    start: float
    end: float
    waits_for: str  # "a task" that must end first, or "the scheduler"
    leaf: str  # of the task that comes after it


@dataclass(frozen=True)
class LeafTime:
    """What one leaf function costs in a launch."""

    leaf: Leaf | None  # it; None where the graph does not know it
    hash: str  # of it
    tasks: int  # how many tasks run it
    total_us: float  # of all of them
    mean_us: float  # of one
    share: float  # of all busy time
    critical: float  # share of the critical path


@dataclass(frozen=True)
class Chain:
    """Vector tasks, one after another, that nothing else stands between: they could be one task."""

    leaves: tuple[str, ...]  # hashes, in order
    count: int  # how many such chains the launch has
    waits_us: float  # time between their tasks, of all chains


@dataclass(frozen=True)
class Serial:
    """Steps of one loop on the critical path, each of which needs the result of the one before."""

    loop: str  # its name
    steps: int  # how many of them
    us: float  # from the first one's start to the last one's end


@dataclass(frozen=True)
class Analysis:
    """Everything that is said of a launch."""

    us: float
    usage: tuple[Usage, ...]
    waits_task_us: float
    waits_scheduler_us: float
    gaps: tuple[Gap, ...]
    path: tuple[Task, ...]
    path_busy: float
    serial: Serial | None
    leaves: tuple[LeafTime, ...]
    chains: tuple[Chain, ...]


def analyse(launch: Launch) -> Analysis:
    """Return what a launch's tasks tell."""
    gaps = _gaps(launch)
    path = _critical_path(launch)
    busy = sum(task.seconds for task in path)
    return Analysis(
        us=launch.us,
        usage=tuple(usage for kind in ("AIC", "AIV") if (usage := _usage(launch, kind)).cores),
        waits_task_us=sum(gap.end - gap.start for gap in gaps if gap.waits_for == "a task"),
        waits_scheduler_us=sum(gap.end - gap.start for gap in gaps if gap.waits_for == "the scheduler"),
        gaps=tuple(sorted(gaps, key=lambda gap: gap.start - gap.end)),
        path=tuple(path),
        path_busy=busy / launch.us if launch.us else 0.0,
        serial=_serial(launch, path),
        leaves=tuple(_leaf_times(launch, path)),
        chains=tuple(_chains(launch)),
    )


def _usage(launch: Launch, kind: str) -> Usage:
    lanes = [tasks for core, tasks in launch.lanes.items() if core.startswith(kind)]
    busy = [float(sum(task.seconds for task in tasks)) for tasks in lanes if tasks]
    total, span, longest = sum(busy), launch.us, max(busy, default=0.0)
    return Usage(
        kind=kind,
        cores=len(lanes),
        used=len(busy),
        busy=total / (len(busy) * span) if busy and span else 0.0,
        utilisation=total / (len(lanes) * span) if lanes and span else 0.0,
        balance=statistics.fmean(busy) / longest if longest else 0.0,
        tasks=sum(map(len, lanes)),
        longest_us=longest,
    )


def _gaps(launch: Launch) -> list[Gap]:
    """Return the time before each task in which its core is free: first for predecessors, then for the scheduler."""
    found = []
    for task, free, ready in launch.waits():
        if ready - free > _ALMOST:
            found.append(Gap(task.core, free, ready, "a task", task.leaf))
        if task.start - ready > _ALMOST:
            found.append(Gap(task.core, ready, task.start, "the scheduler", task.leaf))
    return found


def _critical_path(launch: Launch) -> list[Task]:
    """Return the tasks that the end waits for, from the first to the last: before each the one that ends last of those that
    it needs, its predecessors and the task before it on its core."""
    if not launch.tasks:
        return []
    before = {task.name: earlier for tasks in launch.lanes.values() for earlier, task in zip(tasks, tasks[1:], strict=False)}
    task = max(launch.tasks, key=lambda one: one.end)
    path, seen = [task], {task.name}
    while True:
        needed = [launch.by_name[name] for name in launch.predecessors.get(task.name, ()) if name in launch.by_name]
        if task.name in before:
            needed.append(before[task.name])
        needed = [one for one in needed if one.name not in seen]
        if not needed:
            return path[::-1]
        task = max(needed, key=lambda one: one.end)
        seen.add(task.name)
        path.append(task)


def _serial(launch: Launch, path: Sequence[Task]) -> Serial | None:
    """Return the loop with the most steps in a row on the critical path; None where no step needs another."""
    rows: dict[str, list[Task]] = {}
    for before, task in zip(path, path[1:], strict=False):
        leaf = launch.leaves.get(task.leaf)
        if leaf is not None and leaf.loop and before.name in launch.predecessors.get(task.name, ()):
            rows.setdefault(leaf.loop, [before]).append(task)
    steps = {loop: len({task.step for task in tasks}) for loop, tasks in rows.items()}
    if max(steps.values(), default=0) < 2:
        return None
    loop = max(steps, key=lambda one: (steps[one], one))
    tasks = rows[loop]
    return Serial(loop, steps[loop], max(task.end for task in tasks) - min(task.start for task in tasks))


def _leaf_times(launch: Launch, path: Sequence[Task]) -> list[LeafTime]:
    total = sum(task.seconds for task in launch.tasks) or 1.0
    on_path = sum(task.seconds for task in path) or 1.0
    groups: dict[str, list[Task]] = {}
    for task in launch.tasks:
        groups.setdefault(task.leaf, []).append(task)
    rows = []
    for leaf, tasks in groups.items():
        spent = sum(task.seconds for task in tasks)
        critical = sum(task.seconds for task in path if task.leaf == leaf) / on_path
        rows.append(LeafTime(launch.leaves.get(leaf), leaf, len(tasks), spent, spent / len(tasks), spent / total, critical))
    return sorted(rows, key=lambda row: -row.total_us)


def _chains(launch: Launch) -> list[Chain]:
    """Return chains of vector tasks, each the only one after the one before and the only one before the next."""
    single = {}
    for name, later in launch.successors.items():
        if len(later) == 1 and len(launch.predecessors.get(later[0], ())) == 1 and _is_vector(launch, name, later[0]):
            single[name] = later[0]
    begins = set(single) - set(single.values())
    found: dict[tuple[str, ...], list[float]] = {}
    for name in begins:
        chain, waits = [name], 0.0
        while chain[-1] in single:
            after = single[chain[-1]]
            waits += launch.by_name[after].start - launch.by_name[chain[-1]].end
            chain.append(after)
        found.setdefault(tuple(launch.by_name[one].leaf for one in chain), []).append(waits)
    rows = [Chain(leaves, len(waits), sum(waits)) for leaves, waits in found.items()]
    return sorted(rows, key=lambda row: -row.waits_us)


def _is_vector(launch: Launch, *names: Name) -> bool:
    tasks = [launch.by_name.get(name) for name in names]
    return all(task is not None and task.core.startswith("AIV") for task in tasks)
