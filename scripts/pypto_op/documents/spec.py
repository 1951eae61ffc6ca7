"""SPEC.md: what the operator is. Its tolerance is the single source for every other one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pypto_op.documents import front_matter, markdown, port_table, ranges, rows, schema, spec_names, worded_ranges
from pypto_op.documents.golden import Signature
from pypto_op.documents.policy import Policy
from pypto_op.documents.schema import Finding
from pypto_op.documents.tolerance import policy_of
from pypto_op.documents.worded_ranges import Worded
from pypto_op.errors import ContractError
from pypto_op.vocabulary import DTYPE_ALIASES

_FLOAT_WORDS = {"float32", "float16", "bfloat16", "fp32", "fp16", "bf16", "half", "float"}

_STEPS = {"float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}
"""One unit in the last place of a floating dtype, relative to the value, at most."""

P0Shape = dict[str, Any] | list[int]
"""symbol -> size, or input name -> shape, or the shape of the first input."""


@dataclass(frozen=True)
class Spec:
    """The front matter of SPEC.md."""

    op_name: str  # the operator
    supported_dtypes: tuple[str, ...]  # dtype words, aliases resolved, in the order written
    p0_shapes: tuple[P0Shape, ...]  # the shapes that must work, as written (`P0Shape`)
    dynamic_axes: tuple[str, ...]  # names of the axes whose length is known at run time only
    axis_ranges: Mapping[str, tuple[int, int]]  # (least, greatest) length of dynamic axes that name one
    # sentences or expressions for people; what `input_ranges`, and then words, say stands behind them, as comparisons
    shape_constraints: tuple[str, ...]
    worded: Mapping[str, Worded]  # input -> limits that words alone say
    input_ranges: Mapping[str, Any]  # input -> its interval, and what holds for its rows, as written
    fixed_inputs: tuple[str, ...]  # inputs that are tables: the same for every seed
    default_params: Mapping[str, Any]  # scalar parameter -> default value
    _policy: Policy

    def policy(self) -> Policy:
        """Return the policy that the tolerance block stands for."""
        return self._policy

    @property
    def rows(self) -> dict[str, rows.Rows]:
        """What `input_ranges`, and words where that is silent, say of the rows of inputs, by name."""
        worded = {name: told.rows for name, told in self.worded.items() if told.rows != rows.Rows()}
        return {**worded, **rows.of(self.input_ranges)}

    def tolerance_for(self, dtype: str) -> tuple[float, float] | None:
        """Return (atol, rtol) for a floating dtype, or None when the policy has no such pair."""
        if self._policy.name != "allclose":
            return None
        numbers = self._policy.for_dtype(dtype)
        return numbers["atol"], numbers["rtol"]


def load(path: Path | str) -> Spec:
    """Read SPEC.md; only its front matter counts here, see `check` for the rest.

    Raises:
        ContractError: unreadable, the schema is broken, or values contradict each other.
    """
    document = front_matter.load(path, "spec")
    schema.raise_first(list(_contradictions(document.data)), file=document.path)
    return _build(document)


def check(path: Path | str, *, is_copy: bool = False, signature: Signature | None = None) -> list[Finding]:
    """Return everything that is wrong with SPEC.md: front matter, sections, and what is left to do.

    Args:
        is_copy: the golden moves elements and rounds none, so that no tolerance is too fine.
        signature: the golden's; None where it cannot be read.
    """
    document, found = front_matter.check(path, "spec", "spec")
    if document is None or schema.findings(document.data, "spec"):
        return found
    found += _contradictions(document.data)
    try:
        built = _build(document)
        found += [] if is_copy else _too_fine(built, document.body)
    except ContractError as error:
        found.append(Finding.of(error))
    if document.data["op_name"] not in document.body:
        found.append(Finding("", "the body does not mention the operator's name"))
    return found or _misfits(document, signature)


def misfits(path: Path | str, signature: Signature | None) -> list[Finding]:
    """Return the words of SPEC.md that fit nothing else in it, or no parameter of the golden; none before it fits its schema.

    Args:
        signature: the golden's; None where it cannot be read.
    """
    document = front_matter.read(path)
    return [] if schema.findings(document.data, "spec") else _misfits(document, signature)


def _misfits(document: front_matter.Document, signature: Signature | None) -> list[Finding]:
    data, body = document.data, document.body
    return [*spec_names.findings(data, body), *spec_names.unasked(data, body, signature)]


def fixed_dtypes(path: Path | str) -> dict[str, str]:
    """Return each input that section 5's table gives exactly one floating dtype, with that: it does not follow the case's.

    Raises:
        ContractError: SPEC.md cannot be read.
    """
    told = port_table.rows(front_matter.read(path).body)
    return {name: row.dtype for name, row in told.items() if row.dtype in _STEPS}


def unlimited(path: Path | str) -> frozenset[str]:
    """Return the scalars of which SPEC.md says that any number will do: in section 5, or by a range without ends.

    Raises:
        ContractError: SPEC.md cannot be read.
    """
    spec, told = load(path), port_table.rows(front_matter.read(path).body)
    endless = {name for name in spec.default_params if ranges.is_endless(spec.input_ranges.get(name, ""))}
    free = {name for name, row in told.items() if row.is_unlimited and name in spec.default_params}
    return frozenset(endless | {name for name in free if ranges.of(spec.shape_constraints, name) == ranges.Range()})


def _too_fine(spec: Spec, body: str) -> Iterator[Finding]:
    """Two right kernels may differ by one unit in the last place of a rounded output: a tolerance must let that pass."""
    for dtype in spec.supported_dtypes:
        step, tolerance = _STEPS.get(dtype, 0.0), spec.tolerance_for(dtype) if dtype in _STEPS else None
        if tolerance is None or tolerance[1] >= step or dtype not in _output_dtypes(dtype, body):
            continue
        yield Finding(
            f"tolerance.{dtype}",
            f"rtol {tolerance[1]:g} is finer than {dtype} itself (one unit in the last place is {step:.1e}), so a right "
            f"kernel can be refused; write rtol {2 * step:.1e}, or name the wider output dtype in the table of section 6",
        )


def _output_dtypes(dtype: str, body: str) -> str:
    """Return what the body's table of dtypes says of the outputs for inputs of `dtype`; that dtype where it is silent."""
    for table in markdown.tables(body):
        column = table.column("output", "out")
        for row in table.rows if column is not None and "dtype" in " ".join(table.header).casefold() else ():
            words = {DTYPE_ALIASES.get(word, word) for word in re.findall(r"\w+", row[0])}
            if column and dtype in words:
                return " ".join(DTYPE_ALIASES.get(word, word) for word in re.findall(r"\w+", row[column]))
    return dtype


