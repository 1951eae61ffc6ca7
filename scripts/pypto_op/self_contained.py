"""What a module golden may use: torch, math, and those parts of the standard library that only compute.

A golden of M_1..M_k that calls the operator's golden, or another file, proves nothing: composition would compare a golden
with itself. The source is refused here, before it runs (gates, judge, composition, rule OL15), and while it runs its process
can open no other file of the workspace (`backends.worker.alone`). Standard library only: the linter imports this too.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from pypto_op import back_doors
from pypto_op.errors import ContractError

PACKAGES = frozenset({"torch", "math"})
COMPUTING = frozenset(
    {"__future__", "abc", "array", "bisect", "cmath", "collections", "contextlib", "copy", "dataclasses", "decimal", "enum"}
    | {"fractions", "functools", "heapq", "itertools", "numbers", "operator", "random", "re", "statistics", "string", "struct"}
    | {"textwrap", "time", "types", "typing", "warnings"}
)
"""Parts of the standard library that open no file, load no code and start nothing."""

_BUILTINS = frozenset({"open", "exec", "eval", "compile", "__import__", "globals", "breakpoint", "input"})
_LOADERS = frozenset(
    {"load", "load_library", "from_file", "fromfile", "hub", "package", "cpp_extension", "PyTorchFileReader", "import_ir_module"}
    | {"PackageImporter", "import_module", "run_path", "run_module", "spec_from_file_location", "__loader__", "__spec__"}
    | {"os", "sys", "io", "_os", "_sys", "importlib", "builtins", "inspect", "gc", "ctypes", "subprocess", "multiprocessing"}
)
"""Attributes that lead to other files or to code that is not in this one, whatever they are taken from."""

REMEDY = "write the steps of M_1..M_k out in this file, with torch and math alone"


def reaches_out(source: str | bytes) -> Iterator[tuple[int, str]]:
    """Yield (line, what was seen) for each way out of a module golden's own file.

    Raises:
        SyntaxError, ValueError: the source is no Python.
        RecursionError, MemoryError: it is nested too deeply.
    """
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _imported(node.lineno, alias.name)
        elif isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")
            for alias in node.names:
                yield from _imported(node.lineno, base if alias.name == "*" else f"{base}.{alias.name}".replace("..", "."))
        elif isinstance(node, ast.Name) and node.id in _BUILTINS | {"__loader__", "__spec__", "__file__"}:
            yield node.lineno, f"uses `{node.id}`"
        elif isinstance(node, ast.Attribute) and node.attr in _LOADERS:
            yield node.lineno, f"uses `{ast.unparse(node)[:60]}`"
    for line, _, name in back_doors.named(source):
        yield line, f"uses `{name}`"


def check(path: Path) -> None:
    """Refuse a module golden that reaches out of its own file; one that is no Python is refused where it is loaded.

    Raises:
        ContractError: with line, what was seen, and the remedy.
    """
    try:
        found = sorted(reaches_out(path.read_bytes()))
    except (OSError, SyntaxError, ValueError):
        return
    except (RecursionError, MemoryError):
        raise ContractError("is nested too deeply to be read", file=path, remedy=REMEDY) from None
    if found:
        line, what = found[0]
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        raise ContractError(f"a module golden stands alone; it {what}{more}", file=path, where=f"line {line}", remedy=REMEDY)


def _imported(line: int, name: str) -> Iterator[tuple[int, str]]:
    parts = name.split(".")
    if parts[0] not in PACKAGES | COMPUTING or any(part in _LOADERS for part in parts[1:]):
        yield line, f"imports {name}"
