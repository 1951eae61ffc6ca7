"""Faults of loops: too few steps, the wrong step, the wrong edge."""

from __future__ import annotations

from collections.abc import Iterable

import libcst as cst

from pypto_op.mutation.operators.base import Edit, Operator, expression, grouped, number
from pypto_op.mutation.program import Site, called


def _bounds(site: Site) -> list[cst.Arg]:
    """Return the positional arguments of a `pypto.loop(...)`: stop, or start and stop, or start, stop and step."""
    if isinstance(site.node, cst.Call) and called(site.node) == "loop":
        return [arg for arg in site.node.args if arg.keyword is None]
    return []


def loop_bound(site: Site) -> Iterable[Edit]:
    """One step fewer at the end."""
    if bounds := _bounds(site):
        stop = bounds[0] if len(bounds) == 1 else bounds[1]
        yield stop.value, expression("{n} - 1", n=grouped(stop.value))


def loop_start(site: Site) -> Iterable[Edit]:
    """The first step is left out."""
    match _bounds(site):
        case [stop]:
            yield stop.value, number(1)
            first = cst.Arg(number(1), comma=cst.Comma(whitespace_after=cst.SimpleWhitespace(" ")))
            assert isinstance(site.node, cst.Call)
            yield site.node, site.node.with_changes(args=[first, *site.node.args])
        case [start, _, *_]:
            yield start.value, expression("{n} + 1", n=grouped(start.value))


def loop_edge(site: Site) -> Iterable[Edit]:
    """The last step is taken for the first, or the other way round."""
    other = {"is_loop_begin": "is_loop_end", "is_loop_end": "is_loop_begin"}
    match site.node:
        case cst.Attribute(attr=cst.Name(value=name)) if name in other:
            yield site.node, site.node.with_changes(attr=cst.Name(other[name]))


def dropped_tail(site: Site) -> Iterable[Edit]:
    """A count of steps is rounded down: (n + T - 1) // T becomes n // T."""
    match site.node:
        case cst.BinaryOperation(
            operator=cst.FloorDivide(),
            left=cst.BinaryOperation(
                operator=cst.Subtract(), left=cst.BinaryOperation(operator=cst.Add(), left=count), right=cst.Integer(value="1")
            ),
        ):
            yield site.node, site.node.with_changes(left=count)


def loop_index(site: Site) -> Iterable[Edit]:
    """A step works with the index of another loop, or with the first step's."""
    match site.node:
        case cst.Name(value=name) if name in site.function.indices and not isinstance(site.parent, (cst.For, cst.Arg)):
            yield site.node, number(0)
            for other in dict.fromkeys(site.function.indices):
                if other != name:
                    yield site.node, cst.Name(other)


OPERATORS = (
    Operator("loop_bound", "the last step of a loop is left out", loop_bound),
    Operator("loop_start", "the first step of a loop is left out, or it is the only one", loop_start),
    Operator("loop_edge", "begin and end of a loop are confused", loop_edge),
    Operator("loop_index", "a step uses another loop's index, or always the first", loop_index),
    Operator("dropped_tail", "the ragged last tile is dropped", dropped_tail),
)
