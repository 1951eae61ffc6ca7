"""What is said of a shape's bound, gaps and levers: for the terminal, the page and JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from pypto_op.perf.lever import place

if TYPE_CHECKING:
    from pypto_op.perf.analysis import Analysis
    from pypto_op.tuning.profile import Shape

_MOST = 6


def sentences(row: Shape) -> Iterator[str]:
    """Yield what is said of a shape, a line each."""
    bound, work, reached = row.bound, row.work, f"{100 * row.share:.1f} % of it reached"
    yield f"{row.label}: {row.us:.2f} us in the cost model, bound {bound.us:.3g} us ({bound.by}), {reached}"
    arithmetic = f"{work.product_flop} FLOP in products, {work.vector_flop} elsewhere, as the golden computes it"
    if not work.counted:
        arithmetic = "arithmetic unknown, since the golden cannot be traced: the bound is that of memory alone"
    yield (
        f"  {work.bytes} bytes, {arithmetic}, on {bound.device}: "
        f"memory {bound.memory_us:.3g} us, cube {bound.cube_us:.3g} us, vector {bound.vector_us:.3g} us"
    )
    if bound.assumed:
        yield f"  {bound.assumed}"
    for number, one in enumerate(row.analyses, 1):
        yield from of_launch(f"launch {number}", one)
    for lever in row.levers[:2]:
        yield f"  next: {lever.name}; {lever.why}"


def of_launch(name: str, one: Analysis, leaf: str = "") -> Iterator[str]:
    """Yield what is said of a launch, a line each.

    Args:
        leaf: hash of the leaf function that alone is told of; "" for the most expensive ones.
    """
    for usage in one.usage:
        if not usage.tasks:
            yield f"  {name}, {usage.kind}: no task"
            continue
        yield (
            f"  {name}, {usage.kind}: {usage.used} of {usage.cores} cores, {usage.tasks} tasks, "
            f"utilisation {100 * usage.utilisation:.1f} %, gaps {100 * (1 - usage.busy):.0f} % on those, "
            f"balance {100 * usage.balance:.0f} %"
        )
    yield (
        f"  waiting: {one.waits_task_us:.1f} us for tasks, {one.waits_scheduler_us:.1f} us for the scheduler; critical path "
        f"{len(one.path)} tasks, busy {100 * one.path_busy:.0f} %"
    )
    for row in one.leaves[:_MOST] if not leaf else [row for row in one.leaves if row.hash == leaf]:
        yield (
            f"  leaf {row.hash}: {place(row)}; {row.tasks} tasks of {row.mean_us:.2f} us, "
            f"{100 * row.share:.0f} % of all work, {100 * row.critical:.0f} % of the critical path"
        )
    for chain in one.chains[:2]:
        yield f"  vector chain of {len(chain.leaves)} tasks, {chain.count} times, {chain.waits_us:.1f} us between them"


def summary(row: Shape) -> dict[str, Any]:
    """Return what is known of a shape, JSON-ready."""
    return {
        "label": row.label,
        "us": row.us,
        "bound_us": row.bound.us,
        "bound_by": row.bound.by,
        "share": row.share,
        "work": asdict(row.work),
        "bound": asdict(row.bound),
        "levers": [asdict(lever) for lever in row.levers],
        "launches": [launch_summary(one) for one in row.analyses],
        "figures": dict(row.figures),
    }


def launch_summary(one: Analysis) -> dict[str, Any]:
    """Return what is known of a launch, JSON-ready."""
    return {
        "us": one.us,
        "usage": [asdict(usage) for usage in one.usage],
        "waits_task_us": one.waits_task_us,
        "waits_scheduler_us": one.waits_scheduler_us,
        "critical_path": {"tasks": len(one.path), "busy": one.path_busy},
        "serial": asdict(one.serial) if one.serial else None,
        "leaves": [asdict(leaf) for leaf in one.leaves],
        "chains": [asdict(chain) for chain in one.chains],
        "gaps": [asdict(gap) for gap in one.gaps[:20]],
    }
