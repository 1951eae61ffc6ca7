"""Words of SPEC.md that fit nothing else in it: an axis, a scalar or a dtype that stands in one place only.

Prose is left alone, and so is a text without the table of section 5. What is asked of axes is asked only where every
tensor of that table has a shape that can be read.
"""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from pypto_op.documents import constraints, port_table, shape_expr
from pypto_op.documents.golden import Signature
from pypto_op.documents.schema import Finding
from pypto_op.python_text import names_in
from pypto_op.vocabulary import DTYPE_ALIASES, DTYPES

_PLACE = "section 5"
_DTYPE = re.compile(r"(?:bfloat|float|bf|fp|uint|int)(\d+)")
_SIGNATURE = re.compile(r"\bSignature:\s*`\w+\(([^()`]*)\)")
_WIDTHS = {"4", "8", "16", "32", "64", "128"}
"""Bits of dtypes that exist somewhere; a number that is none of them is a slip of the keys."""


def findings(data: Mapping[str, Any], body: str) -> list[Finding]:
    """Return the words that fit nothing else.

    Args:
        data: the front matter, which fits its schema.
        body: the text below it.
    """
    cells = port_table.cells(body)
    known = port_table.rows(body)
    words = set(re.findall(r"[A-Za-z_]\w*", body, re.ASCII))
    found = [*_slips(cells)]
    symbols = _symbols(known) if not found else None
    if symbols:
        found += _axes(data, symbols, known)
        found += _among_sizes(data, symbols, known)
    if known:
        found += _strangers(data, words | set(known) | (symbols or set()) | _written(data))
    return found


def unasked(data: Mapping[str, Any], body: str, signature: Signature | None) -> list[Finding]:
    """Return the defaults that no parameter of the golden asks for, the parameters that section 5 forgot, and another signature.

    Cases would go without those defaults, and nobody be told; the contract would have holes that nobody could place.

    Args:
        data: the front matter, which fits its schema.
        body: the text below it.
        signature: the golden's; None where it cannot be read.
    """
    if signature is None:
        return []
    parameters = signature.parameters
    known = port_table.rows(body)
    named = {*known, *data.get("default_params", {})}
    forgotten = [name for name in parameters if name in signature.needed - named] if set(known) & set(parameters) else []
    row = "write | {} | input | SHAPE | DTYPE | ... |"
    strangers = [name for name, told in known.items() if not told.is_output and name not in parameters]
    if len(strangers) == len(forgotten) == 1:
        row = f"rename the row {strangers[0]}, or {row}"
    return [
        *_other_signature(body, signature),
        *(Finding(_PLACE, f"has no row for {name}, a parameter of the golden", remedy=row.format(name)) for name in forgotten),
        *(
            Finding(f"default_params.{name}", f"the golden has no parameter {name}", remedy=f"it has {', '.join(parameters)}")
            for name in data.get("default_params", {})
            if name not in parameters
        ),
    ]


def _other_signature(body: str, signature: Signature) -> Iterator[Finding]:
    """The signature that section 1 tells, where the golden is not called so; it may leave out what has a default."""
    told = _SIGNATURE.search(body)
    names = [word.partition("=")[0].partition(":")[0].strip() for word in told[1].split(",") if word.strip()] if told else []
    if not names or not all(name.isidentifier() for name in names):
        return  # written in another form, or not yet
    wanted = [name for name in signature.parameters if name in signature.needed or name in names]
    if names != wanted:
        words = f"tells the signature ({', '.join(names)}); the golden takes ({', '.join(signature.parameters)})"
        yield Finding("section 1", words, remedy="mend the one that is wrong")