def _build(document: front_matter.Document) -> Spec:
    data = document.data
    worded = worded_ranges.of(document.body, data)
    axes = {axis: (low, high) for axis, (low, high) in data.get("dynamic_axes_ranges", {}).items()}
    input_ranges = data.get("input_ranges", {})
    return Spec(
        op_name=data["op_name"],
        supported_dtypes=tuple(DTYPE_ALIASES.get(word, word) for word in data["supported_dtypes"]),
        p0_shapes=tuple(data["p0_shapes"]),
        dynamic_axes=tuple(data.get("dynamic_axes", [])),
        axis_ranges=axes,
        shape_constraints=(
            *data.get("shape_constraints", []),
            *ranges.comparisons(input_ranges),
            *(line for told in worded.values() for line in told.said),
        ),
        worded=worded,
        input_ranges=input_ranges,
        fixed_inputs=tuple(data.get("fixed_inputs", [])),
        default_params=data.get("default_params", {}),
        _policy=policy_of(data["tolerance"], file=document.path),
    )


def _contradictions(data: Mapping[str, Any]) -> Iterator[Finding]:
    words = [DTYPE_ALIASES.get(word, word) for word in data["supported_dtypes"]]
    for word in sorted({word for word in words if words.count(word) > 1}):
        yield Finding("supported_dtypes", f"names {word} twice")
    yield from _missing_tolerances(data["tolerance"], words)
    input_ranges = data.get("input_ranges", {})
    yield from ranges.findings(input_ranges)
    yield from rows.findings(input_ranges, (*data.get("shape_constraints", []), *ranges.comparisons(input_ranges)))
    yield from _outside(data)
    axes = data.get("dynamic_axes", [])
    for axis, (low, high) in data.get("dynamic_axes_ranges", {}).items():
        place = f"dynamic_axes_ranges.{axis}"
        if axis not in axes:
            yield Finding(place, f"{axis} is not in dynamic_axes")
        if low > high:
            yield Finding(place, f"begins at {low} and ends at {high}")
        for number, shape in enumerate(data["p0_shapes"]):
            size = shape.get(axis) if isinstance(shape, Mapping) else None
            if isinstance(size, int) and not low <= size <= high:
                yield Finding(f"p0_shapes[{number}].{axis}", f"{size} is outside its range {low}..{high}")


def _outside(data: Mapping[str, Any]) -> Iterator[Finding]:
    """A scalar's default must lie in its range."""
    said = ranges.comparisons(data.get("input_ranges", {}))
    for name, default in data.get("default_params", {}).items():
        if type(default) in (int, float) and name in data.get("input_ranges", {}) and not ranges.of(said, name).holds(default):
            yield Finding(f"default_params.{name}", f"{default} is outside its range, {data['input_ranges'][name]}")


def _missing_tolerances(tolerance: Mapping[str, Any], words: list[str]) -> Iterator[Finding]:
    """A tolerance block that goes by dtype must name every supported floating dtype."""
    named = {DTYPE_ALIASES.get(key, key) for key, value in tolerance.items() if key in _FLOAT_WORDS}
    if named and "atol" not in tolerance and "standard" not in tolerance:
        for word in words:
            if word in _FLOAT_WORDS and word not in named:
                yield Finding(f"tolerance.{word}", "is missing: the block goes by dtype and this one is supported")
