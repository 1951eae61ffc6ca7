"""The knobs of a case (`draw_zone`, `draw_scale`, ...), which choose how inputs are drawn, and names that no input may have.

A knob begins with `draw_`, which no input does, so a scalar called `scale` or `offset` never changes how tensors are drawn.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pypto_op.documents.schema import Finding
from pypto_op.errors import ContractError
from pypto_op.python_text import parsed
from pypto_op.workspace import to_run

PREFIX = "draw_"
ZONE, SCALE, OFFSET, RANGE, SET = "draw_zone", "draw_scale", "draw_offset", "draw_range", "draw_set"
ALIKE, LEANING, LAGGING = "draw_alike", "draw_leaning", "draw_lagging"
KNOBS = (ZONE, SCALE, OFFSET, RANGE, SET, ALIKE, LEANING, LAGGING)
RENAMED = {"zone": ZONE, "scale": SCALE, "offset": OFFSET, "integer_range": RANGE}
"""What the knobs were called before: a word that an operator's scalar may have."""

DRAWN = "fresh_"
"""Begins the id of a case that a verdict draws (`judge.fresh`), with the axis behind it."""

JUDGED_BY = frozenset({"id", "level", "precision", "atol", "rtol", "policy", "twin", "power", "raises"})
"""Keys of a case that say how it is judged, not what its inputs are."""

_RESERVED = JUDGED_BY | {"shape", "dtype", "dtype_mode", "seed", "cancellation_stress", "default", "cases", "test_cases"}


def is_drawn_id(case_id: str | None, suite: Collection[str]) -> bool:
    """Whether an id is that of a case that only a verdict draws.

    Args:
        case_id: the id; None is none.
        suite: ids of the suite's own cases, which may begin alike.
    """
    return case_id is not None and case_id.startswith(DRAWN) and case_id not in suite


def reserved(names: Iterable[str]) -> Iterator[Finding]:
    """Yield a finding for each input whose name a case uses for something else."""
    for name in names:
        if name in _RESERVED or name.startswith(PREFIX):
            yield Finding(f"primary_inputs.{name}", f"{name!r} is a word of the suite; call the input something else")


def check_known(cases: Iterable[Mapping[str, Any]], inputs: Collection[str], file: Path, text: str) -> None:
    """Refuse a case with a knob that `make_inputs` would leave unread: it would be judged on ordinary inputs.

    Args:
        inputs: names of the primary inputs, whose values a case may give.

    Raises:
        ContractError: names the case and the knob's new name, or the file that does not know it.
    """
    read = _words(text)
    for case in cases:
        for key in case:
            if key in inputs or key in read:
                continue
            if key in RENAMED:
                where = f"case {case['id']}"
                raise ContractError(f"{key!r} is no knob of make_inputs", where=where, remedy=f"write {RENAMED[key]!r}")
            if key.startswith(PREFIX):
                where = f"case {case['id']}"
                raise ContractError(
                    f"does not read the knob {key!r}",
                    file=file,
                    where=where,
                    remedy=f"read it, or {to_run('harness new', file.parent.parent)}",
                )


def _words(text: str) -> set[str]:
    """Return the words that a program looks up or names, docstrings apart.

    A step of a cancellation recipe has a `scale` of its own (`stress.patterns`), which is no knob.
    """
    tree = parsed(text)
    if tree is None:
        return set(RENAMED) | set(KNOBS)  # whoever runs the file tells what is wrong with it
    nodes = list(ast.walk(tree))
    idle = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and _is_step(node.func.value):
            idle |= {id(argument) for argument in node.args}
        if isinstance(node, ast.Subscript) and _is_step(node.value):
            idle.add(id(node.slice))
    return {
        node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in idle
    }


def _is_step(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "step"