def _slips(cells: Mapping[str, tuple[str, str]]) -> Iterator[Finding]:
    """Shapes whose brackets do not close, and dtypes of a width that does not exist."""
    for name, (shape, dtype) in cells.items():
        if shape.count("[") != shape.count("]"):
            yield Finding(_PLACE, f"the shape {shape!r} of {name} lacks a bracket", remedy="write it like [B, S]")
        for match in _DTYPE.finditer(dtype):
            if match[1] not in _WIDTHS:
                meant = difflib.get_close_matches(match[0], sorted({*DTYPES, *DTYPE_ALIASES}), 1, 0.0)
                yield Finding(_PLACE, f"{match[0]}, of {name}, is no dtype", remedy=f"did you mean {meant[0]}? write that")


def _symbols(known: Mapping[str, port_table.Row]) -> set[str] | None:
    """Return the axes that the shapes of section 5 are made of; None where one of them cannot be read, or there is none."""
    if not known or any(not row.shape for row in known.values()):
        return None
    sizes = [size for row in known.values() for size in row.shape.strip("[]").split(",") if size.strip()]
    return {symbol for size in sizes for symbol in shape_expr.parse(size.strip()).symbols}


def _axes(data: Mapping[str, Any], symbols: Collection[str], known: Mapping[str, port_table.Row]) -> Iterator[Finding]:
    """Axes of the front matter that no shape of section 5 has, and axes of section 5 that a P0 shape gives no size."""
    told = _among(symbols)
    for axis in data.get("dynamic_axes", []):
        if axis not in symbols:
            yield Finding("dynamic_axes", f"no shape of section 5 has an axis {axis}", remedy=told)
    for number, shape in enumerate(data["p0_shapes"]):
        if not isinstance(shape, Mapping) or not all(isinstance(size, int) for size in shape.values()):
            continue
        place = f"p0_shapes[{number}]"
        for name in [name for name in shape if name not in symbols and name not in known]:
            yield Finding(f"{place}.{name}", f"no shape of section 5 has an axis {name}", remedy=told)
        given = {*shape, *known, *data.get("default_params", {})}
        inputs = _symbols({name: row for name, row in known.items() if not row.is_output}) or set()
        for name in sorted(inputs - given):
            yield Finding(place, f"gives no size for {name}, an axis of section 5", remedy=f"write {name}: SIZE there")


def _strangers(data: Mapping[str, Any], known: Collection[str]) -> Iterator[Finding]:
    """Names in conditions that stand nowhere else in SPEC.md."""
    for number, text in enumerate(data.get("shape_constraints", [])):
        strangers: set[str] = set()
        for left, _, right in constraints.comparisons([text]):
            if not constraints.reads_parts(left, right):
                strangers |= names_in(left, right) - set(known) - set(data.get("default_params", {}))
        for name in sorted(strangers):
            words = f"{name} of {text!r} stands nowhere else in SPEC.md, so the condition is never tried"
            yield Finding(f"shape_constraints[{number}]", words, remedy="name an axis, or an input, that is there")


def _among_sizes(data: Mapping[str, Any], symbols: Collection[str], known: Mapping[str, port_table.Row]) -> Iterator[Finding]:
    """Conditions that place a tensor's whole numbers in an axis, `labels in C`: nothing tries them."""
    for number, text in enumerate(data.get("shape_constraints", [])):
        for left, op, right in constraints.comparisons([text]):
            if not (isinstance(op, ast.In) and isinstance(left, ast.Name) and isinstance(right, ast.Name)):
                continue
            if left.id in known and right.id in symbols and right.id not in known:
                words = f"{text!r} is never tried: {right.id} is a size, and has no members"
                yield Finding(f"shape_constraints[{number}]", words, remedy=f"write 0 <= {left.id} < {right.id}")


def _written(data: Mapping[str, Any]) -> set[str]:
    """Return the names of axes and inputs that the front matter has beside scalars and conditions."""
    shapes = [shape for shape in data["p0_shapes"] if isinstance(shape, Mapping)]
    return {name for shape in shapes for name in shape} | {*data.get("dynamic_axes", []), *data.get("input_ranges", {})}


def _among(symbols: Collection[str]) -> str:
    return f"write one of {', '.join(sorted(symbols))}, or mend section 5"
