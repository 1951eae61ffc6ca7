"""Which nodes are a function's own: a jit entry lies in its builder, and what it says is not the builder's."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from pypto_op.mutation.program import Function


def own_nodes(function: Function) -> Iterator[cst.CSTNode]:
    """Yield the nodes of a function's body, without those of functions that are defined in it."""
    waiting: list[cst.CSTNode] = [function.node.body]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += [child for child in reversed(node.children) if not isinstance(child, cst.FunctionDef)]
