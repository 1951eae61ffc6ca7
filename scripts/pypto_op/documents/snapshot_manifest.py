"""_debug/snapshot_manifest.yaml: which intermediates of a module the debugger wants compared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pypto_op.documents import schema, shape_expr
from pypto_op.documents.reading import read_yaml
from pypto_op.documents.schema import Finding
from pypto_op.errors import ContractError
from pypto_op.vocabulary import Mode
from pypto_op.workspace import parse_phase

DEFAULT_TOLERANCE = 1e-3


@dataclass(frozen=True)
class Intermediate:
    """One tensor to probe.

    Attributes:
        name: its name.
        shape: per-iteration shape, one expression per dimension.
        probe_point: where in the loop nest it is taken.
        dtype: of the buffer.
        golden_expression: how the golden computes it, or None.
    """

    name: str
    shape: tuple[str, ...]
    probe_point: str
    dtype: str
    golden_expression: str | None


@dataclass(frozen=True)
class SnapshotManifest:
    """The whole manifest, defaults filled in.

    Attributes:
        op: the operator.
        phase: k of the module.
        case: id of the suite case.
        modes: where to run.
        atol, rtol: tolerance of the comparison.
        notes: for people.
        intermediates: what to probe.
    """

    op: str
    phase: int
    case: str
    modes: tuple[str, ...]
    atol: float
    rtol: float
    notes: str
    intermediates: tuple[Intermediate, ...]


def load(path: Path | str) -> SnapshotManifest:
    """Read a manifest.

    Raises:
        ContractError: unreadable, the schema is broken, a name occurs twice, or a shape does not parse.
    """
    data = read_yaml(path)
    schema.check(data, "snapshot_manifest", file=path)
    schema.raise_first(list(_problems(data)), file=path)
    return SnapshotManifest(
        op=data["op"],
        phase=parse_phase(data["module"]),
        case=data["case"],
        modes=tuple(data.get("modes", Mode)),
        atol=data.get("atol", DEFAULT_TOLERANCE),
        rtol=data.get("rtol", DEFAULT_TOLERANCE),
        notes=data.get("notes", ""),
        intermediates=tuple(
            Intermediate(
                item["name"],
                tuple(map(str, item["shape"])),
                item["probe_point"],
                item.get("dtype", "float32"),
                item.get("golden_expression"),
            )
            for item in data["intermediates"]
        ),
    )


def _problems(data: Mapping[str, Any]) -> Iterator[Finding]:
    seen: set[str] = set()
    for number, item in enumerate(data["intermediates"]):
        place = f"intermediates[{number}]"
        if item["name"] in seen:
            yield Finding(f"{place}.name", f"{item['name']} occurs twice")
        seen.add(item["name"])
        for axis, dimension in enumerate(item["shape"]):
            try:
                shape_expr.parse(dimension)
            except ContractError as error:
                yield Finding(f"{place}.shape[{axis}]", error.problem)
