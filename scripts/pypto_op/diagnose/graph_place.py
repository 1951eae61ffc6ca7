"""The kernel's line behind an exception of the simulator that names a graph: which loop ran too far, which write missed."""

from __future__ import annotations

import ast
import re

from pypto_op.diagnose.kernel_names import KernelNames
from pypto_op.diagnose.kernel_states import read_before_written

_BLOCK = re.compile(r"\[VERIFY\] tensor_graph, (?P<graph>TENSOR_\w+), (?P<turn>[^,\n]*),[^\n]*\b(?P<opcode>VIEW|ASSEMBLE)\n")
_VALID = re.compile(r"dynvalidshape:\[(?P<sizes>[^\n]*)\]")
_NEGATIVE = re.compile(r"Storage size calculation overflowed with sizes=\[(?P<sizes>[^\]]*-\d[^\]]*)\]")
_NOTHING = re.compile(r"\[VERIFY\] tensor_graph, TENSOR_[\s\S]{0,2000}?<(?:\d+x)+\w+/(?:\d+x)*0x[\s\S]{0,300}must match the size")
_CYCLE = re.compile(r"F21001!\s*cycle detected")
_UNWRITTEN = re.compile(r"Errcode: FB100[2E]!")
_GRAPH = re.compile(r"\[VERIFY\] tensor_graph, (?P<graph>TENSOR_\w+),")
_LINE = re.compile(r"/\* \S+\.py:(?P<line>\d+) \*/")
_AXIS = re.compile(r"a view leaves its tensor on axis (?P<axis>\d+)")
_OUTSIDE = ("are out of bounds for storage of size", "a view leaves its tensor")


def line_of_graph(log: str, kernel: str) -> int:
    """Return the line to blame, 0 where the log names no graph or the kernel has no such loop.

    A view of negative size comes of a loop that runs too far: the loop's line. A write past the end is the call of
    `pypto.assemble` in the graph's loop, which pypto does not name; the loop's line where there are several. An operand without
    elements comes of a view that begins behind its tensor: the one view whose offset holds a number. A cycle comes of a write
    into a tensor that the same turn reads, a state without a value of a read before the first write. A view in a helper that is
    told its whole place is the call's, or the line's that computes the offset which leaves the tensor.

    Args:
        log: text of `verify_exception.log`, or of a failure that holds it.
    """
    block = _BLOCK.search(log)
    try:
        loops = KernelNames(kernel)
    except (SyntaxError, ValueError, RecursionError):
        return 0
    if _CYCLE.search(log):
        return loops.written_where_read()
    if _UNWRITTEN.search(log):
        graph = _GRAPH.search(log)
        return read_before_written(kernel, loops.of_graph(graph["graph"]) if graph else None)
    if block is None:
        return loops.moved_view() if _NOTHING.search(log) else 0
    rest, own = log[block.end() :], loops.of_graph(block["graph"])
    if block["opcode"] == "ASSEMBLE" and own is not None and any(words in log for words in _OUTSIDE):
        return loops.write_in(own)
    at = _LINE.search(log)
    if block["opcode"] == "VIEW" and at and any(words in log for words in _OUTSIDE):
        called = loops.handed_view(int(at["line"]), block["graph"])
        axis = _AXIS.search(log)
        made = loops.offset_of_call(int(at["line"]), called, int(axis["axis"])) if called and axis else None
        return made or called
    negative = _NEGATIVE.search(log)
    if block["opcode"] == "VIEW" and negative:
        indices = [part.partition("=")[0] for part in block["turn"].split("@")]
        moved = _index_of(rest, [one.strip() for one in negative["sizes"].split(",")], indices)
        loop = (loops.loop(moved) if moved else None) or own
        return loop.first if loop is not None else 0
    return 0


def _index_of(text: str, sizes: list[str], indices: list[str]) -> str:
    """Return the loop's index that the valid shape of the negative axis is computed from, "" where that is not plain."""
    found = _VALID.search(text)
    try:
        tree = ast.parse(f"[{found['sizes']}]", mode="eval").body if found else None
    except (SyntaxError, ValueError, RecursionError):
        return ""
    if not isinstance(tree, ast.List) or len(tree.elts) != len(sizes):
        return ""
    axis = next(number for number, size in enumerate(sizes) if size.startswith("-"))
    names = [node.id for node in ast.walk(tree.elts[axis]) if isinstance(node, ast.Name)]
    return next((index for index in indices if index in names), "")
