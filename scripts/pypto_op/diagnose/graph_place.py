"""The kernel's line behind an exception of the simulator that names a graph: which loop ran too far, which write missed."""

from __future__ import annotations

import ast
import re

from pypto_op.diagnose.kernel_loops import KernelLoops, Loop

_BLOCK = re.compile(r"\[VERIFY\] tensor_graph, (?P<graph>TENSOR_\w+), (?P<turn>[^,\n]*),[^\n]*\b(?P<opcode>VIEW|ASSEMBLE)\n")
_VALID = re.compile(r"dynvalidshape:\[(?P<sizes>[^\n]*)\]")
_NEGATIVE = re.compile(r"Storage size calculation overflowed with sizes=\[(?P<sizes>[^\]]*-\d[^\]]*)\]")
_OUTSIDE = "are out of bounds for storage of size"


def line_of_graph(log: str, kernel: str) -> int:
    """Return the line to blame, 0 where the log names no graph or the kernel has no such loop.

    A view of negative size comes of a loop that runs too far: the loop's line. A write past the end is the call of
    `pypto.assemble` in the graph's loop, which pypto does not name; the loop's line where there are several.

    Args:
        log: text of `verify_exception.log`, or of a failure that holds it.
        kernel: text of the kernel's file.
    """
    block = _BLOCK.search(log)
    if block is None:
        return 0
    try:
        loops = KernelLoops(kernel)
    except (SyntaxError, ValueError, RecursionError):
        return 0
    rest, own = log[block.end() :], loops.of_graph(block["graph"])
    if block["opcode"] == "ASSEMBLE" and own is not None and _OUTSIDE in log:
        return _write_in(loops, own)
    negative = _NEGATIVE.search(log)
    if block["opcode"] == "VIEW" and negative:
        indices = [part.partition("=")[0] for part in block["turn"].split("@")]
        moved = _index_of(rest, [one.strip() for one in negative["sizes"].split(",")], indices)
        loop = (loops.loop(moved) if moved else None) or own
        return loop.first if loop is not None else 0
    return 0


def _write_in(text: KernelLoops, loop: Loop) -> int:
    within = [line for line in text.writes if loop.first <= line <= loop.last]
    calls = within or text.writes
    return calls[0] if len(calls) == 1 else loop.first


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
