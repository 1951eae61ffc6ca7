"""Which fields of a libcst node hold code. libcst's own `children` visits white space, too, and rebuilds the node."""

from __future__ import annotations

import ast
import dataclasses
import functools
from collections.abc import Iterator

import libcst as cst

_NO_CHILDREN = {
    "whitespace", "leading_lines", "lpar", "rpar", "comma", "header", "footer", "semicolon", "lbracket", "rbracket",
    "dot", "equal", "colon", "lbrace", "rbrace", "lines_after_decorators", "asynchronous", "indent", "posonly_ind",
    "first_colon", "second_colon", "operators", "lines_after_module_docstring", "trailing_whitespace", "separator",
    "operator", "attr", "name", "keyword",
}  # fmt: skip


class _Fields(dict[type, tuple[str, ...]]):
    def __missing__(self, kind: type) -> tuple[str, ...]:
        fields = [f.name for f in dataclasses.fields(kind) if f.name not in _NO_CHILDREN and f.type is not str]
        self[kind] = tuple(name for name in reversed(fields) if "whitespace" not in name)
        return self[kind]


class _IsNode(dict[type, bool]):
    def __missing__(self, kind: type) -> bool:
        self[kind] = issubclass(kind, cst.CSTNode)
        return self[kind]


FIELDS = _Fields()
"""The fields of each class of nodes that may hold code, last first."""
IS_NODE = _IsNode()
"""Whether a class is one of nodes; remembered, because asking an abstract base class is slow."""


@functools.lru_cache(maxsize=4096)
def text_of(literal: str) -> str | bytes | None:
    """Return what a string literal stands for, by its source; None when it cannot be read. libcst compiles it each time."""
    try:
        value: str | bytes = ast.literal_eval(literal)
    except (ValueError, SyntaxError):
        return None
    return value


def children(node: cst.CSTNode) -> list[cst.CSTNode]:
    """Return the code directly inside `node`, in source order; libcst's own `children` visits white space too."""
    return [child for _, child in named_children(node)]


def named_children(node: cst.CSTNode) -> list[tuple[str, cst.CSTNode]]:
    """Return the code directly inside `node` with the field that holds it, in source order."""
    found: list[tuple[str, cst.CSTNode]] = []
    for name in reversed(FIELDS[node.__class__]):
        value = getattr(node, name)
        if value.__class__ in (tuple, list):
            found.extend((name, entry) for entry in value)
        elif IS_NODE[value.__class__]:
            found.append((name, value))
    return found


def inside(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Yield `node` and all code in it, in source order."""
    waiting = [node]
    while waiting:
        inner = waiting.pop()
        yield inner
        waiting.extend(reversed(children(inner)))


def names_in(node: cst.CSTNode) -> set[str]:
    """Return every name that occurs in an expression."""
    return {inner.value for inner in inside(node) if isinstance(inner, cst.Name)}
