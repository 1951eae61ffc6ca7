"""Text that becomes code while a candidate runs: by an import, by what makes classes, or as the name of a type. Nothing else may.

A library that runs text (`numpy.testing.measure`, templates, symbolic expressions) runs what the static check never saw.
"""

from __future__ import annotations

import ast
import re
from typing import Any

from pypto_op.backends.worker import askers

_PARSERS = (
    *("/triton/", "/triton_ascend/", "/torch_npu/", "/pypto_op/"),
    *("/torch/_library/", "/torch/_dynamo/", "/torch/_inductor/", "/torch/_jit_internal.py"),
)
"""They parse the source of functions, or make code of their own text."""
_CLASSES = ("/collections/__init__.py", "/attr/_make.py", "/traceback.py")
"""They make methods, and look at the names first; the last parses lines to mark a place in them."""
_RECORDS = "/dataclasses.py"
_OF_RECORDS = re.compile(r"_dflt_\w+|__dataclass_\w+|_HAS_\w+|super|hash|repr|type|FrozenInstanceError|TypeError|NotImplemented")
_METHODS = frozenset({"__setattr__", "__delattr__", "__post_init__", "format"})
_NAMES = (ast.Expression, ast.Name, ast.Attribute, ast.Subscript, ast.Constant, ast.Load)
_TYPES = (*_NAMES, ast.Tuple, ast.List, ast.BinOp, ast.BitOr)


def runs_code(arguments: tuple[Any, ...]) -> str | None:
    """Return what to say of an audit event `compile` (text, name of the file); None where that is as usual.

    To be asked from an audit hook.
    """
    text = arguments[0] if arguments else None
    if askers.machinery() or askers.package_is_imported():
        return None
    by = askers.importer().replace("\\", "/")
    if any(part in by for part in _PARSERS) or by.endswith(_CLASSES):
        return None
    if isinstance(text, bytes):
        text = text.decode("utf-8", "replace")
    if not isinstance(text, str):
        return None
    if _names_a_type(text) or (by.endswith(_RECORDS) and _makes_a_record(text)):
        return None
    return f"turn text into code by {by.rpartition('/')[2] or 'a library'}"


def _names_a_type(text: str) -> bool:
    """Whether a text is the name of a type, as annotations have it: no call, nothing private."""
    try:
        nodes = list(ast.walk(ast.parse(text.strip(), mode="eval")))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    private = any(isinstance(node, ast.Attribute) and node.attr.startswith("_") for node in nodes)
    return not private and all(isinstance(node, _TYPES) for node in nodes)


def _makes_a_record(text: str) -> bool:
    """Whether a text of `dataclasses` calls only what that module calls: a field's name may be any text."""
    try:
        calls = [node.func for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return all(
        bool(_OF_RECORDS.fullmatch(function.id)) if isinstance(function, ast.Name) else _is_method(function) for function in calls
    )


def _is_method(function: ast.expr) -> bool:
    return isinstance(function, ast.Attribute) and function.attr in _METHODS
