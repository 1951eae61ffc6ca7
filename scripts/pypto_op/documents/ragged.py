"""Checks that `composition_verification` has a shape with a partial tile, where SPEC.md promises such sizes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pypto_op.documents import axes, constraints
from pypto_op.documents import spec as spec_document
from pypto_op.documents.ports import Interfaces
from pypto_op.documents.schema import Finding
from pypto_op.documents.spec import Spec
from pypto_op.documents.steps import Steps
from pypto_op.errors import ContractError

TILE = 16
"""The smallest tile that kernels use: a size that it does not divide ends in a partial tile of every other one."""

_OTHERS = range(1, 4 * TILE)


def findings(interfaces: Interfaces, spec: Path) -> Iterator[Finding]:
    """Yield that no shape of `composition_verification` is ragged although some axis may be.

    Args:
        interfaces: the contract; of one module it is not asked.
        spec: SPEC.md; where it is missing or broken, every tiled axis may be ragged.
    """
    composition = interfaces.composition
    if interfaces.total_modules == 1 or composition is None:
        return
    try:
        known = spec_document.load(spec) if spec.is_file() else None
    except ContractError:
        known = None
    open_axes = [axis for axis in tiled(interfaces) if _may_be_ragged(axis, known, composition.shapes)]
    if open_axes and not any(is_ragged(sizes.get(axis, TILE)) for sizes in composition.shapes for axis in open_axes):
        yield Finding(
            "composition_verification.shapes",
            f"none ends in a partial tile: give one of {', '.join(open_axes)} a size that {TILE} does not divide, "
            f"such as {TILE + 1}",
        )


def is_ragged(size: int) -> bool:
    """Whether a size fills no whole number of tiles; one element is a whole of its own."""
    return size > 1 and size % TILE != 0


def tiled(interfaces: Interfaces) -> list[str]:
    """Return the symbols that kernels tile, as far as the contract alone says; all of them where it leaves none."""
    nothing = Steps({}, (), nested=False)
    return axes.long_axes(interfaces, interfaces.symbols, steps=nothing) or list(interfaces.symbols)


def _may_be_ragged(axis: str, spec: Spec | None, shapes: Sequence[Mapping[str, int]]) -> bool:
    """Whether SPEC.md promises some size of an axis that ends in a partial tile."""
    if spec is None or not shapes:
        return True
    if axis not in spec.dynamic_axes and not constraints.divide(spec.shape_constraints, axis, shapes[0]):
        return False  # a fixed axis has the sizes of the P0 shapes and no other
    low, high = spec.axis_ranges.get(axis, (1, max(_OTHERS)))
    sizes = [size for size in (*_OTHERS, *range(low, low + 2 * TILE)) if low <= size <= high and is_ragged(size)]
    for shape in shapes:
        tied = [symbol for symbol, size in shape.items() if size == shape.get(axis)]  # what a constraint may hold equal
        for size in sizes:
            alone, together = {**shape, axis: size}, {**shape, **dict.fromkeys(tied, size), axis: size}
            if any(constraints.satisfied(spec.shape_constraints, changed) for changed in (alone, together)):
                return True
    return False
