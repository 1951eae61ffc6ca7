"""`_debug/snapshot_manifest.yaml`: which intermediates of a module are compared, iteration by iteration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pypto_op.documents import schema, shape_expr
from pypto_op.documents.reading import read_yaml
from pypto_op.documents.schema import Finding
from pypto_op.errors import ContractError
from pypto_op.vocabulary import Mode
from pypto_op.workspace import parse_phase

DEFAULT_TOLERANCE = 1e-3
POINTS = ("before_nt_loop", "inside_nt_loop", "after_nt_loop")
REQUIRED = ("SIG_IMPL", "SIG_JIT", "CALL_IMPL", "HOST_WRAPPER_INSPECT_ALLOC", "HOST_WRAPPER_INSPECT_PASS")
"""Marker pairs that a probed kernel must have; beside them those of `POINTS` that the manifest names."""


@dataclass(frozen=True)
class Intermediate:
    """One value to probe."""

    name: str  # of the buffer, without `inspection_`
    shape: tuple[str, ...]  # of one iteration: rows and columns
    probe_point: str  # one of `POINTS`
    dtype: str  # of the buffer
    value: str  # the kernel's expression
    # head, index: the kernel's expressions for the head and the iteration
    head: str
    index: str
    expression: str | None  # the golden's, or None
    golden: Mapping[str, Any] = field(default_factory=dict)  # where in the golden it is taken (`loop`, `where`, `when`, `index`)

    @property
    def buffer(self) -> str:
        """The keyword of the wrapper."""
        return f"inspection_{self.name}"


@dataclass(frozen=True)
class Manifest:
    """The whole manifest, defaults filled in."""

    op: str  # the operator
    phase: int  # k of the module
    case: str  # id of a case of the suite
    modes: tuple[Mode, ...]  # where to run
    # atol, rtol: of the comparison
    atol: float
    rtol: float
    intermediates: tuple[Intermediate, ...]  # what to probe


def load(path: Path) -> Manifest:
    """Read a manifest.

    Raises:
        ContractError: unreadable, against the schema, a name twice, a shape that does not parse, or a point without a marker.
    """
    data = read_yaml(path)
    schema.check(data, "snapshot_manifest", file=path)
    schema.raise_first(_problems(data), file=path)
    return Manifest(
        op=data["op"],
        phase=parse_phase(data["module"]),
        case=data["case"],
        modes=tuple(Mode(word) for word in data.get("modes", Mode)),
        atol=float(data.get("atol", DEFAULT_TOLERANCE)),
        rtol=float(data.get("rtol", DEFAULT_TOLERANCE)),
        intermediates=tuple(_intermediate(item) for item in data["intermediates"]),
    )


def sizes(one: Intermediate, symbols: Mapping[str, int], file: Path) -> tuple[int, int]:
    """Return rows and columns of an intermediate in a case.

    Raises:
        ContractError: the shape has not two sizes, or a symbol that the case does not name.
    """
    if len(one.shape) != 2:
        raise ContractError(
            f"{one.name} has {len(one.shape)} sizes", file=file, remedy="probe a matrix; a vector of n values is [n, 1]"
        )
    rows, columns = (shape_expr.parse(size).value(symbols) for size in one.shape)
    return rows, columns


def _intermediate(item: Mapping[str, Any]) -> Intermediate:
    index = item.get("index", {})
    return Intermediate(
        item["name"],
        tuple(map(str, item["shape"])),
        item["probe_point"],
        item.get("dtype", "float32"),
        item.get("value", item["name"]),
        str(index.get("head", 0)),
        str(index.get("c", "c" if item["probe_point"] == "inside_nt_loop" else 0)),
        item.get("golden_expression"),
        item.get("golden", {}),
    )


def _problems(data: Mapping[str, Any]) -> list[Finding]:
    found, seen = [], set()
    for number, item in enumerate(data["intermediates"]):
        place = f"intermediates[{number}]"
        if item["name"] in seen:
            found.append(Finding(f"{place}.name", f"{item['name']} occurs twice"))
        seen.add(item["name"])
        if item["probe_point"] not in POINTS:
            found.append(Finding(f"{place}.probe_point", f"no marker is called {item['probe_point']}; use {', '.join(POINTS)}"))
        for axis, dimension in enumerate(item["shape"]):
            try:
                shape_expr.parse(dimension)
            except ContractError as error:
                found.append(Finding(f"{place}.shape[{axis}]", error.problem))
    return found
