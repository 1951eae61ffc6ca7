"""Which fields of a libcst node hold code. libcst's own `children` visits white space, too, and rebuilds the node."""

from __future__ import annotations

import ast
import dataclasses
import functools

import libcst as cst

_NO_CHILDREN = {
    "whitespace", "leading_lines", "lpar", "rpar", "comma", "header", "footer", "semicolon", "lbracket", "rbracket",
    "dot", "equal", "colon", "lbrace", "rbrace", "lines_after_decorators", "asynchronous", "indent", "posonly_ind",
    "first_colon", "second_colon", "operators", "lines_after_module_docstring", "trailing_whitespace", "separator",
    "operator", "attr", "name", "keyword",
}  # fmt: skip
FIELDS: dict[type[cst.CSTNode], tuple[str, ...]] = {}
"""What `child_fields` returned for the types seen so far."""

_node_classes: dict[type, bool] = {}


@functools.lru_cache(maxsize=4096)
def text_of(literal: str) -> str | bytes | None:
    """Return what a string literal stands for, by its source; None when it cannot be read. libcst compiles it each time."""
    try:
        value: str | bytes = ast.literal_eval(literal)
    except (ValueError, SyntaxError):
        return None
    return value


def is_node(kind: type) -> bool:
    """Whether `kind` is a class of nodes; remembered, because asking an abstract base class is slow."""
    if kind not in _node_classes:
        _node_classes[kind] = issubclass(kind, cst.CSTNode)
    return _node_classes[kind]


def child_fields(kind: type[cst.CSTNode]) -> tuple[str, ...]:
    """Return the fields of `kind` that may hold code, last first."""
    names = [f.name for f in dataclasses.fields(kind) if f.name not in _NO_CHILDREN and "whitespace" not in f.name]
    FIELDS[kind] = tuple(reversed(names))
    return FIELDS[kind]


def children(node: cst.CSTNode) -> list[cst.CSTNode]:
    """Return the code directly inside `node`, in source order; libcst's own `children` visits white space too."""
    return [child for _, child in named_children(node)]


def named_children(node: cst.CSTNode) -> list[tuple[str, cst.CSTNode]]:
    """Return the code directly inside `node` with the field that holds it, in source order."""
    kind = type(node)
    found: list[tuple[str, cst.CSTNode]] = []
    for name in reversed(FIELDS.get(kind) or child_fields(kind)):
        value = getattr(node, name)
        if value.__class__ in (tuple, list):
            found.extend((name, entry) for entry in value)
        elif is_node(value.__class__):
            found.append((name, value))
    return found


def names_in(node: cst.CSTNode) -> set[str]:
    """Return every name that occurs in an expression."""
    waiting, found = [node], set()
    while waiting:
        inner = waiting.pop()
        if isinstance(inner, cst.Name):
            found.add(inner.value)
        waiting.extend(children(inner))
    return found
