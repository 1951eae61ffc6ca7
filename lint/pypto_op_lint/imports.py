"""What a file imports, however it is written."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from pypto_op_lint.facts import Facts
from pypto_op_lint.facts.values import Const
from pypto_op_lint.import_statements import imported_by
from pypto_op_lint.tree import Site

_LOADERS = frozenset(
    {
        "importlib.import_module",
        "builtins.__import__",
        "importlib.util.spec_from_file_location",
        "importlib.machinery.SourceFileLoader",
        "importlib.util.find_spec",
        "runpy.run_path",
        "runpy.run_module",
    }
)


def imported(facts: Facts) -> Iterator[tuple[Site, str]]:
    """Yield (place, dotted name) for each module or name that live code imports.

    `from a.b import c` yields `a.b.c`; `importlib.import_module("a.b")` yields `a.b`; a path that a loader is given
    (`.../x_golden.py`) yields its stem; `sys.modules["a.b"]` yields `a.b`.
    """
    for site in facts.tree.sites(cst.Import, cst.ImportFrom):
        yield from ((site, name.loaded.lstrip(".")) for name in imported_by(site.node))
    for site, node, names in facts.foreign_calls:
        if names & _LOADERS:
            for argument in node.args:
                for value in facts.ev.values(argument.value):
                    if isinstance(value, Const) and isinstance(value.value, str):
                        yield site, _module(value.value)
    yield from facts.from_module_table


def _module(text: str) -> str:
    """Return the dotted name that a string handed to a loader stands for."""
    stem = re.sub(r"\.py\Z", "", text.rpartition("/")[2])
    return stem.strip(".")


def components(name: str) -> list[str]:
    """Return the parts of a dotted name."""
    return name.split(".")
