"""Moves a size that a test wants to the nearest one that SPEC.md allows, such as a multiple of 64.

Where an equality or a product ties axes together (`Sq == Sk`, `A * B == C`), the others follow.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from pypto_op.documents import constraints
from pypto_op.python_text import names_in

Sizes = dict[str, int]
Ranges = Mapping[str, tuple[int, int]]
Legal = Callable[[Mapping[str, int]], bool]

_REACH = 300
"""Sizes up to so far from the wanted one are tried, beside the multiples that constraints name."""

_LARGEST_STEP = 1 << 16
_ROUNDS = 4
_FOLLOWING = 512


def nearest(
    said: Sequence[str],
    ranges: Ranges,
    sizes: Mapping[str, int],
    wanted: Mapping[str, int],
    legal: Legal,
    *,
    free: Collection[str] = (),
    up: bool = False,
) -> Sizes | None:
    """Return legal sizes with some axes as near to what is wanted as can be, None where none of them can have another size.

    Args:
        said: SPEC.md's `shape_constraints`.
        ranges: axis -> least and greatest size.
        sizes: legal ones, which all other axes keep where nothing ties them to the wanted ones.
        wanted: axis -> size; one after another, so the first is met best.
        legal: whether sizes are legal, beyond `said` and `ranges` too.
        free: the other axes that may follow.
        up: take a size above the wanted one, as long as there is one within reach.
    """
    found: Sizes = dict(sizes)
    settled: set[str] = set()
    for axis, size in wanted.items():
        if axis not in found:
            continue
        follow = (set(free) | set(wanted)) - settled - {axis}
        better = _settled(said, ranges, found, axis, size, follow, legal, up)
        if better is not None:
            found = better
        settled.add(axis)
    return None if found == dict(sizes) and any(sizes.get(axis, size) != size for axis, size in wanted.items()) else found


def _settled(
    said: Sequence[str], ranges: Ranges, sizes: Sizes, axis: str, wanted: int, free: set[str], legal: Legal, up: bool
) -> Sizes | None:
    for size in _candidates(said, ranges, sizes, axis, wanted, up):
        for changed in ({**sizes, axis: size}, _followed(said, {**sizes, axis: size}, free)):
            if changed is not None and constraints.satisfied(said, changed) and legal(changed):
                return changed
    return None


def _candidates(said: Sequence[str], ranges: Ranges, sizes: Sizes, axis: str, wanted: int, up: bool) -> list[int]:
    """Return sizes of an axis, the nearest to the wanted one first; of two as near the larger one."""
    low, high = ranges.get(axis, (1, 1 << 40))
    wanted = min(max(wanted, low), high)
    near = set(range(wanted - _REACH, wanted + _REACH + 1)) | {low, high, sizes[axis]}
    step = math.lcm(*_steps(said, sizes))
    for multiple in (step, *_steps(said, sizes)):
        down = wanted - wanted % multiple
        near |= {down, down + multiple}
    near |= {value for name, value in sizes.items() if name != axis}
    legal = (size for size in near if max(low, 1) <= size <= high)
    return sorted(legal, key=lambda size: (up and size < wanted, abs(size - wanted), -size))


def _steps(said: Iterable[str], sizes: Mapping[str, int]) -> Iterator[int]:
    """Yield what constraints divide by."""
    yield 1
    for tree in constraints.parts(said):
        for node in ast.walk(tree):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
                step = constraints.value_of(node.right, sizes)
                if step is not None and 1 < step <= _LARGEST_STEP:
                    yield step


def _followed(said: Sequence[str], sizes: Sizes, free: set[str]) -> Sizes | None:
    """Return the sizes with free axes moved until the constraints hold, None where that does not help."""
    conditions = list(constraints.parts(said))
    moved: set[str] = set()
    for _ in range(_ROUNDS):
        broken = [tree for tree in conditions if not constraints.holds(tree, sizes)]
        if not broken:
            return sizes
        for tree in broken:
            change = _mended(tree, sizes, free - moved) or _mended(tree, sizes, free)
            if change is None:
                return None
            sizes = {**sizes, **change}
            moved |= set(change)
    return None


def _mended(tree: ast.expr, sizes: Sizes, free: set[str]) -> Sizes | None:
    """Return the change of one free axis that makes one condition hold; what equals an expression takes its value."""
    if isinstance(tree, ast.Compare) and len(tree.ops) == 1 and isinstance(tree.ops[0], ast.Eq):
        sides = (tree.left, tree.comparators[0])
        for name, other in (sides, sides[::-1]):
            value = constraints.value_of(other, sizes)
            if isinstance(name, ast.Name) and name.id in free and value is not None and value >= 1:
                return {name.id: value}
    for axis in sorted(names_in(tree) & free & set(sizes)):
        near = range(1, max(_FOLLOWING, 4 * sizes[axis]) + 1)
        for size in sorted(near, key=lambda size, now=sizes[axis]: (abs(size - now), -size)):  # type: ignore[misc]
            if constraints.holds(tree, {**sizes, axis: size}):
                return {axis: size}
    return None
