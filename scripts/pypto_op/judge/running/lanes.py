"""Deals the cases of a suite out to processes, by the suite alone, so that the same files get the same verdict.

A wrapper that remembers (a kernel built with the first eps and kept by shape) is right or wrong by the calls that its
process saw before. So the cases of a suite are dealt out to *lanes*: one process each, one case after another, in the
order of the suite. How many run at once, how fast, and which cases were selected has no say in it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pypto_op.judge.cases.inputs import checks_precision

MOST = 4
"""Lanes at most: as many as cores are worth while."""

CASES_PER_LANE = 10
"""A further process pays for its start and its first compilation from about so many cases on."""


def lanes_of(cases: Sequence[Mapping[str, Any]]) -> list[list[int]]:
    """Return the positions of a suite's cases, lane by lane, each in the order of the suite.

    Cases of equal sizes share a lane, whatever their dtypes, scalars and other knobs: what is kept by shape shows there.
    """
    groups: dict[str, list[int]] = {}
    for position, case in enumerate(cases):
        groups.setdefault(json.dumps(case.get("shape") or {}, sort_keys=True, default=str), []).append(position)
    count = max(1, min(MOST, len(cases) // CASES_PER_LANE, len(groups)))
    lanes: list[list[int]] = [[] for _ in range(count)]
    load = [0] * count
    for group in groups.values():
        lane = load.index(min(load))
        lanes[lane] += group
        load[lane] += sum(_trials(cases[position]) for position in group)
    return [sorted(lane) for lane in lanes if lane]


def restricted(lanes: Sequence[Sequence[int]], selected: Sequence[int]) -> list[list[int]]:
    """Return the lanes with the selected positions only, the longest first; a lane without any is left out.

    Half of a suite may have equal sizes: begun last, its lane would run alone at the end.
    """
    wanted = set(selected)
    kept = ([position for position in lane if position in wanted] for lane in lanes)
    return sorted((lane for lane in kept if lane), key=len, reverse=True)


def onto_the_first(cases: Sequence[Mapping[str, Any]]) -> frozenset[int]:
    """Return the positions of the cases whose second seed is called on the tensors of the first, overwritten in place.

    Every second one of each dtype, from the first on; the others get fresh tensors, so both ways to remember show.
    """
    seen: dict[str, int] = {}
    chosen = set()
    for position, case in enumerate(cases):
        if checks_precision(case):
            dtype = json.dumps([case.get("dtype"), case.get("dtype_mode")], sort_keys=True, default=str)
            seen[dtype] = seen.get(dtype, 0) + 1
            if seen[dtype] % 2:
                chosen.add(position)
    return frozenset(chosen)


def _trials(case: Mapping[str, Any]) -> int:
    return 2 if checks_precision(case) else 1
