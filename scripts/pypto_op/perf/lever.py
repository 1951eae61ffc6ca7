"""Names the change that is worth trying first, from a launch's figures; `perf` prints it as `next:`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pypto_op.perf.analysis import Analysis, LeafTime
from pypto_op.perf.bound import Bound

_NEAR = 0.7
_IDLE = 0.5
_LONG_PATH = 0.75
_FEW_CORES = 0.5
_IN_A_ROW = 4
"""So many steps of a loop that wait for one another make it worth taking larger ones."""


@dataclass(frozen=True)
class Lever:
    """One change that is worth trying."""

    name: str  # of the lever, as skill pypto-op-perf-tune lists it
    why: str  # the figures that say so
    could_save_us: float  # at most so much of the launch


def levers(analysis: Analysis, bound: Bound) -> list[Lever]:
    """Return what is worth trying, the one that could save most first."""
    return sorted(_found(analysis, bound), key=lambda lever: -lever.could_save_us) or list(_heaviest(analysis))


def _found(analysis: Analysis, bound: Bound) -> Iterator[Lever]:
    span = analysis.us
    if span and bound.us / span >= _NEAR:
        yield Lever("none", f"{100 * bound.us / span:.0f} % of the bound are reached", span - bound.us)
        return
    at_work = [usage for usage in analysis.usage if usage.tasks]
    used, cores = (sum(getattr(usage, name) for usage in at_work) for name in ("used", "cores"))
    serial = analysis.serial
    if serial is not None and serial.steps >= _IN_A_ROW and serial.us > _IDLE * span:
        why = f"{serial.steps} steps of loop {serial.loop} wait for one another and take {serial.us:.1f} of {span:.1f} us"
        yield Lever(
            "fewer steps in a row: more rows per step with tiles as large, or unroll_list",
            why,
            serial.us * (1 - 1 / serial.steps),
        )
    path = sum(task.seconds for task in analysis.path)
    heaviest = max(analysis.leaves, key=lambda row: row.critical, default=None)
    if heaviest is not None and analysis.path_busy >= _LONG_PATH and len(analysis.path) > 1:
        where, share = place(heaviest), 100 * analysis.path_busy
        why = f"the critical path is {len(analysis.path)} tasks and busy for {share:.0f} % of the launch, most in {where}"
        yield Lever(
            "fewer steps in a row: larger tiles or rows per step, loads out of the loop", why, path * heaviest.critical / 2
        )
    busiest = max((usage for usage in analysis.usage), key=lambda usage: usage.longest_us, default=None)
    few = used < _FEW_CORES * cores
    if few and heaviest is not None:
        ideal = sum(row.total_us for row in analysis.leaves) / max(1, cores)
        why = f"{used} of {cores} cores have a task, and the longest leaf takes {heaviest.mean_us:.2f} us ({place(heaviest)})"
        yield Lever("more tasks at once: fewer rows per step, smaller tiles", why, max(0.0, span - max(ideal, bound.us)) / 2)
    # Where cores are free, larger tasks would leave more of them without one: no advice against the one above.
    if not few and analysis.waits_scheduler_us > _IDLE * (analysis.waits_scheduler_us + analysis.waits_task_us):
        tasks = sum(usage.tasks for usage in analysis.usage)
        why = f"cores wait {analysis.waits_scheduler_us:.1f} us for the scheduler, which starts {tasks} tasks"
        yield Lever("fewer, larger tasks: nbuffer settings, larger tiles", why, analysis.waits_scheduler_us / max(1, used))
    for chain in analysis.chains[:1]:
        if chain.waits_us > 0:
            why = f"{chain.count} chains of {len(chain.leaves)} vector tasks wait {chain.waits_us:.1f} us between them"
            yield Lever(
                "one vector task instead of several: vec_nbuffer_setting, one tile for the chain",
                why,
                chain.waits_us / chain.count,
            )
    if busiest is not None and busiest.balance < _FEW_CORES and busiest.used > 1:
        why = f"{busiest.kind}: the mean core is busy for {100 * busiest.balance:.0f} % of the busiest one's time"
        yield Lever("even work: rows per step that divide the shape", why, busiest.longest_us * (1 - busiest.balance) / 2)


def _heaviest(analysis: Analysis) -> Iterator[Lever]:
    """Yield the leaf with the largest share, where no figure stands out."""
    for row in sorted(analysis.leaves, key=lambda row: -row.critical)[:1]:
        why = f"it has {100 * row.critical:.0f} % of the critical path, in {row.tasks} tasks of {row.mean_us:.2f} us"
        yield Lever(f"the tiles of the {place(row)}", why, row.critical * analysis.us / 2)


def place(row: LeafTime) -> str:
    """Return where a leaf comes from, in words."""
    leaf = row.leaf
    if leaf is None:
        return "a task without a name"
    lines = f"line {leaf.lines[0]}" if len(leaf.lines) == 1 else f"lines {leaf.lines[0]}-{leaf.lines[-1]}" if leaf.lines else ""
    loop = f"loop {leaf.loop}" if leaf.loop else "no loop"
    return f"{leaf.unit} work of {', '.join(part for part in (loop, lines) if part)}"
