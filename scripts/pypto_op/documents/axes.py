"""Which axes kernels tile ("long"), and which are batches: heads, groups and whatever is walked one by one.

Asked in this order: DESIGN.md's loops, the golden's reductions, the contract (rank and position), the sizes of the P0 shapes.
A list (`listed`) is long too, in steps of 1: a kernel walks the pages of a block table one by one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from pypto_op.documents import shape_expr
from pypto_op.documents.ports import Interfaces, Port
from pypto_op.documents.steps import Steps

INDICES = ("int32", "int64", "int")
"""Dtypes that indices and lengths come in; int8 and uint8 are codes, which take every value."""

_FEW = 16
"""An axis that no P0 shape makes longer may be heads or groups where it stands between others."""


def long_axes(
    interfaces: Interfaces,
    dynamic: Sequence[str],
    *,
    steps: Steps,
    reduced: Collection[str] = (),
    sizes: Iterable[Mapping[str, int]] = (),
) -> list[str]:
    """Return the axes, of those given, that kernels tile; the others are batches.

    Args:
        dynamic: the axes that are asked about; where there is one only, it is tiled wherever it stands.
        steps: what DESIGN.md says; a step of 1 is a batch, a longer one a tile.
        reduced: axes that the golden sums or otherwise reduces over.
        sizes: the P0 shapes by symbol.
    """
    shapes = list(sizes)
    return [axis for axis in dynamic if _is_long(interfaces, axis, list(dynamic), steps, reduced, shapes)]


def _is_long(
    interfaces: Interfaces,
    axis: str,
    dynamic: Sequence[str],
    steps: Steps,
    reduced: Collection[str],
    sizes: Sequence[Mapping[str, int]],
) -> bool:
    if axis in steps.of:
        return max(steps.of[axis]) > 1
    if axis in reduced or list(dynamic) == [axis]:
        return True
    ports = [port for port in interfaces.primary_inputs if axis in symbols_of(port)]
    rank = max((len(port.shape) for port in ports), default=0)
    if rank < 3:
        return True
    # Tensors of lower rank, such as the [BH, S] of a softmax's sums, follow those of the highest.
    places = {place for port in ports if len(port.shape) == rank for place in _places(port, axis)}
    if places == {0}:
        return False
    if min(places) >= rank - 1 or min(places) == 0:
        return True
    # Between batch and last axis stand positions and heads, in either order: [B, H, S, D] and [B, S, H, D].
    longest = max((shape.get(axis, 0) for shape in sizes), default=0)
    others = [symbol for port in ports if len(port.shape) == rank for symbol in _middle(port) if symbol != axis]
    rival = max((shape.get(symbol, 0) for shape in sizes for symbol in others), default=0)
    return not others or longest > _FEW or longest >= rival


def listed(interfaces: Interfaces, axis: str) -> bool:
    """Whether only tensors of whole numbers have an axis, as a block table has its blocks: each of them is a step of its own."""
    outputs = [port for module in interfaces.modules for port in module.outputs]
    having = [port for port in (*interfaces.primary_inputs, *outputs) if port.shape and axis in symbols_of(port)]
    return bool(having) and all(port.dtype in INDICES and len(port.shape) > 1 for port in having)


def pools(interfaces: Interfaces, limits: Iterable[str]) -> list[str]:
    """Return the axes that indices point into, such as the pages of a cache: no kernel walks them in order.

    Args:
        limits: of each tensor of whole numbers, the first value that is too large, as a shape expression.
    """
    data = {symbol for port in interfaces.primary_inputs if port.dtype not in INDICES for symbol in symbols_of(port)}
    return [limit for limit in dict.fromkeys(limits) if limit in data]


def symbols_of(port: Port) -> frozenset[str]:
    """Return the symbols in a port's shape."""
    return frozenset(symbol for dimension in port.shape for symbol in shape_expr.parse(dimension).symbols)


def _places(port: Port, axis: str) -> list[int]:
    return [place for place, dimension in enumerate(port.shape) if axis in shape_expr.parse(dimension).symbols]


def _middle(port: Port) -> Iterator[str]:
    for dimension in port.shape[1:-1]:
        yield from shape_expr.parse(dimension).symbols
